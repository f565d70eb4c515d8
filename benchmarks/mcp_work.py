"""A piece of work by MCP, as the tools of each server do it. `mcp_tokens` counts what it costs.

The work: understand a notebook, fix a cell, plot, read a long output, an error, a timeout, the
death of a kernel, input, an installation, variables, the history, and the export. The answer to
each step is checked, with the same demands on each server.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import nbformat
from mcp_types import CallToolResult, TextContent
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NOTEBOOK: Final = "sales.ipynb"
EXPORT: Final = "work.ipynb"
"""The notebook that has the code of the steps from the error on when the work is done."""
WHEEL: Final = "tiny-1.0-py3-none-any.whl"

PLOT: Final = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
LONG: Final = "for n in range(10_000): print('line', n)"
ERROR: Final = "import json\njson.loads('{')"
ENDLESS: Final = "while True: pass"
AFTER_ENDLESS: Final = "print('still', json.__name__)"
DEATH: Final = "import os\nos.kill(os.getpid(), 9)"
DIED: Final = "died|dead|killed|restart"
INPUT: Final = "name = input('name? ')\nprint('hello', name)"
ABORTED: Final = '"status":"aborted"'
INSTALL: Final = (
    f"%pip install --quiet --no-index --target . {WHEEL}\n"
    "import tiny\nsize = tiny.SIZE\nprint('tiny', size)"
)


@dataclass(frozen=True, slots=True)
class Step:
    """A call that does a part of the work."""

    part: str
    expected: str
    """What the answer must show: a regular expression, of any case, with a dot that is any
    character. Each image is shown as `[image]`."""
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


Script: TypeAlias = Generator[Step, CallToolResult, None]
"""The steps by one server's tools. It is sent the answer to each."""


def shown(result: CallToolResult) -> str:
    """Return an answer's text, with `[image]` for each image."""
    blocks = result.content
    return "\n".join(
        block.text if isinstance(block, TextContent) else f"[{block.type}]" for block in blocks
    )


def prepare(root: Path) -> None:
    """Write what the work needs into a server's root."""
    data = "sales = {'amount': [3, 4, 5], 'region': ['north', 'south', 'west']}"
    cells = [
        new_markdown_cell("# Sales by region", id="title"),
        new_code_cell(data, id="data"),
        new_code_cell("total = sum(sales['amounts'])\ntotal", id="sum"),
        *(new_code_cell(f"# Step {n}\nprint({n})", id=f"step-{n}") for n in range(9)),
    ]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    root.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": spec}), root / NOTEBOOK)
    about = "tiny-1.0.dist-info"
    with zipfile.ZipFile(root / WHEEL, "w") as wheel:
        wheel.writestr("tiny.py", "SIZE = 1\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tag)
        wheel.writestr(f"{about}/RECORD", "")


def ours() -> Script:
    """Do the work by this server's tools."""
    yield Step("the notebook", "# Sales by region", "read_notebook", {"path": NOTEBOOK})
    some = {"path": NOTEBOOK, "cells": ["sum"]}
    yield Step("the notebook", "amounts", "read_notebook", some)
    target = {"kind": "notebook", "path": NOTEBOOK}
    steps = [{"placement": {"cell": cell}} for cell in ("data", "sum")]
    ran = yield Step(
        "the fix", "KeyError: 'amounts'", "execute", {"target": target, "steps": steps}
    )
    notebook = _found(r"\[session (\w+):", ran)
    edit = {"op": "replace", "cell_id": "sum", "find": "amounts", "source": "amount"}
    edits = {"session_id": notebook, "edits": [edit]}
    yield Step("the fix", "source_sha256", "edit_notebook", edits)
    both: list[dict[str, Any]] = [{"placement": {"cell": "sum"}}, {"source": PLOT}]
    run = {"session_id": notebook, "steps": both}
    yield Step("the plot", r"12.*\[image\]", "execute", run)
    run = {"session_id": notebook, "source": LONG}
    long = yield Step("the long output", "left out", "execute", run)
    find = {"execution_id": _found(r"\[execution (\w+)", long), "grep": "line 7777"}
    yield Step("the long output", "line 7777", "get_execution", find)
    opened = yield Step("the error", "", "open_session", {"allow_stdin": True})
    session = {"session_id": _found(r"\b(s_\w+)", opened)}
    yield Step("the error", "JSONDecodeError", "execute", {**session, "source": ERROR})
    run = {**session, "source": ENDLESS, "timeout": 1}
    yield Step("the timeout", "timed.out", "execute", run)
    run = {**session, "steps": [{"source": AFTER_ENDLESS}, {"source": DEATH}]}
    yield Step("the kernel's death", f"still json.*({DIED})", "execute", run)
    asks = yield Step("the input", "awaiting_input", "execute", {**session, "source": INPUT})
    value = {"execution_id": _found(r"\[execution (\w+)", asks), "value": "Ada"}
    yield Step("the input", "hello Ada", "give_input", value)
    yield Step("the installation", "tiny 1", "execute", {**session, "source": INSTALL})
    yield Step("the variables", r"size\W+int", "list_variables", session)
    yield Step("the history", DIED, "search_executions", session)
    export = {**session, "path": EXPORT}
    yield Step("the export", "6 executions", "export_notebook", export)
    yield Step("the end", "closed", "stop", session)


def jupyter_mcp_server() -> Script:
    """Do the work by the tools of jupyter-mcp-server, in cells of two notebooks.

    `restart_notebook` is its way out of code that goes on for ever.
    """
    run = "insert_execute_code_cell"
    sales = {"notebook_name": "sales"}
    new_kernel = {"kernel_id": "NEW"}
    use = {**sales, "notebook_path": NOTEBOOK, **new_kernel}
    yield Step("the notebook", "# Sales by region", "use_notebook", use)
    yield Step("the notebook", "amounts", "read_cell", {"cell_id": "sum"})
    yield Step("the fix", "", "execute_cell", {"cell_id": "data"})
    yield Step("the fix", "KeyError.*amounts", "execute_cell", {"cell_id": "sum"})
    edit = {"cell_id": "sum", "old_string": "amounts", "new_string": "amount"}
    yield Step("the fix", "", "edit_cell_source", edit)
    yield Step("the fix", "12", "execute_cell", {"cell_id": "sum"})
    yield Step("the plot", r"\[image\]", run, _appended(PLOT))
    yield Step("the long output", "line 7777", run, _appended(LONG))
    work = {"notebook_name": "work"}
    use = {**work, "notebook_path": EXPORT, "mode": "create", **new_kernel}
    yield Step("the error", "", "use_notebook", use)
    yield Step("the error", "JSONDecodeError", run, _appended(ERROR))
    yield Step("the timeout", "timed.out", run, _appended(ENDLESS, 1))
    code: dict[str, Any] = {"code": AFTER_ENDLESS, "timeout": 10}
    after = yield Step("the timeout", "still json", "execute_code", code)
    if "still json" not in shown(after):
        yield Step("the timeout", "", "restart_notebook", work)
    yield Step("the kernel's death", DIED, run, _appended(DEATH, 10))
    yield Step("the input", "hello Ada", "execute_code", {"code": INPUT, "timeout": 3})
    yield Step("the installation", "tiny 1", "execute_code", {"code": INSTALL, "timeout": 60})
    yield Step("the variables", r"size\W+int", "execute_code", {"code": "%whos"})
    yield Step("the history", DIED, "read_cell", {"cell_index": 3})
    yield Step("the end", "", "unuse_notebook", work)
    yield Step("the end", "", "unuse_notebook", sales)


def _appended(source: str, timeout: int = 60) -> dict[str, Any]:
    return {"cell_index": -1, "cell_source": source, "timeout": timeout}


def jupyter_server_mcp() -> Script:
    """Do the work by the tools of jupyter-ai-tools and of JupyterLab's commands, in its page."""
    sales = {"file_path": NOTEBOOK}
    yield Step("the notebook", "# Sales by region.*amounts", "read_notebook", sales)
    yield Step("the fix", "", "run_cell", {**sales, "cell_id": "data"})
    yield Step("the fix", "KeyError.*amounts", "run_cell", {**sales, "cell_id": "sum"})
    fixed = {"cell_id": "sum", "content": "total = sum(sales['amount'])\ntotal"}
    yield Step("the fix", "", "edit_cell", {**sales, **fixed})
    yield Step("the fix", "12", "run_cell", {**sales, "cell_id": "sum"})
    yield from _added("the plot", r"\[image\]", NOTEBOOK, PLOT)
    yield from _added("the long output", "line 7777", NOTEBOOK, LONG)
    new = {"file_path": EXPORT, "kernel_name": "python3"}
    yield Step("the error", "Successfully", "create_notebook", new)
    yield from _added("the error", "JSONDecodeError", EXPORT, ERROR)
    yield from _added("the timeout", "timed.out", EXPORT, ENDLESS, 1.0)
    interrupt = {"command_id": "notebook:interrupt-kernel"}
    yield Step("the timeout", "", "execute_command", interrupt)
    yield from _added("the timeout", "still json", EXPORT, AFTER_ENDLESS)
    killer = yield from _added("the kernel's death", DIED, EXPORT, DEATH)
    yield from _added("the input", "hello Ada", EXPORT, INPUT, 3.0)
    yield Step("the input", "", "execute_command", interrupt)
    yield from _added("the installation", "tiny 1", EXPORT, INSTALL)
    yield from _added("the variables", r"size\W+int", EXPORT, "%whos")
    yield Step("the history", DIED, "read_cell", {"file_path": EXPORT, "cell_id": killer})
    save = {"notebookPath": EXPORT}
    command = {"command_id": "jupyterlab-ai-commands:save-notebook", "args": save}
    yield Step("the export", "saved", "execute_command", command)


def _added(
    part: str, expected: str, path: str, source: str, timeout: float = 10.0
) -> Generator[Step, CallToolResult, str]:
    """Add a cell to a notebook and run it, again if it was aborted; return its id."""
    cell = yield Step(part, "", "add_cell", {"file_path": path, "content": source})
    id = _found(r'"cellId": ?"([^"]+)"', cell)
    run = {"file_path": path, "cell_id": id, "timeout": timeout}
    ran = yield Step(part, f"{expected}|{ABORTED}", "run_cell", run)
    if ABORTED in shown(ran):  # with the interrupted one before it
        yield Step(part, expected, "run_cell", run)
    return id


def _found(pattern: str, result: CallToolResult) -> str:
    """Return what a pattern's group finds in an answer; empty if nothing."""
    match = re.search(pattern, shown(result))
    return "" if match is None else match[1]
