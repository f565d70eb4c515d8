"""`jupyter agent-exec` in a person's notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.person import Person, person_at, runs
from tests.real_server import Gate, RealServer, until


@pytest.fixture
def person(server: RealServer) -> Iterator[Person]:
    with person_at(server) as person:
        yield person


def answer(cli: Cli, *words: str) -> Any:
    done = cli(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sources(person: Person, path: str) -> list[str]:
    return [cell.source for cell in person.reads(path).cells]


def test_code_runs_in_a_notebook_and_its_cell_is_told(cli: Cli, person: Person) -> None:
    person.writes("told.ipynb", "x = 20")
    with person.at(person.opens("told.ipynb")) as kernel:
        runs(kernel, "x = 20")
    done = cli("run", "x + 1", "--notebook", "told.ipynb")
    assert (done.returncode, done.stdout) == (0, "21\n")
    assert " in told.ipynb through the file" in done.stderr
    assert sources(person, "told.ipynb") == ["x = 20", "x + 1"]


def test_cells_go_where_the_command_line_says(cli: Cli, person: Person) -> None:
    first, last = person.writes("placed.ipynb", "'first'", "'last'")
    for words in (
        ["'after'", "--after", first],
        ["'before'", "--before", last],
        ["'nowhere'", "--no-cell"],
        ["'replaced'", "--cell", first],
    ):
        assert cli("run", "--notebook", "placed.ipynb", *words).returncode == 0
    assert sources(person, "placed.ipynb") == ["'replaced'", "'after'", "'before'", "'last'"]
    done = cli("run", "--notebook", "placed.ipynb", "--cell", last, "-q")
    assert (done.returncode, done.stdout) == (0, "'last'\n")


def test_a_notebook_is_made_if_that_is_asked(cli: Cli, person: Person) -> None:
    done = cli("run", "1", "--notebook", "made.ipynb")
    assert done.returncode == 4
    assert "made.ipynb" in done.stderr
    assert cli("run", "1", "--notebook", "made.ipynb", "--create").returncode == 0
    assert sources(person, "made.ipynb") == ["1"]


def test_code_runs_in_a_kernel(cli: Cli, person: Person) -> None:
    kernel_id = str(person.ask("POST", "kernels", {"name": "python3"})["id"])
    execution = answer(cli, "run", "y = 1", "--kernel", kernel_id)
    assert (execution["kernel"]["id"], execution["document"]) == (kernel_id, None)
    shown = cli("show", execution["session_id"]).stdout
    assert f"runs in kernel {kernel_id}\n" in shown


def test_waiting_is_said_and_a_ctrl_c_takes_back_what_waits(
    cli: Cli, person: Person, gate: Gate
) -> None:
    person.writes("busy.ipynb", "")
    kernel_id = person.opens("busy.ipynb")
    with person.at(kernel_id) as kernel:
        kernel.execute(gate.source)
        gate.wait_until_it_runs()
        while person.ask("GET", f"kernels/{kernel_id}")["execution_state"] != "busy":
            pass
        process = cli.start("run", "1", "--notebook", "busy.ipynb", "--json")
        assert "waits behind a cell that somebody runs" in process.stderr.readline()
        process.ctrl_c()
        out, err = process.communicate()
        assert (process.returncode, json.loads(out)["status"]) == (130, "cancelled")
        assert "cancelling" in err
        gate.let_it_go_on()
        assert kernel.get_shell_msg(timeout=60)["content"]["status"] == "ok"


def test_a_session_in_a_notebook_is_shown(cli: Cli, person: Person) -> None:
    person.writes("listed.ipynb", "")
    person.opens("listed.ipynb")
    execution = answer(cli, "run", "1", "--notebook", "listed.ipynb", "--agent", "me", "--keep")
    session_id = execution["session_id"]
    placed = f"  cell {execution['id']} in listed.ipynb through the file\n"
    until(lambda: placed in cli("show", session_id).stdout)
    assert "runs in listed.ipynb\n" in cli("show", session_id).stdout
    rows = cli("sessions", "--open").stdout.splitlines()
    (row,) = (row for row in rows if row.startswith(session_id))
    assert row.split()[-2:] == ["“me”", "listed.ipynb"]
