"""People mint, list and revoke agent tokens on the command line, and agents use them there."""

from __future__ import annotations

import json

import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.cli.command import Cli
from tests.real_server import RealServer


def test_a_token_is_shown_once_and_runs_code_until_it_is_revoked(
    cli: Cli, server: RealServer
) -> None:
    minted = cli("token", "create", "Analyst", "--per-minute", "5")
    assert minted.returncode == 0, minted.stderr
    secret = minted.stdout.strip()
    id = secret.removeprefix("jaex_").rpartition("_")[0]
    assert f"{id} may exec:scratch, files until " in minted.stderr
    environ = {"JUPYTER_AGENT_EXEC_URL": server.url, "JUPYTER_AGENT_EXEC_TOKEN": secret}
    done = cli("run", "print('hello')", **environ)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    listed = cli("token", "list").stdout
    assert id in listed
    assert "Analyst" in listed
    assert secret not in listed + cli("token", "list", "--json").stdout
    refused = cli("token", "list", **environ)
    assert refused.returncode == 4
    assert "for people only" in refused.stderr
    assert cli("token", "revoke", id).stdout == f"{id}  revoked\n"
    refused = cli("run", "1", **environ)
    assert refused.returncode == 4
    assert "was revoked; ask the person for another" in refused.stderr
    assert id not in cli("token", "list").stdout
    everything = json.loads(cli("token", "list", "--all", "--json").stdout)
    (told,) = [each for each in everything if each["id"] == id]
    assert told["status"] == "revoked"


def test_what_is_asked_for_is_what_is_minted(cli: Cli) -> None:
    words = "--scope exec:notebook:work/* --scope files --expires-in 90m --approval always"
    caps = "--per-minute 1 --at-once 2 --timeout 3 --output-bytes 4000 --kernels 5"
    minted = json.loads(cli("token", "create", "a", *words.split(), *caps.split(), "--json").stdout)
    token = minted["token"]
    assert token["scopes"] == ["exec:notebook:work/*", "files"]
    assert token["approval"] == "always"
    assert list(token["caps"].values()) == [1, 2, 3, 4000, 5]
    assert minted["secret"].startswith(f"jaex_{token['id']}_")


@pytest.mark.parametrize("client", ["claude-code", "mcp", "vscode", "mcp-stdio", "python", "curl"])
def test_what_to_paste_can_be_asked_for(cli: Cli, client: str) -> None:
    pasted = cli("token", "create", "a", "--config", client)
    assert pasted.returncode == 0, pasted.stderr
    assert "jaex_t_" in pasted.stdout
    assert "jaex_t_" not in pasted.stderr
    if client.startswith("mcp"):
        assert list(json.loads(pasted.stdout)) == ["mcpServers"]


def test_the_python_that_is_to_be_pasted_runs(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    pasted = cli("token", "create", "a", "--config", "python").stdout
    exec(compile(pasted, "pasted", "exec"), {})
    assert capsys.readouterr().out == "2\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create"], 2, "LABEL"),
        (["create", "a", "--expires-in", "8"], 2, "not a number with m, h or d"),
        (["create", "a", "--expires-in", "31d"], 4, "expires_in"),
        (["create", "a", "--scope", "everything"], 4, "there is no scope 'everything'"),
        (["create", "a", "--config", "nothing"], 2, "invalid choice: 'nothing'"),
        (["revoke", "t_01JD0000000000000000000000"], 4, "no such token"),
    ],
)
def test_what_cannot_be_is_told_and_makes_no_token(
    cli: Cli, server: RealServer, words: list[str], code: int, said: str
) -> None:
    with AgentExecClient(server.url, server.token) as client:
        before = client.tokens()
        refused = cli("token", *words)
        assert (refused.returncode, refused.stdout) == (code, "")
        assert said in refused.stderr
        assert client.tokens() == before
