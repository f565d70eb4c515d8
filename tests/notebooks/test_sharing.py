"""Sessions exported as notebooks that somebody else can read and run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from jupyter_agent_exec.journal.notebook import in_markdown
from jupyter_agent_exec.notebooks.sharing import cells_before
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.checkpoints.asking import turned_on, undone
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target

PASSWORD = "correct horse battery staple"
LINUX = sys.platform.startswith("linux")
needs_trials = pytest.mark.skipif(not LINUX, reason="trials need Linux")


@pytest.fixture
def agent_exec_config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    return {"redact_env": ["DB_PASSWORD"]}


async def shared(agent: Agent | TokenAgent, session: dict[str, Any]) -> nbformat.NotebookNode:
    """Export a session to share; return what nbformat accepts."""
    answered = await agent.ask("POST", f"sessions/{session['id']}/notebook/share")
    assert answered.status == 200, answered.body
    text = answered.body.decode()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert text == nbformat.writes(notebook) + "\n"
    return notebook


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the sources, without the title and what it says about itself."""
    return [cell.source for cell in notebook.cells[2:]]


def run_again(notebook: nbformat.NotebookNode, folder: Path) -> None:
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()


async def working(agent: Agent, desk: Desk, *cells: str) -> dict[str, Any]:
    """Open a session in a notebook of these cells, which have run."""
    desk.writes(NOTEBOOK, *cells)
    kernel = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel)
    for cell in cells:
        await person.has_run(cell)
    return await agent.open(target=notebook_target(), title="Sales *by* region")


@needs_trials
async def test_the_cells_that_a_session_uses_stand_before_it(
    agent: Agent, desk: Desk, jp_root_dir: Path
) -> None:
    (jp_root_dir / "rows.txt").write_text("3")
    cells = [
        "import json, math", "unused = 1", "def load():\n    return json.load(open('rows.txt'))",
        "data = {'rows': load()}", "data['more'] = 4",
    ]  # fmt: skip
    session = await working(agent, desk, *cells)
    await agent.run(session, "total = sum(data.values())", claim={"purpose": "Add\nthe <rows>"})
    await agent.run(session, "print(total)")
    notebook = await shared(agent, session)
    assert notebook.cells[0].source == r"# Sales \*by\* region"
    about = notebook.cells[1].source
    assert "runs from start to end in an empty kernel (python3)" in about
    assert "The first 4 code cells are from sales.ipynb" in about
    assert "No definition" not in about
    assert "Folded" not in about
    assert shown(notebook) == [
        cells[0], *cells[2:], r"## Add the \<rows\>", "total = sum(data.values())", "print(total)",
    ]  # fmt: skip
    assert notebook.cells[-1].outputs[0].text == "7\n"
    assert notebook.metadata.kernelspec.name == "python3"
    run_again(notebook, jp_root_dir)
    assert notebook.cells[-1].outputs[0].text == "7\n"


@needs_trials
async def test_what_failed_is_folded_and_what_did_not_run_is_left_out(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1\n1 / 0", claim={"purpose": "Divide"})
    await agent.run(session, "x + 1")
    await agent.run(session, "y = 2", trial=True)
    await agent.run(session, "while True: pass", timeout=0.5)
    notebook = await shared(agent, session)
    assert notebook.cells[0].source == "# Session of tester"
    about = notebook.cells[1].source
    assert "Folded: 1 execution that failed." in about
    assert "Left out: 1 execution stopped, not run, or undone." in about
    assert "runs from start to end" in about
    assert shown(notebook) == ["## Divide", "x = 1\n1 / 0", "x + 1"]
    assert notebook.cells[3].metadata == {
        "collapsed": True,
        "jupyter": {"source_hidden": True, "outputs_hidden": True},
        "tags": ["raises-exception"],
    }
    assert notebook.cells[4].metadata == {}


@pytest.mark.skipif(not LINUX, reason="undo needs Linux")
async def test_what_was_undone_is_left_out(agent: Agent, desk: Desk) -> None:
    desk.writes(NOTEBOOK)
    _, session, _ = await turned_on(agent, desk)
    await agent.run(session, "x = 1")
    await undone(agent, await agent.run(session, "x = 2"))
    await agent.run(session, "x = 3")
    notebook = await shared(agent, session)
    assert "Left out: 1 execution stopped, not run, or undone." in notebook.cells[1].source
    assert shown(notebook) == ["x = 1", "x = 3"]


@needs_trials
async def test_a_check_that_fails_names_the_cell(
    agent: Agent, desk: Desk, jp_root_dir: Path
) -> None:
    session = await working(agent, desk, "y = 2")
    person = await desk.sits_at((await agent.get(f"sessions/{session['id']}")).json["kernel"]["id"])
    await person.has_run("gone = 1")
    await agent.run(session, "y")
    await agent.run(session, "gone + y")
    notebook = await shared(agent, session)
    about = notebook.cells[1].source
    assert "does not run in an empty kernel (python3): code cell 3 raised NameError" in about
    assert "No definition was found of `gone`." in about
    with pytest.raises(CellExecutionError, match="NameError"):
        run_again(notebook, jp_root_dir)


@needs_trials
async def test_the_check_changes_nothing_and_says_what_it_could_not_try(
    agent: Agent, jp_root_dir: Path
) -> None:
    session = await agent.open()
    await agent.run(session, "open('made.txt', 'a').write('x')")
    about = (await shared(agent, session)).cells[1].source
    assert "**Not checked.** In a trial, which cannot write, connect or start programs, " in about
    assert "code cell 1 raised PermissionError" in about
    assert (jp_root_dir / "made.txt").read_text() == "x"
    listed = (await agent.get("sessions")).json["sessions"]
    check = next(each for each in listed if each["id"] != session["id"])
    assert (check["status"], check["agent"]["name"]) == ("closed", "export")
    assert check["title"] == f"Check of the export of {session['id']}"


async def test_the_cells_of_the_notebook_have_no_secrets(agent: Agent, desk: Desk) -> None:
    session = await working(agent, desk, f"word = {PASSWORD!r}")
    await agent.run(session, "len(word)")
    notebook = await shared(agent, session)
    assert shown(notebook) == ["word = '[redacted: DB_PASSWORD]'", "len(word)"]


async def test_a_token_without_scratch_kernels_gets_an_export_without_a_check(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK, "y = 2")
    await desk.opens()
    token = TokenAgent(ask, (await mint(agent, "exec:notebook"))[1])
    session = await token.open(target=notebook_target())
    await token.run(session, "y")
    notebook = await shared(token, session)
    assert "**Not checked.** This token may not do this" in notebook.cells[1].source
    assert shown(notebook) == ["y = 2", "y"]


async def test_a_session_whose_notebook_is_gone_says_so(
    agent: Agent, desk: Desk, jp_root_dir: Path
) -> None:
    session = await working(agent, desk, "y = 2")
    await agent.run(session, "y", placement="none")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    (jp_root_dir / NOTEBOOK).unlink()
    about = (await shared(agent, session)).cells[1].source
    assert "The notebook sales.ipynb, in which the session worked, cannot be read." in about
    assert "No definition was found of `y`." in about


def test_names_are_looked_for_in_what_cells_define() -> None:
    cells = ["import os", "a = b = 1", "for i in range(3): pass", "f = lambda: c", "c = a", "d = 5"]
    assert cells_before(cells, ["d = 1", "print(d, a)"]) == (["a = b = 1"], [])
    assert cells_before(cells, ["def g(): return c\ng()"]) == (["a = b = 1", "c = a"], [])
    assert cells_before(cells, ["[j for j in z]", "for i in 'ab': print(i)"]) == ([], ["z"])
    assert cells_before(cells, ["get_ipython(); _; Out; In[1]; display(1)"]) == ([], [])


def test_texts_show_as_they_are_in_markdown() -> None:
    assert in_markdown("a_b <img src=x>\n# c \u202e") == r"a\_b \<img src=x\> \# c \<U+202E\>"
