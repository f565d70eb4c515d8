"""Pantheon's own `PythonInterpreterToolSet`, and ours, to be asked the same."""

from __future__ import annotations

import asyncio
import importlib.metadata
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pantheon.toolsets.python import PythonInterpreterToolSet as PantheonsOwn

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet
from tests.frameworks.subject import Said, Subject

T = TypeVar("T")

PID = "import os\nprint(os.getpid())"


class ToolSet(Protocol):
    """What both are to a caller."""

    workdir: Path

    def run_python_code(self, code: str) -> Coroutine[Any, Any, dict[str, Any]]: ...

    def cleanup(self) -> Coroutine[Any, Any, None]: ...


def original(folder: Path, timeout: float) -> Subject:
    """Return Pantheon's own; it has no timeout, so its caller stops waiting."""
    name = f"pantheon-agents {importlib.metadata.version('pantheon-agents')}"
    return Pantheon(name, _Deletes("python", workdir=str(folder)), timeout)


def ours(folder: Path, timeout: float) -> Subject:
    """Return ours, on a server of its own."""
    toolset = PythonInterpreterToolSet("python", workdir=folder, timeout=timeout)
    return Pantheon("ours for pantheon-agents", toolset, None)


class _Deletes(PantheonsOwn):  # type: ignore[misc]
    """Pantheon's own, whose `cleanup` does nothing: interpreters are deleted one by one."""

    async def cleanup(self) -> None:
        for interpreter_id in list(self.interpreters):
            await self.delete_interpreter(interpreter_id)


class Pantheon(Subject):
    """A tool set, on a loop in a thread of its own."""

    has_close = True

    def __init__(self, name: str, toolset: ToolSet, patience: float | None) -> None:
        self.name = name
        self._toolset = toolset
        self._patience = patience
        self._loop = asyncio.new_event_loop()
        # A daemon, so that a program may end without closing this.
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # Both start an interpreter at the first call; its start is no part of a timeout.
        self._wait(toolset.run_python_code("None"))

    def run(self, source: str) -> Said:
        return _said(self._wait(self._run(source)))

    def run_at_once(self, *sources: str) -> list[Said]:
        return list(map(_said, self._wait(self._run_at_once(sources))))

    def run_and_cancel(self, source: str, started: Path) -> None:
        self._wait(self._run_and_cancel(source, started))

    def kernel_pid(self) -> int:
        return int(self.run(PID).text)

    def close(self) -> None:
        try:
            self._wait(self._toolset.cleanup())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _answer(self, source: str) -> dict[str, Any] | SystemExit:
        """Return what it answers; an exit that it raises would end this loop, not the caller."""
        try:
            return await self._toolset.run_python_code(source)
        except SystemExit as error:
            return error

    async def _run(self, source: str) -> Said | SystemExit:
        try:
            answer = await asyncio.wait_for(self._answer(source), self._patience)
        except Exception as error:
            return Said(f"{type(error).__name__}: {error}", True, [])
        if isinstance(answer, SystemExit):
            return answer
        told = (answer.get(each) for each in ("restart_reason", "stdout", "stderr"))
        folder = self._toolset.workdir
        paths = answer.get("fig_storage_paths") or [answer.get("fig_storage_path")]
        files = [folder / path for path in paths if path]
        return Said("\n".join(filter(None, told)), not answer["success"], files)

    async def _run_at_once(self, sources: tuple[str, ...]) -> list[Said | SystemExit]:
        return await asyncio.gather(*map(self._run, sources))

    async def _run_and_cancel(self, source: str, started: Path) -> None:
        running = asyncio.create_task(self._toolset.run_python_code(source))
        while not started.exists():  # noqa: ASYNC240 - it takes no time
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])


def _said(answer: Said | SystemExit) -> Said:
    """Return what was said; an exit is the caller's, as in a program that awaits the tool."""
    if isinstance(answer, SystemExit):
        raise answer
    return answer
