"""Tasks with an owner, which keeps a reference to them and waits for them when it stops."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar

from .errors import ServerStopping

T = TypeVar("T")


async def first_of(*futures: asyncio.Future[Any], timeout: float | None = None) -> None:
    """Wait until one of several futures is done, or for `timeout` seconds."""
    await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


def settle(
    future: asyncio.Future[Any], error: Exception | None = None, result: object = None
) -> None:
    """Set a future's result, or its exception. Do nothing if the future is done."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def start_apart(coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    """Start a task in a new context, so that it can outlive the request that starts it.

    The context of a request refers to its handler, which would keep the whole request in memory.
    """
    return Context().run(asyncio.get_running_loop().create_task, coroutine, name=name)


def call_later_apart(delay: float, call: Callable[..., None], *args: Any) -> asyncio.TimerHandle:
    """Call a function after `delay` seconds in a new context, since a timer keeps its context."""
    return asyncio.get_running_loop().call_later(delay, call, *args, context=Context())


_Call = tuple[asyncio.AbstractEventLoop, Callable[..., None], tuple[Any, ...]]


class _Held(threading.local):
    calls: list[_Call] | None = None


_held = _Held()


def call_on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: Any) -> None:
    """Schedule a call on a loop, unless it is closed; can be called from any thread."""
    if _held.calls is not None:
        _held.calls.append((loop, call, args))
    elif not loop.is_closed():
        loop.call_soon_threadsafe(call, *args)


@contextmanager
def waking_once() -> Iterator[None]:
    """Hold the calls of this thread on its server's loop, and wake the loop once at the end.

    A loop that is woken by the first call competes with the thread for the interpreter.
    """
    held = _held.calls = []
    try:
        yield
    finally:
        _held.calls = None
        if held and not held[0][0].is_closed():
            held[0][0].call_soon_threadsafe(_call_all, held)


def _call_all(held: list[_Call]) -> None:
    for loop, call, args in held:
        try:
            call(*args)
        except Exception as error:  # the others are called all the same
            told = {"message": f"Exception in {call!r}", "exception": error}
            loop.call_exception_handler(told)


class Tasks:
    """The tasks of one owner. A task that fails is logged, not lost."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task."""
        task = start_apart(coroutine, name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def end(self, timeout: float | None = None) -> None:
        """Wait for all tasks and the tasks that they start, except the current task.

        Parameters
        ----------
        timeout
            Seconds after which the remaining tasks are cancelled; None to wait without a limit.
        """
        me = asyncio.current_task()
        late = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while others := self._tasks - {me}:
            left = None if late is None else late - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                self._log.error("Still going on: %s", ", ".join(t.get_name() for t in others))
                for task in others:
                    task.cancel()
                left = None
            await asyncio.wait(others, timeout=left)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ServerStopping):
            self._log.info("%s: not done, as the server stops", task.get_name())
        elif error is not None:
            self._log.error("%s failed", task.get_name(), exc_info=error)
