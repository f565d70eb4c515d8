"""`jupyter agent-exec review`."""

from __future__ import annotations

import json

import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.cli.command import Cli
from tests.real_server import RealServer


@pytest.fixture
def worked(server: RealServer) -> tuple[str, str]:
    """The ids of a session and of what it ran."""
    with AgentExecClient(server.url, server.token) as client:
        with client.open_session("surveyor") as session:
            ran = session.run("1 + 1")
            session.run("2 + 2")
        return session.id, ran.id


def test_an_execution_is_reviewed_and_that_is_taken_back(cli: Cli, worked: tuple[str, str]) -> None:
    _, execution = worked
    done = cli("review", execution, "--flag", "--comment", "odd \x1b[2J")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{execution}  flagged by ")
    assert ": odd " in done.stdout
    assert "\x1b" not in done.stdout
    done = cli("review", execution, "--comment", "well", "--json")
    assert json.loads(done.stdout)["review"]["comment"] == "well"
    assert json.loads(done.stdout)["review"]["verdict"] is None
    assert cli("review", execution, "--clear").stdout == f"{execution}  not reviewed\n"


def test_what_has_no_review_in_a_session_is_reviewed(cli: Cli, worked: tuple[str, str]) -> None:
    session, first = worked
    cli("review", first, "--flag")
    assert len(json.loads(cli("review", session, "--approve", "--json").stdout)) == 1
    shown = json.loads(cli("show", session, "--json").stdout)["executions"]
    assert [each["review"]["verdict"] for each in shown] == ["flagged", "approved"]
    assert cli("review", session, "--clear").stdout.count("  not reviewed\n") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x_1"], "--approve"),
        (["y_1", "--approve"], "an id begins with"),
        (["x_1", "--clear", "--comment", "c"], "--clear"),
        (["x_1", "--flag", "--approve"], "not allowed with"),
    ],
)
def test_what_makes_no_sense_is_said(cli: Cli, words: list[str], told: str) -> None:
    done = cli("review", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
