"""`jupyter agent-exec connect` tells clients of the server that runs, and takes that back."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.text.connections import CHAT_TOKEN, connections
from tests.cli.command import Cli, at_terminal
from tests.real_server import RealServer, real_server

CLAUDE = """\
#!/bin/sh
echo "$@" >> {log}
[ "$2" != login ] || exit {code}
"""
OTHERS = {"mcpServers": {"other": {"command": "x"}}, "theme": "dunkelgrün"}


def mcp_url(server: RealServer) -> str:
    return f"{server.url.partition('?')[0].rstrip('/')}/api/agent-exec/mcp"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A home of its own, where `claude` writes down how it is called."""
    (tmp_path / "claude").write_text(CLAUDE.format(log=tmp_path / "log", code=0))
    (tmp_path / "claude").chmod(0o700)
    return {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/bin:/usr/bin"}


@pytest.fixture
def cursor(tmp_path: Path) -> Path:
    """Cursor's file."""
    return tmp_path / ".cursor" / "mcp.json"


def calls(tmp_path: Path) -> list[str]:
    log = tmp_path / "log"
    return log.read_text().splitlines() if log.exists() else []


def claudes_lines(server: RealServer) -> list[str]:
    [text] = [each.text for each in connections(mcp_url(server)) if each.name == "claude-code"]
    return [line.removeprefix("claude ") for line in text.splitlines()]


def test_the_lines_of_all_clients_have_the_servers_address(cli: Cli, server: RealServer) -> None:
    told = cli("connect")
    assert told.returncode == 0, told.stderr
    lines = [line.strip() for line in told.stdout.splitlines()]
    for each in connections(mcp_url(server)):
        assert each.title in lines
        assert {line.strip() for line in each.text.splitlines()} <= set(lines)
    assert told.stdout.count(mcp_url(server)) == 5
    assert server.token not in told.stdout


def test_the_address_is_the_one_that_users_reach(tmp_path: Path) -> None:
    public = "https://hub.example.org/user/ada/"
    with real_server(
        tmp_path, "--ServerApp.base_url=/user/ada/", environ={"JUPYTERHUB_PUBLIC_URL": public}
    ) as server:
        cli = Cli(server.environ, tmp_path)
        assert f" {public}api/agent-exec/mcp\n" in cli("connect").stdout
        named = cli("connect", "--url", server.url).stdout
        assert urlsplit(mcp_url(server)).path == "/user/ada/api/agent-exec/mcp"
        assert f" {mcp_url(server)}\n" in named
        assert public not in named


def test_behind_a_hub_that_does_not_tell_its_address_no_other_is_guessed(
    cli: Cli, server: RealServer
) -> None:
    behind = {"JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api"}
    refused = cli("connect", **behind)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "as your browser shows it: --url https://" in refused.stderr
    assert mcp_url(server) in cli("connect", "--url", server.url, **behind).stdout


def test_where_no_server_runs_it_says_what_to_start(cli_alone: Cli) -> None:
    refused = cli_alone("connect", "cursor", "--yes")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "Start one with `jupyter lab`" in refused.stderr


def test_a_client_with_commands_is_changed_after_a_yes(
    cli: Cli, server: RealServer, home: dict[str, str], tmp_path: Path
) -> None:
    unasked = cli("connect", "claude-code", **home)
    assert unasked.returncode == 2
    assert "add --yes" in unasked.stderr
    code, shown = at_terminal(cli, "connect", "claude-code", typed="n", **home)
    assert (code, calls(tmp_path)) == (5, [])
    assert "Nothing was changed." in shown
    code, shown = at_terminal(cli, "connect", "claude-code", typed="y", **home)
    assert code == 0, shown
    assert all(f"claude {line}" in shown for line in claudes_lines(server))
    before = "mcp remove --scope user jupyter"
    assert calls(tmp_path) == [before, *claudes_lines(server)]
    assert cli("connect", "claude-code", "--remove", "--yes", **home).returncode == 0
    assert calls(tmp_path)[4:] == [before]


def test_a_command_that_fails_or_is_missing_is_named(
    cli: Cli, home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "claude").write_text(CLAUDE.format(log=tmp_path / "log", code=7))
    failed = cli("connect", "claude-code", "-y", **home)
    assert failed.returncode == 1
    assert "claude mcp login jupyter has failed, with exit code 7." in failed.stderr
    assert "Then start" not in failed.stderr
    missing = cli("connect", "codex", "-y", **home)
    assert missing.returncode == 2
    assert "There is no codex here. Run this where it is installed:\ncodex mcp add" in (
        missing.stderr
    )


def test_a_clients_file_keeps_what_others_wrote_and_is_private(
    cli: Cli, server: RealServer, home: dict[str, str], cursor: Path
) -> None:
    cursor.parent.mkdir()
    cursor.write_text(json.dumps(OTHERS))
    assert cli("connect", "cursor", **home).returncode == 2
    assert json.loads(cursor.read_text()) == OTHERS
    assert cli("connect", "cursor", "-y", **home).returncode == 0
    ours = {"type": "http", "url": mcp_url(server)}
    servers = OTHERS["mcpServers"] | {"jupyter": ours}  # type: ignore[operator]
    assert json.loads(cursor.read_text()) == OTHERS | {"mcpServers": servers}
    assert stat.S_IMODE(cursor.stat().st_mode) == 0o600
    assert "dunkelgrün" in cursor.read_text()
    assert "nothing to change" in cli("connect", "cursor", "-y", **home).stderr
    assert cli("connect", "cursor", "--remove", "-y", **home).returncode == 0
    assert json.loads(cursor.read_text()) == OTHERS
    assert "nothing to change" in cli("connect", "cursor", "--remove", "-y", **home).stderr


def test_a_file_that_was_made_is_removed_again(
    cli: Cli, server: RealServer, home: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / ".vscode" / "mcp.json"
    code, _ = at_terminal(cli, "connect", "vscode", typed="y", **home)
    assert code == 0
    assert json.loads(file.read_text())["servers"]["jupyter"]["url"] == mcp_url(server)
    assert cli("connect", "vscode", "--remove", "-y", **home).returncode == 0
    assert not file.exists()


@pytest.mark.parametrize("text", ['{"mcpServers": {}} // mine', "[]", '{"mcpServers": []}'])
def test_a_file_in_another_form_stays_as_it_is(
    cli: Cli, home: dict[str, str], cursor: Path, text: str
) -> None:
    cursor.parent.mkdir()
    cursor.write_text(text)
    refused = cli("connect", "cursor", "-y", **home)
    assert refused.returncode == 2
    assert f"{cursor} is not JSON with the servers under 'mcpServers'" in refused.stderr
    assert '"url": "http://' in refused.stderr
    assert cursor.read_text() == text


def test_the_chats_of_jupyter_ai_get_a_token_and_give_it_back(cli: Cli, server: RealServer) -> None:
    file = Path(server.environ["JUPYTER_DATA_DIR"]) / CHAT_TOKEN

    def standing() -> dict[str, str]:
        with AgentExecClient(server.url, server.token) as client:
            return {each.id: each.status for each in client.tokens() if each.label == "Jupyter AI"}

    assert cli("connect", "jupyter-ai").returncode == 2
    code, shown = at_terminal(cli, "connect", "jupyter-ai", typed="n")
    assert (code, file.exists(), standing()) == (5, False, {})
    assert "exec:notebook" in shown
    assert str(file) in shown
    kept = []
    for _ in range(2):
        done = cli("connect", "jupyter-ai", "-y", "--expires-in", "1h")
        assert done.returncode == 0, done.stderr
        kept.append(json.loads(file.read_text()))
        assert kept[-1]["secret"] not in done.stdout + done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first, second = (each["id"] for each in kept)
    assert standing() == {first: "revoked", second: "active"}
    assert cli("connect", "jupyter-ai", "--remove", "-y").returncode == 0
    assert (file.exists(), standing()[second]) == (False, "revoked")
    assert "nothing to change" in cli("connect", "jupyter-ai", "--remove", "-y").stderr


def test_the_chats_of_a_server_on_another_machine_are_not_connected(
    cli: Cli, server: RealServer, tmp_path: Path
) -> None:
    elsewhere = {"JUPYTER_RUNTIME_DIR": str(tmp_path), "JUPYTER_DATA_DIR": str(tmp_path)}
    refused = cli(
        "connect", "jupyter-ai", "-y", "--url", server.url, "--token", server.token, **elsewhere
    )
    assert (refused.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "must run on this machine" in refused.stderr
