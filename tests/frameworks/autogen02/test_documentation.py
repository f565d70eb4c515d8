"""What the page about the adapter shows: its code runs as it stands there."""

from __future__ import annotations

import re

import pytest
from autogen.coding import CodeExecutorFactory

from tests.real_server import PROJECT, RealServer

PAGE = PROJECT / "docs" / "how-to" / "frameworks" / "autogen02.md"


def test_each_line_of_the_page_runs(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CodeExecutorFactory, "create", CodeExecutorFactory.create)
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    table = re.findall(r"^- `(\w+CodeExecutor\([^…`]*\))`:", page, re.MULTILINE)
    assert len(blocks) >= 2
    assert "JupyterCodeExecutor(LocalJupyterServer())" in table
    names: dict[str, object] = {}
    exec("from jupyter_agent_exec.adapters.autogen02 import *", names)
    url = server.url.partition("?")[0]
    for block in blocks:
        block = block.replace("http://localhost:8888", url).replace("…", server.token)
        exec(compile(block, str(PAGE), "exec"), names)
    for expression in table:
        with eval(expression, names) as executor:  # type: ignore[attr-defined]
            assert executor.execute_code_blocks([]).exit_code == 0
