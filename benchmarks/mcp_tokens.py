"""Count what a piece of work by MCP costs an agent, in calls and in tokens: `make bench-mcp`.

The work: understand a notebook, fix a cell, plot, read a long output, an error, a timeout, the
death of a kernel, input, an installation, variables, the history, and the export. Each step is
checked. A token is taken for four characters. Run this file for the table alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import nbformat
from mcp.client import Client
from mcp_clients import connected
from mcp_types import CallToolResult, ImageContent, TextContent
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from servers import Server, server, set_apart

NOTEBOOK: Final = "sales.ipynb"
WHEEL: Final = "tiny-1.0-py3-none-any.whl"

GOALS: Final = {
    "tools": 14,
    "tokens of `tools/list`": 3_500,
    "calls": 18,
    "tokens out, as text": 4_000,
    "tokens out, structured": 4_000,
    "failures": 0,
}

TABLE: Final = """
## What a piece of work costs an agent

One script: understand a notebook, fix a cell, plot, read a long output, an error, a timeout, the
death of a kernel, input, an installation, variables, the history and the export. A token is taken
for four characters; images are not counted. Structured content is for programs: clients show a
model either it or the text.

| | this server | goal |
| --- | ---: | ---: |
{rows}
"""


@dataclass(slots=True)
class Costs:
    """What the work has cost."""

    listed: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    text: int = 0
    structured: int = 0
    images: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """The costs by name."""
        return {
            **self.listed,
            "calls": self.calls,
            "tokens out, as text": self.text // 4,
            "tokens out, structured": self.structured // 4,
            "failures": len(self.failures),
        }

    @property
    def missed(self) -> list[str]:
        """The goals that are not met."""
        return [name for name, goal in GOALS.items() if self.counts[name] > goal]

    def table(self) -> str:
        """Return the costs as a section of a page."""
        rows = [
            f"| {name} | {count:,} | {f'≤ {GOALS[name]:,}' if name in GOALS else ''} |"
            for name, count in self.counts.items()
        ]
        return TABLE.format(rows="\n".join(rows))


class Work:
    """The work of an agent, with its costs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.costs = Costs()

    async def call(self, tool: str, expected: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool, and check that its text has what is expected."""
        result = await self._client.call_tool(tool, arguments)
        text = text_of(result)
        costs = self.costs
        costs.calls += 1
        costs.text += len(text)
        costs.images += sum(isinstance(block, ImageContent) for block in result.content)
        if result.structured_content is not None:
            costs.structured += len(_json(result.structured_content))
        if result.is_error or expected not in text:
            costs.failures.append(f"{tool}: {text}")
        return result

    async def list_tools(self) -> None:
        """Count what the list of tools costs."""
        listed = (await self._client.list_tools()).tools
        tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
        whole = len(_json(tools)) // 4
        for tool in tools:
            tool.pop("outputSchema", None)
        self.costs.listed = {
            "tools": len(tools),
            "tokens of `tools/list`": whole,
            "tokens of `tools/list` without output schemas": len(_json(tools)) // 4,
        }

    async def do(self) -> None:
        """Do the work."""
        await self.list_tools()
        await self.call("read_notebook", "# Sales by region", path=NOTEBOOK)
        await self.call("read_notebook", "amounts", path=NOTEBOOK, cells=["sum"])
        target = {"kind": "notebook", "path": NOTEBOOK}
        steps = [{"placement": {"cell": cell}} for cell in ("data", "sum")]
        ran = await self.call("execute", "KeyError: 'amounts'", target=target, steps=steps)
        notebook = _id(text_of(ran), "[session ")
        edit = {"op": "replace", "cell_id": "sum", "find": "amounts", "source": "amount"}
        await self.call("edit_notebook", "source_sha256", session_id=notebook, edits=[edit])
        plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
        steps = [{"placement": {"cell": "sum"}}, {"source": plot}]
        await self.call("execute", "image 1 is below", session_id=notebook, steps=steps)
        source = "for n in range(10_000): print('line', n)"
        long = await self.call("execute", "left out", session_id=notebook, source=source)
        id = (long.structured_content or {}).get("execution_id")
        await self.call("get_execution", "line 7777", execution_id=id, grep="line 7777")
        opened = await self.call("open_session", "The kernel is your own", allow_stdin=True)
        session = (opened.structured_content or {}).get("session_id")
        source = "import json\njson.loads('{')"
        await self.call("execute", "JSONDecodeError", session_id=session, source=source)
        endless = {"source": "while True: pass", "timeout": 1}
        await self.call("execute", "timed_out", session_id=session, **endless)
        source = "import os\nos.kill(os.getpid(), 9)"
        await self.call("execute", "kernel_died", session_id=session, source=source)
        source = "name = input('name? ')"
        asks = await self.call("execute", "awaiting_input", session_id=session, source=source)
        id = (asks.structured_content or {}).get("execution_id")
        await self.call("give_input", ": ok", execution_id=id, value="Ada")
        source = f"%pip install --quiet --no-index --target . {WHEEL}\nimport tiny\ntiny.SIZE"
        await self.call("execute", "1", session_id=session, source=source)
        await self.call("list_variables", "name: str", session_id=session)
        await self.call("search_executions", "kernel_died", session_id=session)
        await self.call("export_notebook", "5 executions", session_id=session, path="work.ipynb")
        await self.call("stop", "closed", session_id=session)


async def measured(running: Server) -> Costs:
    """Do the work on a server whose root has been prepared."""
    async with connected(f"{running.url}/api/agent-exec/mcp", running.token) as client:
        work = Work(client)
        await work.do()
    return work.costs


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


def text_of(result: CallToolResult) -> str:
    """Return all text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _id(text: str, before: str) -> str:
    return text.partition(before)[2].partition(":")[0]


def _json(value: list[dict[str, Any]] | Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main() -> int:
    """Print the table, and what failed; return 1 if a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        folder = Path(made)
        set_apart(folder)
        prepare(folder / "ours" / "root")
        with server(folder / "ours") as running:
            costs = asyncio.run(measured(running))
    print(costs.table(), *costs.failures, sep="\n")
    return 1 if costs.missed else 0


if __name__ == "__main__":
    sys.exit(main())
