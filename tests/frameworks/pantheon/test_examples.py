"""Everyday scripts, which differ from those with Pantheon's own in one import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
EXAMPLES = PROJECT / "examples" / "frameworks"
OURS = "jupyter_agent_exec.adapters.pantheon"
THEIRS = "pantheon.toolsets.python"


@pytest.fixture
def output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """Run a script in a folder that has a server already; return what it prints."""

    def output(source: str) -> str:
        monkeypatch.chdir(folder)
        capfd.readouterr()
        exec(compile(source, "example.py", "exec"), {"__name__": "__main__"})
        return capfd.readouterr().out

    return output


def theirs(source: str, folder: Path) -> str:
    """Run a script with Pantheon's own tool set."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source.replace(OURS, THEIRS)],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_csv_file_is_analysed_as_with_pantheons_own(
    output: Callable[[str], str], tmp_path: Path
) -> None:
    source = (EXAMPLES / "pantheon_csv.py").read_text()
    said = output(source)
    assert said.splitlines() == [
        "(4, 3)",
        "['region', 'month', 'amount']",
        "{'north': 95, 'south': 55}",
        "most is sold in the north",
        "150.0",
    ]
    assert source.count(OURS) == 1
    assert theirs(source, tmp_path) == said


def test_a_model_is_trained_as_with_pantheons_own(
    output: Callable[[str], str], tmp_path: Path
) -> None:
    source = (EXAMPLES / "pantheon_model.py").read_text()
    said = output(source)
    assert said.splitlines()[:2] == ["(150, 4)", "(105, 45)"]
    known = int(said.splitlines()[-1].split()[0])
    assert 40 <= known <= 45
    assert theirs(source, tmp_path) == said


def test_several_plots_in_one_call_are_all_there(
    output: Callable[[str], str], folder: Path
) -> None:
    paths = output((EXAMPLES / "pantheon_plots.py").read_text()).splitlines()
    figures = [(folder / path).read_bytes() for path in paths]
    assert len(set(figures)) == 2
    assert all(figure.startswith(b"\x89PNG") for figure in figures)


def test_the_example_of_the_documentation_runs(output: Callable[[str], str]) -> None:
    page = (PROJECT / "docs" / "how-to" / "frameworks" / "pantheon.md").read_text()
    assert output(page.split("```python\n", 1)[1].split("```", 1)[0]) == "42\n"
