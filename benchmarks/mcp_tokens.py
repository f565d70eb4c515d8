"""Count what a piece of work by MCP costs an agent, in calls and in tokens: `make bench-mcp`.

A token is taken for four characters. Run this file for this server's costs alone.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_work
import nbformat
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_clients import connected
from mcp_servers import THEIRS, McpServer, jupyter_mcp_server, jupyter_server_mcp
from mcp_types import CallToolResult, TextContent
from mcp_work import Script, Step, shown
from report import brief
from servers import server, set_apart

OURS: Final = "this server"
STEP_SECONDS: Final = 90.0

SERVERS: Final[
    Mapping[str, tuple[Callable[[Path], AbstractContextManager[Any]], Callable[[], Script]]]
] = {
    OURS: (server, mcp_work.ours),
    THEIRS["jupyter-mcp-server"]: (jupyter_mcp_server, mcp_work.jupyter_mcp_server),
    THEIRS["jupyter-server-mcp"]: (jupyter_server_mcp, mcp_work.jupyter_server_mcp),
}
"""How each server is run, and its script."""

GOALS: Final = {
    "tools": 14,
    "tokens of `tools/list`": 3_500,
    "calls": 18,
    "tokens out, as text": 4_000,
    "tokens out, structured": 4_000,
    "failures": 0,
}
"""This server's."""

HEADING: Final = "## What a piece of work costs an agent"

SECTION: Final = """
{heading}

One script: understand a notebook, fix a cell, plot, read a long output, an error, a timeout, the
death of a kernel, input, an installation, variables, the history and the export. Each server does
it with its own tools, as its documentation describes them. The answers are checked alike: a plot
must be an image, an endless loop must end without the loss of variables, the answer and the history
must say that the kernel died, and so on. A token is taken for four characters; images are not
counted, except as base64 in a text. Structured content is for programs: clients show a model either
it or the text. jupyter-server-mcp has the tools of jupyter-ai-tools 0.7.0 and of
jupyterlab-commands-toolkit, with JupyterLab open in a browser.
`python benchmarks/run_mcp.py --only tokens` measures this part alone.

| | {names} | goal |
| --- |{rules} ---: |
{rows}
"""


@dataclass(slots=True)
class Costs:
    """What the work has cost with one server."""

    listed: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    text: int = 0
    structured: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """What was answered first where a part of the work failed, by part."""

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

    def add(self, step: Step, result: CallToolResult) -> None:
        """Count a step, and check its answer."""
        self.calls += 1
        self.text += sum(len(one.text) for one in result.content if isinstance(one, TextContent))
        if result.structured_content is not None:
            self.structured += len(_json(result.structured_content))
        text = shown(result)
        if step.expected:
            done = re.search(step.expected, text, re.DOTALL | re.IGNORECASE) is not None
        else:
            done = not result.is_error
        if not done:
            expected = step.expected.partition("|")[0].replace("\\", "") or "success"
            why = f"`{step.tool}` does not show `{expected}`: {_ends(text)}"
            self.failures.setdefault(step.part, why)


def section(costs: Mapping[str, Costs]) -> str:
    """Return the costs of each server as a section of a page."""
    counts = [each.counts for each in costs.values()]
    rows = [
        f"| {name} | {' | '.join(f'{each[name]:,}' for each in counts)} | {_goal(name)} |"
        for name in counts[0]
    ]
    failures = [
        f"- {name}, {part}: {answer}"
        for name, each in costs.items()
        for part, answer in each.failures.items()
    ]
    text = SECTION.format(
        heading=HEADING,
        names=" | ".join(costs),
        rules=" ---: |" * len(costs),
        rows="\n".join(rows),
    )
    return text + ("\nWhat failed:\n\n" + "\n".join(failures) + "\n" if failures else "")


def measured(name: str, folder: Path) -> Costs:
    """Run a server in a folder, and do the work with it."""
    run, script = SERVERS[name]
    with run(folder) as running:
        mcp_work.prepare(folder / "root")
        endpoint = (
            running.endpoint
            if isinstance(running, McpServer)
            else f"{running.url}/api/agent-exec/mcp"
        )
        return asyncio.run(_costs(endpoint, running.token, script(), folder / "root"))


async def _costs(endpoint: str, token: str, script: Script, root: Path) -> Costs:
    async with connected(endpoint, token) as client:
        costs = Costs(listed=await _listed(client))
        step: Step | None = next(script)
        while step is not None:
            result = await _called(client, step)
            costs.add(step, result)
            try:
                step = script.send(result)
            except StopIteration:
                step = None
    if not _exported(root / mcp_work.EXPORT):
        costs.failures.setdefault("the export", "no valid notebook with the error")
    return costs


async def _called(client: Client, step: Step) -> CallToolResult:
    text = "no answer"
    with anyio.move_on_after(STEP_SECONDS):
        try:
            result: CallToolResult = await client.call_tool(step.tool, step.arguments)
            return result
        except MCPError as error:
            text = str(error)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


async def _listed(client: Client) -> dict[str, int]:
    listed = (await client.list_tools()).tools
    tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
    whole = len(_json(tools)) // 4
    for tool in tools:
        tool.pop("outputSchema", None)
    return {
        "tools": len(tools),
        "tokens of `tools/list`": whole,
        "tokens of `tools/list` without output schemas": len(_json(tools)) // 4,
    }


def _exported(path: Path) -> bool:
    """Whether a file is a valid notebook that has the output of the step with the error."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (OSError, ValueError, nbformat.ValidationError):
        return False
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return any(output.get("ename") == "JSONDecodeError" for output in outputs)


def _ends(text: str) -> str:
    """Return the beginning and the end of a text, without ids that are others each time."""
    line = " ".join(re.sub(r'"requestId":"[^"]*",', "", text).split())
    return brief(line if len(line) <= 150 else f"{line[:70]} … {line[-80:]}")


def _goal(name: str) -> str:
    return f"≤ {GOALS[name]:,}" if name in GOALS else ""


def _json(value: list[dict[str, Any]] | Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main() -> int:
    """Print the table, and what failed; return 1 if a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        set_apart(Path(made))
        costs = measured(OURS, Path(made) / "ours")
    print(section({OURS: costs}))
    return 1 if costs.missed else 0


if __name__ == "__main__":
    sys.exit(main())
