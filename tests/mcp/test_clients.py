"""Each official client does the same things, in each revision that it speaks, and over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.mcp.mcp_clients import (
    CLIENTS,
    LATEST,
    REVISIONS,
    connected,
    earlier_python,
    early_python,
    endpoint,
    opened,
    ran,
    stdio_command,
    text_of,
)
from tests.real_server import TOKEN, RealServer

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""An image of one pixel, in base64."""

Run = Callable[[str, str], Any]
"""Runs a client's script, given a revision and what to do as JSON."""


def typescript(sdk: str) -> Run:
    script = str(CLIENTS / "typescript_client.mjs")
    return lambda revision, asked: ran(["node", script, sdk, revision, asked])


def earlier(revision: str, asked: str) -> Any:
    return ran([earlier_python(), str(CLIENTS / "python1_client.py"), revision, asked])


SCRIPTED: list[Any] = [
    *(
        pytest.param(typescript("client"), revision, id=f"client-{revision}")
        for revision in REVISIONS
    ),
    pytest.param(typescript("sdk"), "2025-11-25", id="sdk-2025-11-25"),
    *(
        pytest.param(earlier, revision, id=f"python1-{revision}", marks=pytest.mark.nightly)
        for revision in REVISIONS[:2]
    ),
]


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, str]:
    """Code that goes on when its client has heard of it, and a key for it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = f"open({str(gate)!r}).read()\nprint('went on')"
    return {"source": source, "gate": str(gate), "key": uuid.uuid4().hex}


def check(told: dict[str, Any], revision: str) -> None:
    assert told["revision"] == revision
    assert {"open_session", "list_sessions", "execute", "get_execution"} <= set(told["tools"])
    assert told["progress"] >= 1
    assert "went on" in told["text"]
    assert told["structured"]["status"] == "ok"
    assert told["again"] == told["structured"]["execution_id"]
    assert told["refused"]["is_error"] is True
    assert told["refused"]["text"].startswith("session_not_found: ")
    assert "went on" in told["read"]


@pytest.mark.parametrize(("run", "revision"), SCRIPTED)
def test_a_client_over_http(
    server: RealServer, asked: dict[str, str], run: Run, revision: str
) -> None:
    where = {"url": endpoint(server), "token": TOKEN}
    check(run(revision, json.dumps(where | asked)), revision)


@pytest.mark.parametrize(("run", "revision"), SCRIPTED)
def test_a_client_over_stdio(
    server: RealServer, asked: dict[str, str], run: Run, revision: str
) -> None:
    where = {"command": stdio_command(server)}
    check(run(revision, json.dumps(where | asked)), revision)


SHOWS = f"from IPython.display import display\ndisplay({{'image/png': {PIXEL!r}}}, raw=True)"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sdk", "transport", "revision"),
    [
        ("1.6.0", "stdio", "2024-11-05"),  # it has no client for HTTP
        ("1.8.1", "stdio", "2024-11-05"),
        ("1.8.1", "http", "2024-11-05"),
        ("1.8.1", "http", "2025-03-26"),
    ],
)
def test_a_client_of_an_early_revision(
    server: RealServer, sdk: str, transport: str, revision: str
) -> None:
    output = new_output("display_data", {"image/png": PIXEL})
    notebook = new_notebook(cells=[new_code_cell(SHOWS, id="plot", outputs=[output])])
    path = f"early-{sdk}-{transport}-{revision}.ipynb"
    nbformat.write(notebook, server.root_dir / path)
    asked = {
        "image": SHOWS,
        "long": "for n in range(10_000): print('line', n)",
        "notebook": path,
    }
    where: dict[str, Any] = {"url": endpoint(server), "token": TOKEN}
    if transport == "stdio":
        where = {"command": stdio_command(server)}
    python, environ = early_python(sdk)
    script = str(CLIENTS / "early_client.py")
    told = ran([python, script, revision, json.dumps(where | asked)], env=environ)
    assert told["revision"] == revision
    assert {"execute", "read_notebook", "export_notebook"} <= set(told["tools"])
    assert not any(answer["is_error"] for answer in told["answers"])
    _, image, long, read, linked, exported, *_ = told["answers"]
    assert image["kinds"] == read["kinds"] == ["text", "image"]
    assert long["kinds"] == linked["kinds"] == exported["kinds"] == ["text"]
    assert "left out" in long["text"]
    assert linked["text"].startswith("2 executions as a notebook: GET /")
    assert "2 executions" in exported["text"]
    first, _, _ = told["rest"].partition("\n")
    number = int(first.removeprefix("line "))
    shown = long["text"].splitlines()
    assert f"line {number - 1}" in shown
    assert first not in shown


@pytest.mark.parametrize("mode", ["legacy", "auto", LATEST])
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_the_newest_python_client(
    server: RealServer, asked: dict[str, str], mode: str, transport: str
) -> None:
    progress: list[str | None] = []

    async def heard(done: float, total: float | None, message: str | None) -> None:
        if not progress:
            await asyncio.to_thread(Path(asked["gate"]).write_text, "")
        progress.append(message)

    if transport == "http":
        connecting: Any = connected(server, mode)
    else:
        parameters = StdioServerParameters(**stdio_command(server))
        connecting = Client(stdio_client(parameters), mode=mode)
    async with connecting as client:
        revision = client.protocol_version
        tools = [tool.name for tool in (await client.list_tools()).tools]
        session_id = await opened(client)
        arguments = {
            "session_id": session_id,
            "source": asked["source"],
            "idempotency_key": asked["key"],
        }
        first = await client.call_tool("execute", arguments, progress_callback=heard)
        again = await client.call_tool("execute", arguments)
        refused = await client.call_tool("execute", {"session_id": "s_nothing", "source": "1"})
        structured = first.structured_content
        part = {"execution_id": structured["execution_id"], "offset": 0}
        read = await client.call_tool("get_execution", part)
        await client.call_tool("stop", {"session_id": session_id})
    check(
        {
            "revision": revision,
            "tools": tools,
            "progress": len(progress),
            "text": text_of(first),
            "structured": structured,
            "again": again.structured_content["execution_id"],
            "refused": {"is_error": refused.is_error, "text": text_of(refused)},
            "read": text_of(read),
        },
        "2025-11-25" if mode == "legacy" else LATEST,
    )


def test_the_inspectors_command_of_the_page_works(server: RealServer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md").read_text()
    [shown] = re.findall(r"^npx (?:[^`]*\\\n)?[^`]*", page, re.MULTILINE)
    npx, package, *arguments = shlex.split(shown.replace("\\\n", "").replace("$TOKEN", TOKEN))
    assert (npx, package) == ("npx", "@modelcontextprotocol/inspector@latest")
    documented = "http://localhost:8888/api/agent-exec/mcp"
    given = [endpoint(server) if each == documented else each for each in arguments]
    assert given != arguments
    done = subprocess.run(
        [str(CLIENTS / "node_modules" / ".bin" / "mcp-inspector"), *given],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "execute" in [tool["name"] for tool in json.loads(done.stdout)["tools"]]
