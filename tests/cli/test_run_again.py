"""A session's code runs again with papermill, and nbdime compares the outputs: run-again.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cli.command import Cli
from tests.real_server import PROJECT, RealServer

NBDIFF = "import sys; from nbdime.nbdiffapp import main; sys.exit(main())"


def nbdiff(folder: Path) -> list[str]:
    """Return the lines that differ, as nbdime says."""
    command = [sys.executable, "-c", NBDIFF, "--no-color", "--no-git", "--no-use-diff"]
    done = subprocess.run(
        [*command, "--outputs", "before.ipynb", "now.ipynb"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PROJECT / ".make" / "nbdime")},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line[:1] in "+-"][2:]


def test_the_outputs_of_a_session_are_compared_with_those_of_now(
    cli: Cli, server: RealServer, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    rows.write_text("3")
    ran = json.loads(cli("run", "x = 'rows'; x", "--keep", "--json").stdout)["session_id"]
    cli("run", f"print(open({str(rows)!r}).read(), x)", "--session", ran)
    assert cli("export", ran, "--clean", "--output", "before.ipynb").returncode == 0

    def run_again() -> list[str]:
        papermill = [sys.executable, "-m", "papermill", "before.ipynb", "now.ipynb"]
        subprocess.run(papermill, cwd=tmp_path, env=server.environ, capture_output=True, check=True)
        return nbdiff(tmp_path)

    assert run_again() == []
    rows.write_text("4")
    assert run_again() == ["-  3 rows", "+  4 rows"]
