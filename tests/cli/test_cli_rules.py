"""The command line says which code would ask in the mode `rules`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.real_server import RealServer, real_server

NOT_A_GUARD = "a convenience, not a guard"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("rules")) as running:
        yield running


@pytest.fixture
def cli(server: RealServer, tmp_path: Path) -> Cli:
    return Cli(server.environ, tmp_path)


def test_a_source_a_file_or_standard_input_is_judged_without_running(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("rules", "import os\nos.remove('x')")
    assert (done.returncode, done.stdout) == (
        0,
        "Asks because line 2 deletes a file: os.remove.\n",
    )
    assert NOT_A_GUARD in done.stderr
    file = tmp_path / "analysis.py"
    file.write_text("print(sum([1, 2]))")
    assert cli("rules", str(file)).stdout == "Needs no approval.\n"
    assert cli("rules", "open('x', 'w')", "--allow", "files").stdout == "Needs no approval.\n"
    told = json.loads(cli("rules", "!ls", "--json").stdout)
    assert (told["asks"], told["reasons"][0]["kind"]) == (True, "shell")
    assert cli("rules", "1", "--allow", "dynamic").returncode == 2


def test_a_dry_run_over_the_history_counts_what_would_have_asked(cli: Cli) -> None:
    for source in ("x = 1", "!true", "open('a.txt', 'w').close()", f"y = 1\n{'#' * 600}\nwrong()"):
        cli("run", "--code", source)
    before = json.loads(cli("search", "--json").stdout)
    done = cli("rules")
    lines = done.stdout.splitlines()
    assert [line.split()[1:3] for line in lines[1:-1]] == [
        ["3", "unknown"],
        ["1", "files"],
        ["1", "shell"],
    ]
    assert lines[-1] == "3 of 4 executions would ask (unknown 1, files 1, shell 1)."
    assert NOT_A_GUARD in done.stderr
    allowed = json.loads(cli("rules", "--allow", "files", "shell", "--json").stdout)
    assert (allowed["executions"], allowed["kinds"]) == (4, {"unknown": 1})
    assert json.loads(cli("search", "--json").stdout) == before


def test_what_the_rules_let_through_is_set_and_the_reason_is_shown(
    cli: Cli, server: RealServer
) -> None:
    shown = cli("policy", "--scratch", "rules", "--allow", "read")
    assert "rules     let read through\n" in shown.stdout
    assert NOT_A_GUARD in shown.stderr
    process = cli.start("run", "--code", "import os\nos.rmdir('x')")
    assert process.stderr is not None
    assert "needs approval" in process.stderr.readline()
    shown = cli("pending")
    assert "Asks because line 2 deletes a file: os.rmdir.\n" in shown.stdout
    (asking,) = json.loads(cli("pending", "--json").stdout)["executions"]
    assert asking["approval"]["reasons"][0]["line"] == 2
    cli("reject", asking["id"])
    process.communicate()
    assert cli("run", "--code", "print(1 + 1)").stdout == "2\n"
    session = asking["session_id"]
    assert cli("export", session, "-o", "asked.ipynb").returncode == 0
    assert cli("verify", "asked.ipynb", "--history", str(server.history_dir)).returncode == 0
    assert cli("verify", "--history", str(server.history_dir)).returncode == 0
