from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from jupyter_agent_exec.cli import exit_codes
from jupyter_agent_exec.client import AgentExecClient, Session
from tests.cli.command import Cli
from tests.real_server import RealServer


@pytest.fixture
def kept(server: RealServer) -> Iterator[Session]:
    """A session that is open and has variables."""
    with AgentExecClient(server.url, server.token) as client, client.open_session() as session:
        session.run("quokka = 'a\\x1b[2Jb'\nnumbers = [1, 2, 3]")
        yield session


def test_variables_are_listed(cli: Cli, kept: Session) -> None:
    done = cli("variables", kept.id)
    assert done.stdout.splitlines() == [
        "NAME     TYPE  SIZE  VALUE",
        "numbers  list  3     [1, 2, 3]",
        "quokka   str   6     'a\\x1b[2Jb'",
    ]
    done = cli("variables", kept.id, "-n", "1")
    assert "1 more" in done.stderr
    told = json.loads(cli("variables", kept.id, "QUO", "--json").stdout)
    assert [each["name"] for each in told["variables"]] == ["quokka"]


def test_packages_are_listed(cli: Cli, kept: Session) -> None:
    head, row = cli("packages", kept.id, "pyzmq").stdout.splitlines()
    assert head.split()[0] == "PACKAGE"
    assert (row.split()[0], row.split()[-1]) == ("pyzmq", "zmq")
    told = json.loads(cli("packages", kept.id, "pyzmq", "--json").stdout)
    assert told["packages"][0]["import_names"] == ["zmq"]


def test_a_session_that_is_closed_is_refused(cli: Cli, kept: Session) -> None:
    kept.close()
    done = cli("variables", kept.id)
    assert done.returncode == exit_codes.REFUSED
    assert "closed" in done.stderr


def test_values_are_told_after_the_outputs(cli: Cli) -> None:
    values = ["--value", "n=len(x)", "--value", "x=x", "--value", "bad=y", "--value", "s={1}"]
    done = cli("run", "x = ['ü']\nprint('ran')", *values)
    assert done.returncode == exit_codes.OK
    assert done.stdout.splitlines() == ["ran", "n = 1", 'x = ["ü"]', "s = {1}"]
    assert "bad: NameError: name 'y' is not defined" in done.stderr
    told = json.loads(cli("run", "x = 1", "--value", "x=x == 1", "--json").stdout)
    assert told["values"] == {"x": {"status": "ok", "json": True}}
    done = cli("run", "1", "--value", "x")
    assert done.returncode == exit_codes.USAGE
    assert "--value takes NAME=value" in done.stderr
