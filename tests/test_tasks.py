"""Tasks that outlive what starts them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import ContextVar
from functools import partial

import pytest

from jupyter_agent_exec.tasks import Tasks, call_later_apart, call_on_loop, start_apart, waking_once

request: ContextVar[str] = ContextVar("request")


async def seen() -> str | None:
    return request.get(None)


async def test_a_task_keeps_nothing_of_the_request_that_starts_it() -> None:
    request.set("a handler, with its body")
    assert await asyncio.create_task(seen()) == "a handler, with its body"
    assert await start_apart(seen(), "apart") is None
    assert await Tasks(logging.getLogger()).start(seen(), "owned") is None


async def test_a_timer_keeps_nothing_of_the_request_that_starts_it() -> None:
    request.set("a handler, with its body")
    found: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    call_later_apart(0, lambda: found.set_result(request.get(None)))
    assert await found is None


async def test_calls_of_a_thread_wake_the_loop_once_and_come_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, called, wakes = asyncio.get_running_loop(), list[str](), list[object]()
    wake = loop.call_soon_threadsafe

    def counted(*args: object, **options: object) -> object:
        wakes.append(args[0])
        return wake(*args, **options)  # type: ignore[arg-type]

    def work() -> None:
        with waking_once():
            call_on_loop(loop, called.append, "first")
            call_on_loop(loop, partial((1).__truediv__, 0))  # keeps nothing else from being called
            call_on_loop(loop, called.append, "second")
            assert wakes == []
        assert len(wakes) == 1
        with suppress(ZeroDivisionError), waking_once():
            call_on_loop(loop, called.append, "third")
            raise ZeroDivisionError
        call_on_loop(loop, called.append, "fourth")

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    loop.set_exception_handler(lambda loop, context: None)
    thread = loop.run_in_executor(None, work)
    await thread
    while len(called) < 4:
        await asyncio.sleep(0)
    assert called == ["first", "second", "third", "fourth"]
