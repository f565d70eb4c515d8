"""The Python programs of recipes.md do what the page says, in the order of the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec import errors
from jupyter_agent_exec.client import AgentExecClient
from tests.client.test_client_in_notebooks import person, sources
from tests.client.test_documented_examples import SALES
from tests.person import Person, runs
from tests.real_server import RealServer
from tests.test_code_blocks import BLOCKS

__all__ = ["person"]

RECIPES = [
    block for block in BLOCKS if block.page.name == "recipes.md" and block.language == "python"
]
LOAD = "import pandas as pd; sales = pd.read_csv('../sales.csv')"


@pytest.fixture
def names(
    server: RealServer, client: AgentExecClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return what a program has: the client, its class, and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUPYTER_AGENT_EXEC_URL", server.url)
    (server.root_dir / "sales.csv").write_text(SALES)
    return {"client": client, "AgentExecClient": AgentExecClient}


def follow(heading: str, names: dict[str, Any]) -> None:
    found = [block.text for block in RECIPES if block.heading == heading]
    assert found, heading
    for source in found:
        exec(source, names)


def opens_sales(person: Person) -> None:
    """Open the notebook as its user does, and run its first cell."""
    person.writes("work/sales.ipynb", LOAD, "'the end'")
    with person.at(person.opens("work/sales.ipynb")) as kernel:
        assert runs(kernel, LOAD) == "ok"


def test_a_csv_file_is_analysed_and_a_notebook_kept(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    follow("Analyse a CSV file and keep a notebook", names)
    assert "north    15.5\nsouth     8.0" in capsys.readouterr().out
    assert "sales.groupby" in Path("revenue.ipynb").read_text()


def test_a_cell_goes_below_the_first(
    names: dict[str, Any], person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    opens_sales(person)
    follow("Add a cell to the notebook that I have open", names)
    assert capsys.readouterr().out == "work/sales.ipynb ok\n"
    assert sources(person.reads("work/sales.ipynb")) == [LOAD, "sales.head(2)", "'the end'"]


def test_a_part_of_the_proposed_edits_is_kept(
    names: dict[str, Any], server: RealServer, person: Person
) -> None:
    person.writes("work/plan.ipynb", "1", "print('the end')")
    token = names["client"].mint_token(
        "Editor", ["exec:notebook", "edit:notebook"], edits="propose"
    )
    with AgentExecClient(server.url, token.secret) as agent:
        follow("Propose edits, and keep a part of them", names | {"agent": agent})
    assert sources(person.reads("work/plan.ipynb")) == ["# Sales", "1", "print('the end')"]
    assert names["client"].proposals("work/plan.ipynb") == []


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="trials need Linux")
def test_a_trial_shows_and_changes_nothing(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    follow("See what code would do before it runs", names)
    assert capsys.readouterr().out == "1 ['rows']\n[3, 1, 2]\n"


def test_long_code_says_how_far_it_is(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    follow("Run long code and read how far it is", names)
    *progress, last = capsys.readouterr().out.rstrip().splitlines()
    assert progress
    assert [line for line in progress if not line.startswith("so far: epoch ")] == []
    assert last.startswith("ok ")
    assert last.endswith(": epoch 2")


def test_input_is_answered(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    follow("Answer `input()`", names)
    assert "Hello Ada" in capsys.readouterr().out


def test_a_figure_becomes_a_file(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    follow("Get a figure as a file", names)
    assert capsys.readouterr().out == "figure.png\n"
    assert Path("figure.png").read_bytes().startswith(b"\x89PNG")


def test_an_agent_that_may_look_runs_nothing(
    names: dict[str, Any], person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    opens_sales(person)
    with pytest.raises(errors.Forbidden) as refused:
        follow("Let an agent look, and nothing else", names)
    assert capsys.readouterr().out == f"{LOAD}\n"
    assert refused.value.detail["scope"] == "exec:notebook:work/sales.ipynb"
    assert sources(person.reads("work/sales.ipynb")) == [LOAD, "'the end'"]
