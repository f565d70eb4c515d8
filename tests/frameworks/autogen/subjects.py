"""AutoGen's own `JupyterCodeExecutor`, and ours, to be asked the same."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor
from autogen_ext.code_executors.jupyter import JupyterCodeExecutor, JupyterCodeResult

from jupyter_agent_exec.adapters import autogen
from tests.frameworks.subject import Said, Subject

T = TypeVar("T")

PID = "import os\nprint(os.getpid())"


def original(folder: Path, timeout: float) -> Subject:
    """Return AutoGen's own executor."""
    name = f"autogen-ext {importlib.metadata.version('autogen-ext')}"
    return AutoGen(name, JupyterCodeExecutor(timeout=timeout, output_dir=folder), folder)


def ours(folder: Path, timeout: float) -> Subject:
    """Return ours, on a server of its own."""
    executor = autogen.JupyterCodeExecutor(timeout=timeout, output_dir=folder)
    return AutoGen("ours for autogen-ext", executor, folder)


class AutoGen(Subject):
    """An executor of AutoGen's, on a loop in a thread of its own."""

    has_close = True

    def __init__(self, name: str, executor: CodeExecutor, folder: Path) -> None:
        self.name = name
        self._executor = executor
        self._loop = asyncio.new_event_loop()
        # A program that forgets to close it ends all the same.
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        with started_in(folder):
            self._wait(executor.start())

    def run(self, source: str) -> Said:
        return self._wait(self._run(source))

    def run_at_once(self, *sources: str) -> list[Said]:
        return self._wait(self._run_at_once(sources))

    def run_and_cancel(self, source: str, started: Path) -> None:
        self._wait(self._run_and_cancel(source, started))

    def kernel_pid(self) -> int:
        return int(self.run(PID).text)

    def close(self) -> None:
        try:
            self._wait(self._executor.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result()

    async def _run(self, source: str, token: CancellationToken | None = None) -> Said:
        blocks = [CodeBlock(code=source, language="python")]
        try:
            result: JupyterCodeResult = await self._executor.execute_code_blocks(
                blocks, token or CancellationToken()
            )
        except Exception as error:
            files = error.partial.output_files if isinstance(error, autogen.CodeTimeout) else []
            return Said(f"{type(error).__name__}: {error}", True, files)
        return Said(result.output, result.exit_code != 0, result.output_files)

    async def _run_at_once(self, sources: tuple[str, ...]) -> list[Said]:
        return await asyncio.gather(*map(self._run, sources))

    async def _run_and_cancel(self, source: str, started: Path) -> None:
        token = CancellationToken()
        running = asyncio.create_task(self._run(source, token))
        while not started.exists():  # noqa: ASYNC240 - it takes no time
            await asyncio.sleep(0.01)
        token.cancel()
        try:
            await running
        except asyncio.CancelledError:
            return


@contextmanager
def started_in(folder: Path) -> Iterator[None]:
    """Have the kernel that starts meanwhile start in a folder, as it starts in the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
