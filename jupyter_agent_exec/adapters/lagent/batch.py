"""The interpreter of several sources at the same time, each with a kernel of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, overload

from lagent.actions.base_action import BaseAction
from lagent.actions.parser import BaseParser, JsonParser
from lagent.schema import ActionReturn

from .interpreters import IPythonInterpreter
from .naming import base_arguments, named_as_its_class


@named_as_its_class
class BatchIPythonInterpreter(BaseAction):
    """Runs sources at the same time, each in the kernel of its index.

    A context manager that closes it at the end.

    Parameters
    ----------
    python_interpreter
        The arguments with which each `IPythonInterpreter` is made.
    description, parser, enable
        As lagent has them.
    """

    __tool_name__ = "jupyter_agent_exec.BatchIPythonInterpreter"

    def __init__(
        self,
        python_interpreter: dict[str, Any],
        description: dict[str, Any] | None = None,
        parser: type[BaseParser] = JsonParser,
        enable: bool = True,
    ) -> None:
        super().__init__(**base_arguments(description, parser, enable))
        self.python_interpreter_init_args = python_interpreter
        self.index2python_interpreter: dict[int, IPythonInterpreter] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> BatchIPythonInterpreter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @overload
    def __call__(
        self, commands: str, indexes: int | Sequence[int] | None = None
    ) -> ActionReturn: ...

    @overload
    def __call__(
        self, commands: list[str], indexes: int | Sequence[int] | None = None
    ) -> list[ActionReturn]: ...

    def __call__(
        self, commands: str | list[str], indexes: int | Sequence[int] | None = None
    ) -> ActionReturn | list[ActionReturn]:
        """Run code, or several at the same time, and return what each came to.

        Parameters
        ----------
        indexes
            Whose kernels these are: of each command another. Counted from 0 when None.

        Raises
        ------
        ValueError
            There are more or fewer indexes than commands, or one of them twice.
        """
        sources = [commands] if isinstance(commands, str) else commands
        if indexes is None:
            indexes = range(len(sources))
        elif isinstance(indexes, int):
            indexes = [indexes]
        if not len(sources) == len(indexes) == len(set(indexes)):
            raise ValueError("the size of `indexes` must equal that of `commands`")
        answers = self._run(sources, [self._interpreter(index) for index in indexes])
        return answers[0] if isinstance(commands, str) else answers

    def reset(self) -> None:
        """End all kernels; what runs next has fresh ones."""
        with self._lock:
            interpreters = list(self.index2python_interpreter.values())
            self.index2python_interpreter.clear()
        for each in interpreters:
            each.close()

    def close(self) -> None:
        """End all kernels, as `reset` does."""
        self.reset()

    def _interpreter(self, index: int) -> IPythonInterpreter:
        with self._lock:
            interpreter = self.index2python_interpreter.get(index)
            if interpreter is None:
                interpreter = IPythonInterpreter(**self.python_interpreter_init_args)
                self.index2python_interpreter[index] = interpreter
            return interpreter

    def _run(
        self, sources: list[str], interpreters: list[IPythonInterpreter]
    ) -> list[ActionReturn]:
        if not sources:
            return []

        async def answers() -> list[ActionReturn]:
            running = zip(interpreters, sources, strict=True)
            return await asyncio.gather(*(each.run_async(source) for each, source in running))

        # A loop of its own: one may run in this thread, where Ctrl-C arrives.
        loop = asyncio.new_event_loop()
        answering = loop.create_task(answers())

        def wait() -> list[ActionReturn]:
            try:
                return loop.run_until_complete(answering)
            finally:
                loop.close()

        with ThreadPoolExecutor(1) as thread:
            try:
                return thread.submit(wait).result()
            except BaseException:
                with suppress(RuntimeError):  # it has ended
                    loop.call_soon_threadsafe(answering.cancel)
                raise
