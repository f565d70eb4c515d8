"""A server whose kernels run behind a gateway: agents are refused in the same words everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.command import Cli
from tests.mcp.mcp_clients import LATEST, text_of
from tests.real_server import TOKEN
from tests.server_process import ServerProcess, server_process

CODE = "gateway_not_supported"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the kernels of another one, which is a gateway as good as any."""
    behind, folder = (tmp_path_factory.mktemp(name) for name in ("behind", "before"))
    with server_process(behind) as gateway:
        options = (
            f"--gateway-url={gateway.api.removesuffix('/api/agent-exec/')}",
            f"--GatewayClient.auth_token={TOKEN}",
        )
        (folder / "root").mkdir()
        (folder / "root" / "own.ipynb").write_text(
            '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
        )
        with (folder / "log").open("w") as log, server_process(folder, *options, log=log) as server:
            yield server
        kernels = gateway.ask("GET", "../kernels").json()
    assert kernels == [], "a kernel was started there"
    assert "Agents cannot run code: The kernels of this" in (folder / "log").read_text()


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "scratch"},
        {"kind": "scratch", "isolated": True},
        {"kind": "notebook", "path": "own.ipynb"},
        {"kind": "kernel", "kernel_id": "0"},
    ],
)
def test_no_session_is_opened(server: ServerProcess, target: dict[str, object]) -> None:
    asked = {"agent": {"name": "tester"}, "target": target}
    refused = server.ask("POST", "sessions", asked)
    assert (refused.status_code, refused.json()["code"]) == (501, CODE)
    assert "behind a gateway" in refused.json()["message"]
    assert server.get("sessions")["sessions"] == []


def test_the_command_line_says_so(server: ServerProcess, tmp_path: Path) -> None:
    url = server.api.removesuffix("api/agent-exec/")
    environ = {"JUPYTER_AGENT_EXEC_URL": url, "JUPYTER_AGENT_EXEC_TOKEN": TOKEN}
    done = Cli({**os.environ, **environ}, tmp_path)("run", "--code", "1")
    assert done.returncode == 4, done
    assert "behind a gateway" in done.stderr


async def test_mcp_says_so(server: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{server.api}mcp", http_client=http), mode=LATEST) as client,
    ):
        refused = await client.call_tool("open_session", {"agent": "tester"})
    assert refused.is_error
    assert text_of(refused).startswith(f"{CODE}: ")
