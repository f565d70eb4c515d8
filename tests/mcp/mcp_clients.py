"""Clients of MCP as others wrote them, and the server that they talk to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from filelock import FileLock
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.real_server import PROJECT, TOKEN, RealServer

CLIENTS = Path(__file__).parent / "clients"
NODE_MODULES = CLIENTS / "node_modules"

LATEST = "2026-07-28"
REVISIONS = ("2025-06-18", "2025-11-25", LATEST)

SECONDS = 90.0


def endpoint(server: RealServer) -> str:
    return server.url.partition("?")[0] + "api/agent-exec/mcp"


def stdio_command(server: RealServer, *more: str, token: str = TOKEN) -> dict[str, Any]:
    """Return how a client that starts a process is configured."""
    return {
        "command": sys.executable,
        "args": ["-m", "jupyter_agent_exec.cli", "mcp", "--quiet", *more],
        "env": {
            **server.environ,
            "JUPYTER_AGENT_EXEC_URL": server.url.partition("?")[0],
            "JUPYTER_AGENT_EXEC_TOKEN": token,
        },
    }


def earlier_python() -> str:
    """Return a Python with the SDK of before."""
    return str(_environment("mcp-1", ["mcp>=1.20,<2"]) / "bin" / "python")


def early_python(sdk: str) -> tuple[str, dict[str, str]]:
    """Return a Python and an environment for it, with SDK 1.8.1 or 1.6.0."""
    more = ["--no-deps", "--target", str(_folder("mcp-early") / "1.6.0"), "mcp==1.6.0"]
    folder = _environment("mcp-early", ["mcp==1.8.1", "pydantic<2.12"], more)
    environ = {**os.environ, "NO_PROXY": "*"}
    if sdk == "1.6.0":
        environ["PYTHONPATH"] = str(folder / sdk)
    return str(folder / "bin" / "python"), environ


def _folder(name: str) -> Path:
    return PROJECT / ".make" / name


def _environment(name: str, *installed: list[str]) -> Path:
    """Return the folder of an environment, which `make` sets up; else it is done now."""
    folder = _folder(name)
    folder.parent.mkdir(exist_ok=True)
    done = folder / "done"
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
            for packages in installed:
                subprocess.run([*pip, "install", "--quiet", *packages], check=True)
            done.touch()
    return folder


def ran(command: list[str], **options: Any) -> Any:
    """Run a client's script and return what it tells."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@asynccontextmanager
async def connected(
    server: RealServer, mode: str = LATEST, *, token: str = TOKEN, name: str | None = None
) -> AsyncIterator[Client]:
    """Connect with the official Python SDK, which names a client that has no name."""
    info = None if name is None else Implementation(name=name, version="1")
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(
            streamable_http_client(endpoint(server), http_client=http), mode=mode, client_info=info
        ) as client,
    ):
        yield client


async def opened(client: Client, **asked: Any) -> str:
    """Open a session and return its id."""
    answered = await client.call_tool("open_session", {"agent": "tester", **asked})
    assert not answered.is_error, answered
    return str(answered.structured_content["session_id"])


def text_of(answered: CallToolResult) -> str:
    """Return what a model reads first."""
    block = answered.content[0]
    assert isinstance(block, TextContent)
    return block.text
