"""Which cells of a notebook are out of date, with a real kernel and its user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.asking import Agent
from tests.checkpoints.asking import turned_on, undone
from tests.kernels.kernel_server import Person
from tests.mcp.tools_bench import Bench, bench
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target

__all__ = ["bench"]


class Notebook:
    """A notebook whose cells its user runs, as JupyterLab does."""

    def __init__(self, agent: Agent, desk: Desk, person: Person) -> None:
        self.agent, self.desk, self.person = agent, desk, person

    async def runs(self, index: int) -> None:
        """Run a cell, and save its count."""
        file = self.desk.root / NOTEBOOK
        notebook = nbformat.read(file, as_version=4)
        reply = await self.person.has_run(notebook.cells[index].source)
        notebook.cells[index].execution_count = reply["execution_count"]
        nbformat.write(notebook, file)

    async def stale(self) -> list[Any]:
        cells = (await self.agent.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
        return [cell["stale"] for cell in cells]


async def opened(agent: Agent, desk: Desk) -> tuple[Notebook, dict[str, Any]]:
    desk.writes(NOTEBOOK, "df = 'mine'", "print(df)")
    kernel_id = (await desk.opens())["kernel"]["id"]
    session = await agent.open(target=notebook_target())
    notebook = Notebook(agent, desk, await desk.sits_at(kernel_id))
    await notebook.runs(0)
    await notebook.runs(1)
    return notebook, session


CHANGED = {"certain": True, "cause": "changed", "names": ["df"], "execution_count": 3}


async def test_a_users_cell_is_out_of_date_until_they_run_it_again(
    agent: Agent, desk: Desk, bench: Bench
) -> None:
    notebook, session = await opened(agent, desk)
    assert await notebook.stale() == [None, None]
    await agent.run(session, "df = 'the agent'")
    assert await notebook.stale() == [None, CHANGED, None]
    text = await bench.text("read_notebook", path=NOTEBOOK)
    assert text.count("out of date") == text.count("[out of date: [3] changed df]") == 1
    await notebook.runs(1)
    assert await notebook.stale() == [None, None, None]


async def test_an_agents_cell_is_out_of_date_after_its_users_run_or_an_edit(
    agent: Agent, desk: Desk
) -> None:
    notebook, session = await opened(agent, desk)
    ran = await agent.run(session, "print(df)")
    await notebook.runs(0)
    assert (await notebook.stale())[2] == CHANGED | {"execution_count": 4}
    edit = {"op": "replace", "cell_id": ran["document"]["cell_id"], "source": "print(df, 1)"}
    edited = await agent.ask(
        "PATCH",
        f"notebooks/{NOTEBOOK}/cells",
        {"session_id": session["id"], "edits": [edit]},
    )
    assert edited.status == 200, edited.body
    assert (await notebook.stale())[2]["cause"] == "edited"


async def test_what_the_kernel_tells_decides_where_the_source_is_silent(
    agent: Agent, desk: Desk
) -> None:
    notebook, session = await opened(agent, desk)
    await agent.run(session, "1")  # so that there is something to compare with
    await agent.run(session, "globals()['d' + 'f'] = 2")
    assert (await notebook.stale())[1] == CHANGED | {"execution_count": 4}


async def test_of_another_life_of_the_kernel_nothing_is_said(agent: Agent, desk: Desk) -> None:
    notebook, session = await opened(agent, desk)
    await agent.run(session, "df = 1")
    kernel_id = (await desk.opens())["kernel"]["id"]
    await desk.ask("POST", f"kernels/{kernel_id}/restart")
    assert (await agent.get(f"kernels/{kernel_id}/runs")).json == {"runs": []}
    assert await notebook.stale() == [None, None, None]


async def test_what_is_known_outlives_the_session(agent: Agent, desk: Desk) -> None:
    notebook, session = await opened(agent, desk)
    await agent.run(session, "df = 1")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await notebook.stale())[1] == CHANGED


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
async def test_after_an_undo_the_cells_of_before_are_up_to_date(agent: Agent, desk: Desk) -> None:
    notebook, session, ran = await changed_by_agent(agent, desk)
    await undone(agent, ran)
    assert await notebook.stale() == [None, None, None]
    await agent.run(session, "df = 'the agent again'")  # what ran before is known still
    assert (await notebook.stale())[1] == CHANGED | {"execution_count": 4}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
async def test_after_an_undo_that_cannot_be_recorded_they_are_out_of_date_as_before(
    agent: Agent, desk: Desk, history_dir: Path
) -> None:
    notebook, session, ran = await changed_by_agent(agent, desk)
    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    whole = journal.rename(journal.with_name("whole"))
    journal.write_bytes(whole.read_bytes() + b"replaced by somebody")
    refused = await agent.ask("POST", f"executions/{ran['id']}/undo")
    whole.replace(journal)
    assert (refused.status, refused.json["code"]) == (503, "history_unavailable")
    assert (await notebook.stale())[1] == CHANGED


async def changed_by_agent(agent: Agent, desk: Desk) -> tuple[Notebook, Any, Any]:
    """Have an agent change what a user's cell has read, in a kernel with checkpoints."""
    desk.writes(NOTEBOOK, "df = 'mine'", "print(df)")
    _, session, person = await turned_on(agent, desk)
    notebook = Notebook(agent, desk, person)
    await notebook.runs(0)
    await notebook.runs(1)
    ran = await agent.run(session, "df = 'the agent'")
    assert (await notebook.stale())[1] == CHANGED
    return notebook, session, ran
