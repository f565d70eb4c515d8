"""`jupyter agent-exec erase`."""

from __future__ import annotations

import json

import pytest

from jupyter_agent_exec.cli import exit_codes
from jupyter_agent_exec.client import AgentExecClient, Session
from jupyter_agent_exec.journal.findings import Outcome
from tests.cli.command import Cli
from tests.real_server import RealServer


def ran(server: RealServer, source: str, *, end: bool = True) -> tuple[str, str]:
    """Run code in a session of its own; return the ids of the session and the execution."""
    with AgentExecClient(server.url, server.token) as client:
        session: Session = client.open_session("surveyor")
        execution = session.run(source)
        if end:
            session.close()
        return session.id, execution.id


def source_of(server: RealServer, execution_id: str) -> str:
    with AgentExecClient(server.url, server.token) as client:
        return client.execution(execution_id).execution.source


def test_it_shows_what_goes_asks_and_erases(cli: Cli, server: RealServer) -> None:
    session, execution = ran(server, "password = 'correct horse'")
    dry = cli("erase", execution, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"{session}  1 " in dry.stdout
    assert "goes" in dry.stdout
    assert "are theirs" in dry.stderr
    unasked = cli("erase", execution)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (exit_codes.USAGE, True)
    assert source_of(server, execution) != ""
    done = cli("erase", execution, "--yes", "--reason", "A password.")
    assert "erased" in done.stdout
    assert source_of(server, execution) == ""
    checked = cli("verify", session, "--history", str(server.history_dir))
    assert checked.returncode == Outcome.WHOLE, checked.stdout
    assert "A password." in checked.stdout
    assert "every payload is there, except what was erased" in checked.stdout
    again = cli("erase", execution, "--yes")
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to erase" in again.stderr


def test_a_text_is_read_from_standard_input(cli: Cli, server: RealServer) -> None:
    _, execution = ran(server, "pw = 'battery staple'")
    _, other = ran(server, "1 + 1")
    told = cli("erase", "--text", "-", "--yes", "--json", stdin="battery staple\n")
    assert [each["payloads"] >= 1 for each in json.loads(told.stdout)["sessions"]] == [True]
    assert (source_of(server, execution), source_of(server, other)) == ("", "1 + 1")


def test_an_open_session_is_to_be_closed_first(cli: Cli, server: RealServer) -> None:
    session, execution = ran(server, "x = 'still here'", end=False)
    done = cli("erase", session, "--yes")
    assert "close it first" in done.stdout
    assert source_of(server, execution) == "x = 'still here'"
    cli("stop", session, "--close")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Name one thing"),
        (["x_1", "--agent", "a"], "Name one thing"),
        (["y_1"], "an id begins with"),
    ],
)
def test_what_makes_no_sense_is_said(cli: Cli, words: list[str], told: str) -> None:
    done = cli("erase", *words)
    assert (done.returncode, done.stdout) == (exit_codes.USAGE, "")
    assert told in done.stderr
