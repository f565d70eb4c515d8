"""AutoGen 0.2's own executor, and ours."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from autogen.coding import CodeBlock
from autogen.coding.base import IPythonCodeResult
from autogen.coding.jupyter import EmbeddedIPythonCodeExecutor

from jupyter_agent_exec.adapters import autogen02
from tests.frameworks.subject import Said, Subject


def original(folder: Path, timeout: float) -> Subject:
    """Return AutoGen's embedded executor; what it saves goes into `folder`."""
    return Original(folder, timeout)


def ours(folder: Path, timeout: float) -> Subject:
    """Return ours, on a server of its own; what it saves goes into `folder`."""
    return Ours(folder, timeout)


class Original:
    name = f"AutoGen {version('autogen-agentchat')} EmbeddedIPythonCodeExecutor"
    has_close = False

    def __init__(self, folder: Path, timeout: float) -> None:
        self._executor = EmbeddedIPythonCodeExecutor(
            timeout=max(1, int(timeout)), output_dir=str(folder)
        )

    def run(self, source: str) -> Said:
        return _said(self._executor.execute_code_blocks([_block(source)]))

    def run_at_once(self, *sources: str) -> list[Said]:
        with ThreadPoolExecutor(len(sources)) as threads:
            return list(threads.map(self.run, sources))

    def run_and_cancel(self, source: str, started: Path) -> None:
        raise NotImplementedError

    def kernel_pid(self) -> int:
        return int(self.run("import os\nprint(os.getpid())").text.split()[-1])

    def close(self) -> None:
        # This is what its restart does.
        self._executor._kernel_client.stop_channels()
        self._executor._kernel_manager.shutdown_kernel()


class Ours:
    name = "ours for AutoGen 0.2"
    has_close = True

    def __init__(self, folder: Path, timeout: float) -> None:
        self._executor = autogen02.EmbeddedIPythonCodeExecutor(timeout=timeout, output_dir=folder)

    def run(self, source: str) -> Said:
        return _said(self._executor.execute_code_blocks([_block(source)]))

    def run_at_once(self, *sources: str) -> list[Said]:
        with ThreadPoolExecutor(len(sources)) as threads:
            return list(threads.map(self.run, sources))

    def run_and_cancel(self, source: str, started: Path) -> None:
        async def cancelled() -> None:
            task = asyncio.create_task(self._executor.a_execute_code_blocks([_block(source)]))
            while not started.exists():  # noqa: ASYNC240 - it is asked of a local disk
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        asyncio.run(cancelled())

    def kernel_pid(self) -> int:
        return int(self.run("import os\nprint(os.getpid())").text.split()[-1])

    def close(self) -> None:
        self._executor.stop()


def _block(source: str) -> CodeBlock:
    return CodeBlock(code=source, language="python")


def _said(result: IPythonCodeResult) -> Said:
    return Said(result.output, result.exit_code != 0, [Path(path) for path in result.output_files])
