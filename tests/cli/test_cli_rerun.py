"""`rerun`: what it shows of each cell and file, as in run-again.md, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.cli.command import Cli
from tests.real_server import PROJECT, RealServer


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook whose second cell depends on a file."""
    (tmp_path / "rows").write_text("3")
    cells = [
        nbformat.v4.new_code_cell(
            source, outputs=[nbformat.v4.new_output("stream", text=text)], execution_count=1
        )
        for source, text in (
            ("print('one')", "one\n"),
            (f"print(open({str(tmp_path / 'rows')!r}).read(), 'rows')", "3 rows\n"),
        )
    ]
    path = tmp_path / "analysis.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


SAVED = ("before.ipynb", "now.ipynb")


def nbdiff(folder: Path) -> str:
    """Return what nbdime says about the saved notebooks."""
    script = "import sys; from nbdime.nbdiffapp import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "--no-color", "--no-git", "--no-use-diff", "-D"]
    done = subprocess.run(
        [*command, *SAVED],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PROJECT / ".make" / "nbdime")},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def test_outputs_as_before_are_exit_code_0(cli: Cli, notebook: Path) -> None:
    done = cli("rerun", "analysis.ipynb")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 same"


def test_a_difference_is_shown_and_is_exit_code_1(cli: Cli, notebook: Path, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("4")
    done = cli("rerun", "analysis.ipynb")
    assert done.returncode == 1
    assert "What the code printed to stdout differs." in done.stdout
    assert "-3 rows" in done.stdout
    assert "+4 rows" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 same, 1 differs"
    ignored = cli("rerun", "analysis.ipynb", "--ignore", r"\d rows", "--save", "saved")
    assert ignored.returncode == 0
    shown = nbdiff(tmp_path / "saved")
    assert [line for line in shown.splitlines() if line[:1] in "+-"][2:] == [
        "-  3 rows",
        "+  4 rows",
    ]


def test_a_session_runs_again(cli: Cli, tmp_path: Path) -> None:
    ran: dict[str, Any] = json.loads(cli("run", "print('x')", "--keep", "--json").stdout)
    (tmp_path / "sales.csv").write_text("1")
    put = cli("files", ran["session_id"], "put", "sales.csv")
    assert put.returncode == 0, put.stderr
    change = "print(open('sales.csv', 'w').write('2'))"
    changed = json.loads(cli("run", change, "--session", ran["session_id"], "--json").stdout)
    done = cli("rerun", ran["session_id"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "uploaded file sales.csv  changed"
    told = json.loads(cli("rerun", ran["session_id"], "--save", "saved", "--json").stdout)
    assert [(cell["of"], cell["verdict"]) for cell in told["cells"]] == [
        (ran["id"], "same"),
        (changed["id"], "same"),
    ]
    assert told["of"] == ran["session_id"]
    assert [file["verdict"] for file in told["inputs"]] == ["changed"]
    notebooks = [nbformat.read(tmp_path / "saved" / name, 4) for name in SAVED]
    assert [[cell.id for cell in each.cells] for each in notebooks] == 2 * [
        [ran["id"], changed["id"]]
    ]


def test_a_closed_session_is_restored(cli: Cli, server: RealServer) -> None:
    with (
        AgentExecClient(server.url, server.token) as client,
        client.open_session(agent="tester") as session,
    ):
        session.run("import math; x = 1")
        session.run("open('made.txt', 'w').write('x')")
    planned = cli("restore", session.id, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "would run  import math; x = 1" in planned.stdout
    assert "would run  open('made.txt', 'w').write('x')" in planned.stdout
    done = cli("restore", session.id)
    assert done.returncode == 0, done.stderr
    assert "back      math, x" in done.stdout
    assert f"session {session.id}" not in done.stderr
    assert json.loads(cli("restore", session.id, "--json").stdout)["status"] == "finished"


def test_what_is_neither_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    assert cli("rerun", "missing.ipynb").returncode == 2
    (tmp_path / "text.ipynb").write_text("no JSON")
    assert cli("rerun", "text.ipynb").returncode == 2
    assert cli("rerun", "s_0").returncode == 4
