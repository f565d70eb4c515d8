"""Code blocks for an executor."""

from __future__ import annotations

from typing import Protocol

from autogen.coding import CodeBlock
from autogen.coding.base import IPythonCodeResult


class Executor(Protocol):
    def execute_code_blocks(self, code_blocks: list[CodeBlock]) -> IPythonCodeResult: ...


def block(source: str, language: str = "python") -> CodeBlock:
    return CodeBlock(code=source, language=language)


def run(executor: Executor, *sources: str) -> IPythonCodeResult:
    return executor.execute_code_blocks([block(source) for source in sources])


def text(executor: Executor, *sources: str) -> str:
    """Run what must not fail; return what it wrote and showed."""
    result = run(executor, *sources)
    assert result.exit_code == 0, result.output
    return result.output.strip()
