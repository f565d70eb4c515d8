"""What docs/how-to/frameworks/lagent.md shows."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from lagent.schema import ActionReturn

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "frameworks" / "lagent.md"
FIRST, SECOND = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_the_first_example_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(FIRST, names)
    names["interpreter"].close()
    assert capsys.readouterr().out == "42\n\n"


def test_the_second_example_runs_where_one_can_await(folder: Path) -> None:
    names: dict[str, Any] = {}
    code = compile(SECOND, "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coroutine = eval(code, names)
    assert inspect.iscoroutine(coroutine)
    asyncio.run(coroutine)
    assert names["answer"] == ActionReturn(
        args={"text": "x = 1"},
        type="AsyncIPythonInterpreter",
        result=[{"type": "text", "content": ""}],
    )
