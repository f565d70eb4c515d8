"""The example and the demo, as `make demo` runs them."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.person import person_at, runs
from tests.real_server import PROJECT, RealServer, environment, real_server

PENGUINS = PROJECT / "examples" / "penguins"


def test_the_agent_is_below_100_lines() -> None:
    assert len((PENGUINS / "agent.py").read_text().splitlines()) < 100


def test_the_data_is_what_its_readme_says() -> None:
    with (PENGUINS / "penguins.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 344
    readme = (PENGUINS / "README.md").read_text()
    assert all(f"`{column}`" in readme for column in rows[0])
    assert "CC0" in readme


def test_the_demo_runs_exports_and_verifies(tmp_path: Path) -> None:
    output = tmp_path / "demo-output"
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--output", str(output)],
        cwd=PROJECT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Whole:") == 2
    for line in ("statuses    8 ok, 1 error", "images      2", "KeyError", "[image 1: "):
        assert line in done.stdout
    after = done.stdout.partition("What comes next")[2]
    assert "docs/tutorials/first-agent.md" in after
    notebook = nbformat.read(output / "penguins.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert len(notebook.cells) == 9
    kinds = [
        kind for cell in notebook.cells for out in cell.outputs for kind in out.get("data", {})
    ]
    assert kinds.count("image/png") == 2
    assert "text/html" in kinds


def test_the_demo_empties_no_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--output", str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "name another folder" in done.stderr
    assert (tmp_path / "thesis.txt").read_text() == "precious"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path) as running:
        yield running


def test_the_agent_runs_with_a_server_that_is_there(server: RealServer) -> None:
    done = subprocess.run(
        [sys.executable, str(PENGUINS / "agent.py")],
        env=server.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Correct the KeyError" in done.stdout


def test_the_agent_in_a_notebook_describes_the_persons_tables(server: RealServer) -> None:
    table = "import pandas as pd\nbirds = pd.DataFrame({'weight': [3.2, 4.1]})"
    with person_at(server) as person:
        person.writes("birds.ipynb", table)
        with person.at(person.opens("birds.ipynb")) as kernel:
            assert runs(kernel, table) == "ok"
        # Without a path it takes the one that is open.
        done = subprocess.run(
            [sys.executable, str(PROJECT / "examples" / "notebook" / "agent.py")],
            env=server.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        own, heading, found, described = person.reads("birds.ipynb").cells
    assert "birds.ipynb: 1 cells" in done.stdout
    assert own.source == table
    assert (heading.cell_type, heading.source.splitlines()[0]) == ("markdown", "## Tables")
    assert found.outputs[0].data["text/plain"] == "['birds']"
    assert described.source == "birds.describe()"
    assert "mean" in described.outputs[0].data["text/html"]
