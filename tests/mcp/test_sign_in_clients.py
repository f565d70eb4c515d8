"""Programs that others wrote sign in, each at a real server at the root and below a path."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.command import Cli, at_terminal
from tests.mcp.mcp_clients import CLIENTS, NODE_MODULES, SECONDS, endpoint
from tests.mcp.person_in_browser import signed_in
from tests.mcp.signing_in import SigningIn
from tests.real_server import PROJECT, TOKEN, RealServer, real_server

AGENTS = Path(__file__).with_name("agents") / "node_modules" / ".bin"


@pytest.fixture(scope="module", params=["/", "/user/ada%40example.org/a%20b/"])
def any_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("server")
    with real_server(folder, f"--ServerApp.base_url={request.param}") as server:
        yield server


@pytest.fixture
def browsing(tmp_path: Path) -> dict[str, str]:
    """An environment in which a browser opens that needs no screen, and which forgets."""
    browser = tmp_path / "browser"
    command = shlex.join([sys.executable, "-m", "tests.mcp.person_in_browser"])
    browser.write_text(f'#!/bin/sh\ncd {shlex.quote(str(PROJECT))} && {command} "$1"\n')
    browser.chmod(0o700)
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return {
        **{name: value for name, value in os.environ.items() if name not in screens},
        "BROWSER": str(browser),
        "HOME": str(tmp_path),
        "MCP_REMOTE_CONFIG_DIR": str(tmp_path),
        "TEST_TOKEN": TOKEN,
        "MCP_AUTO_OPEN_ENABLED": "true",  # of the inspector, which has no terminal here
    }


async def test_the_python_sdk_signs_in_and_renews(any_server: RealServer) -> None:
    program = SigningIn(endpoint(any_server))
    assert "execute" in await program.tools()
    first = program.kept
    await program.renew()
    assert program.kept is not None
    assert program.kept != first
    assert "execute" in await program.tools()
    assert len(program.sent) == 1, "the person was asked once"


@pytest.mark.parametrize("sdk", ["client", "sdk"])
def test_the_typescript_sdks_sign_in_and_renew(any_server: RealServer, sdk: str) -> None:
    script = str(CLIENTS / "typescript_sign_in.mjs")
    with subprocess.Popen(
        ["node", script, sdk, endpoint(any_server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "it did not ask for a browser"
        out, _ = process.communicate(f"{signed_in(address)}\n", timeout=60)
    assert process.returncode == 0, out
    told = json.loads(out)
    assert "execute" in told["tools"]
    assert told["first"] != told["second"]
    assert told["first"].split("_")[2] == told["second"].split("_")[2], "it is the same token"


def test_the_inspector_signs_in(server: RealServer, browsing: dict[str, str]) -> None:
    inspector = str(NODE_MODULES / ".bin" / "mcp-inspector")
    done = subprocess.run(
        [inspector, "--cli", endpoint(server), "--transport", "http", "--method", "tools/list"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=browsing,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"execute"' in done.stdout


async def test_mcp_remote_signs_in(server: RealServer, browsing: dict[str, str]) -> None:
    remote = StdioServerParameters(
        command=str(NODE_MODULES / ".bin" / "mcp-remote"),
        args=[endpoint(server), "--allow-http"],
        env=browsing,
    )
    async with asyncio.timeout(SECONDS), Client(stdio_client(remote)) as client:
        tools: Any = (await client.list_tools()).tools
        assert "execute" in [tool.name for tool in tools]


@pytest.mark.nightly
@pytest.mark.parametrize(("client", "works"), [("claude-code", "Connected"), ("codex", "OAuth")])
def test_the_command_connects_a_client_that_signs_in(
    any_server: RealServer, browsing: dict[str, str], tmp_path: Path, client: str, works: str
) -> None:
    program = client.partition("-")[0]
    if not (AGENTS / program).exists():
        pytest.skip(f"there is no {program}: make .make/agents")
    browsing["PATH"] = f"{AGENTS}{os.pathsep}{browsing['PATH']}"
    (tmp_path / ".codex").mkdir()
    cli = Cli(any_server.environ, tmp_path)
    code, shown = at_terminal(cli, "connect", client, "--yes", **browsing)
    assert code == 0, shown
    listed = [str(AGENTS / program), "mcp", "list"]
    done = subprocess.run(listed, env=browsing, capture_output=True, text=True, check=True)
    assert works in done.stdout
    assert cli("connect", client, "--remove", "--yes", **browsing).returncode == 0
    done = subprocess.run(listed, env=browsing, capture_output=True, text=True, check=True)
    assert works not in done.stdout
