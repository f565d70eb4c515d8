"""The command line decides what agents may run, and says that it waits for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.text.lookalikes import exact
from tests.cli.command import Cli, Started, at_terminal
from tests.person import person_at
from tests.real_server import RealServer, real_server


@pytest.fixture(scope="module")
def asking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(
        tmp_path_factory.mktemp("asking"), approval={"scratch": "always", "notebook": "always"}
    ) as running:
        yield running


@pytest.fixture
def cli(asking_server: RealServer, tmp_path: Path) -> Cli:
    return Cli(asking_server.environ, tmp_path)


def running(cli: Cli, source: str) -> tuple[Started, str]:
    """Run a source, until it asks; return the process and the execution's id."""
    process = cli.start("run", "--code", source)
    assert (
        "needs approval: in JupyterLab, or by `jupyter agent-exec approve x_"
        in process.stderr.readline()
    )
    (asking,) = json.loads(cli("pending", "--json").stdout)["executions"]
    return process, asking["id"]


def test_a_run_waits_until_somebody_approves_it(cli: Cli) -> None:
    process, id = running(cli, "print('hello')")
    shown = cli("pending").stdout
    assert f"{id}  full access, for the user, in " in shown
    assert "; calls itself “command-line”\n" in shown
    assert "   1 | print('hello')\n" in shown
    done = cli("approve", id, "--yes")
    assert done.returncode == 0
    assert f"{id}  approved by the user\n" in done.stdout
    assert "   1 | print('hello')\n" in done.stderr
    out, _ = process.communicate()
    assert (process.returncode, out) == (0, "hello\n")
    again = cli("approve", id, "--yes")
    assert again.returncode == 4
    assert "approved by" in again.stderr


def test_what_is_rejected_is_exit_code_5_and_says_why(cli: Cli) -> None:
    process, id = running(cli, "drop()")
    assert cli("reject", id, "--reason", "Never.").returncode == 0
    _, said = process.communicate()
    assert process.returncode == 5
    assert "rejected it and says: Never." in said
    assert cli("pending").stderr == "Nothing waits for a decision.\n"


def test_an_agent_is_let_run_more_until_its_grant_ends(cli: Cli, asking_server: RealServer) -> None:
    with AgentExecClient(asking_server.url, asking_server.token) as client:
        session = client.open_session("claude")
        (asking,) = session.submit_steps(["1"])
        assert cli("approve", asking.id, "--grant", "restart", "--yes").returncode == 0
        assert session.run("2").status == "ok"
        assert "“claude” (granted until restart)" in cli("sessions").stdout
        done = cli("grant", "end", session.id)
        assert done.stdout == f"{session.id}  “claude” has to ask again\n"
        (again,) = session.submit_steps(["3"])
        assert again.status == "awaiting_approval"
        assert "There is no grant" in cli("grant", "end", session.id).stdout
        assert "granted until" not in cli("sessions").stdout
        session.close()


def test_another_source_can_be_let_run(cli: Cli) -> None:
    process, id = running(cli, "print('all')")
    done = cli("approve", id, "--edit", "-", "--yes", stdin="print('some')\n")
    assert "   1 | print('some')\n" in done.stderr
    assert process.communicate()[0] == "some\n"


def test_without_a_terminal_nothing_is_approved_by_accident(cli: Cli) -> None:
    process, id = running(cli, "1")
    done = cli("approve", id, stdin="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    cli("reject", id)
    process.communicate()


@pytest.mark.parametrize(("said", "code"), [("n", 5), ("yes", 0)])
def test_at_a_terminal_it_is_asked(cli: Cli, said: str, code: int) -> None:
    process, id = running(cli, "1")
    done, asked = at_terminal(cli, "approve", id, typed=said)
    assert "Let this run? [y/N]" in asked
    assert done == code
    if code:
        cli("reject", id)
    process.communicate()


def test_a_cell_that_would_change_is_shown_with_what_changes(
    cli: Cli, asking_server: RealServer
) -> None:
    with person_at(asking_server) as person:
        [cell] = person.writes("asked.ipynb", "x = 1\ny = 2")
        process = cli.start("run", "x = 1\ny = 3", "--notebook", "asked.ipynb", "--cell", cell)
        assert "needs approval" in process.stderr.readline()
        (asking,) = json.loads(cli("pending", "--json").stdout)["executions"]
        shown = cli("pending").stdout
        assert "in asked.ipynb, " in shown
        assert "     | x = 1\n   - | y = 2\n   + | y = 3\n" in shown
        assert "\x1b[32m   + | y = 3\x1b[0m\n" in at_terminal(cli, "pending")[1]
        cli("reject", asking["id"])
        process.communicate()


def test_hidden_characters_are_seen_before_anything_is_approved(cli: Cli) -> None:
    process, id = running(cli, "x = 'a\u202eb'\u200b # \x1b[8m")
    shown = cli("pending").stdout
    assert "x = 'a<U+202E>b'<U+200B> # <U+001B>[8m" in shown
    cli("reject", id)
    process.communicate()


def test_agents_are_paused_and_go_on(cli: Cli) -> None:
    assert "All agents are paused since " in cli("pause").stdout
    assert "All agents are paused since " in cli("pending").stdout
    assert cli("resume").stdout == "Agents go on.\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc d", "a\tb\nc d"),
        ("é 漢 😀", "é 漢 😀"),
        ("\r\x0b\x7f\x85", "<U+000D><U+000B><U+007F><U+0085>"),
        ("\u2066\u2028\u00a0\u3164\ufe0f\U000e0041", None),
        ("\u0440assword; \uff45val(x)", "<U+0440>assword; <U+FF45>val(x)"),
        ("שלום", "<U+05E9><U+05DC><U+05D5><U+05DD>"),
    ],
)
def test_a_source_is_shown_exactly(text: str, shown: str | None) -> None:
    assert exact(text) == (shown or "".join(f"<U+{ord(char):04X}>" for char in text))
