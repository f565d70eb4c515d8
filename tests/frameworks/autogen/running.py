"""Code in an executor, on a loop that runs for it alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult


async def executed(
    executor: CodeExecutor, *sources: str, token: CancellationToken | None = None
) -> CodeResult:
    """Execute blocks of Python."""
    blocks = [CodeBlock(code=source, language="python") for source in sources]
    return await executor.execute_code_blocks(blocks, token or CancellationToken())


def run(executor: CodeExecutor, *sources: str) -> CodeResult:
    """Execute blocks of Python, and wait for what comes of them."""
    return asyncio.run(executed(executor, *sources))


async def until(marked: Path) -> None:
    """Wait for a file, and remove it."""
    while not marked.exists():  # noqa: ASYNC240 - it takes no time
        await asyncio.sleep(0.01)
    marked.unlink()  # noqa: ASYNC240
