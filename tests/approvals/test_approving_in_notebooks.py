"""Approval where a person works: what their notebook shows of code that nobody has let run."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.records import digest_of
from tests.approvals.person_deciding import approvals, approve, asks, look, reject
from tests.asking import Agent
from tests.sessions.living_notebook import NOTEBOOK, Desk, entries, finished, notebook_target


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"notebook": "always", "kernel": "first"}}


class Notebook:
    """A person's notebook, and an agent's session with it."""

    def __init__(self, agent: Agent, desk: Desk) -> None:
        self.agent = agent
        self.desk = desk
        self.session: dict[str, Any] = {}

    async def open(self, *sources: str) -> None:
        self.desk.writes(NOTEBOOK, *sources)
        self.session = await self.agent.open(target=notebook_target())

    async def sources(self) -> list[str]:
        """Return the sources of its cells, those included that are being written."""
        cells = (await self.agent.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
        return [cell["source"] for cell in cells]

    def stored(self) -> Any:
        notebook = nbformat.read(self.desk.root / NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        return notebook.cells

    async def until_told(self, execution: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end, and for what becomes of the cell."""
        done = await finished(self.agent, execution)
        while done["document"] is None or done["document"]["status"] == "writing":
            done = await look(self.agent, execution)
        return done


async def until_one_asks(agent: Agent) -> dict[str, Any]:
    while not (asking := (await approvals(agent))["executions"]):
        pass
    return dict(asking[0])


@pytest.fixture
def notebook(agent: Agent, desk: Desk) -> Notebook:
    return Notebook(agent, desk)


async def test_an_asking_cell_is_shown_and_runs_when_it_is_approved(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "print('hello')")
    assert await notebook.sources() == ["a = 1", "print('hello')"]
    shown = notebook.stored()[1]
    assert shown.id == execution["id"]
    assert shown.metadata.agent_exec.status == "awaiting_approval"
    assert (shown.execution_count, shown.outputs) == (None, [])
    await approve(notebook.agent, execution)
    done = await notebook.until_told(execution)
    assert (done["status"], done["document"]["status"]) == ("ok", "written")
    assert notebook.stored()[1].outputs[0].text == "hello\n"


async def test_a_rejected_cell_is_taken_out_so_that_nobody_runs_it(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "drop()")
    assert await notebook.sources() == ["a = 1", "drop()"]
    await reject(notebook.agent, execution, "Never.")
    done = await notebook.until_told(execution)
    assert done["document"]["status"] == "discarded"
    assert done["document"]["cell_id"] is None
    assert "taken out" in done["document"]["reason"]
    assert [cell.source for cell in notebook.stored()] == ["a = 1"]
    written = [e for e in await entries(notebook.agent, notebook.session) if "document" in e]
    assert [entry["document"]["status"] for entry in written] == ["discarded"]


async def test_a_cell_that_is_withdrawn_before_it_was_written_never_comes(
    notebook: Notebook,
) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "b = 2")
    await notebook.agent.ask("POST", f"executions/{execution['id']}/cancel")
    done = await notebook.until_told(execution)
    assert (done["status"], done["document"]["status"]) == ("cancelled", "discarded")
    assert await notebook.sources() == ["a = 1"]


async def test_a_closed_session_leaves_no_cell_that_nobody_let_run(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    await asks(notebook.agent, notebook.session, "b = 2")
    assert await notebook.sources() == ["a = 1", "b = 2"]
    await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    assert [cell.source for cell in notebook.stored()] == ["a = 1"]


async def test_a_rejected_cell_that_the_person_has_edited_stays(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "drop()")
    await notebook.sources()
    file = notebook.desk.root / NOTEBOOK
    edited = nbformat.read(file, as_version=4)
    edited.cells[1].source = "keep()"
    nbformat.write(edited, file)
    await reject(notebook.agent, execution)
    done = await notebook.until_told(execution)
    assert (done["document"]["status"], done["document"]["cell_id"]) == ("discarded", None)
    assert "theirs" in done["document"]["reason"]
    _, cell = notebook.stored()
    assert cell.source == "keep()"
    assert "agent_exec" not in cell.metadata


async def test_the_cell_shows_the_source_that_the_person_changed(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "print('all')")
    assert await notebook.sources() == ["a = 1", "print('all')"]
    await approve(notebook.agent, execution, source="print('some')")
    done = await notebook.until_told(execution)
    assert (done["source"], done["document"]["status"]) == ("print('some')", "written")
    cell = notebook.stored()[1]
    assert (cell.source, cell.outputs[0].text) == ("print('some')", "some\n")
    assert cell.metadata.agent_exec.source_sha256 == digest_of(b"print('some')")


async def test_an_edited_source_is_not_put_over_what_the_person_typed(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "print('all')")
    await notebook.sources()
    file = notebook.desk.root / NOTEBOOK
    edited = nbformat.read(file, as_version=4)
    edited.cells[1].source = "mine"
    nbformat.write(edited, file)
    await approve(notebook.agent, execution, source="print('some')")
    done = await notebook.until_told(execution)
    assert (done["status"], done["document"]["status"]) == ("ok", "not_written")
    assert notebook.stored()[1].source == "mine"


@pytest.mark.parametrize("source", ["a = 2", None])
async def test_a_cell_of_the_persons_stays_as_it_is_until_it_may_run(
    notebook: Notebook, source: str | None
) -> None:
    await notebook.open("a = 1")
    before = notebook.stored()
    placement = {"cell": before[0].id}
    asked = {"source": source} if source else {}
    answered = await notebook.agent.ask(
        "POST",
        f"sessions/{notebook.session['id']}/executions",
        {**asked, "placement": placement, "wait": 0},
    )
    execution = answered.json
    assert execution["approval"]["before"] == ("a = 1" if source else None)
    assert execution["document"]["cell_id"] == before[0].id
    assert await notebook.sources() == ["a = 1"]
    assert notebook.stored() == before
    await reject(notebook.agent, execution)
    done = await notebook.until_told(execution)
    assert done["document"]["status"] == "not_written"
    assert notebook.stored() == before
    again = await asks(notebook.agent, notebook.session, "a = 3", placement=placement)
    await approve(notebook.agent, again, source="a = 4")
    assert (await notebook.until_told(again))["document"]["status"] == "written"
    assert [cell.source for cell in notebook.stored()] == ["a = 4"]


async def test_with_first_a_cell_of_the_persons_waits_for_what_is_decided_before(
    agent: Agent, desk: Desk, notebook: Notebook
) -> None:
    await agent.ask("PUT", "approvals/policy", {"notebook": "first"})
    await notebook.open("a = 1")
    before = notebook.stored()
    first = await asks(agent, notebook.session, "1", placement="none")
    second = await agent.run(notebook.session, "a = 2", placement={"cell": before[0].id}, wait=0)
    assert second["status"] == "queued"
    assert await notebook.sources() == ["a = 1"]
    await approve(agent, first)
    done = await notebook.until_told(second)
    assert (done["status"], done["approval"]) == ("ok", None)
    assert [cell.source for cell in notebook.stored()] == ["a = 2"]


async def test_an_init_source_in_a_persons_kernel_asks_first(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    target = {"kind": "kernel", "kernel_id": kernel_id}
    session = await agent.open(target=target, init_source="import math")
    (asking,) = (await approvals(agent))["executions"]
    assert asking["init"] is True
    execution = await agent.run(session, "math.tau", wait=0)
    assert execution["status"] == "queued"
    await approve(agent, asking)
    done = await finished(agent, execution)
    assert (done["status"], done["approval"]) == ("ok", None)  # the first was approved


async def test_a_rejected_init_source_leaves_the_kernel_alone(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    target = {"kind": "kernel", "kernel_id": kernel_id}
    session = await agent.open(target=target, init_source="import math")
    (asking,) = (await approvals(agent))["executions"]
    execution = await agent.run(session, "1", wait=0)
    await reject(agent, asking)
    assert (await until_one_asks(agent))["id"] == execution["id"]
    await approve(agent, execution)
    again = await until_one_asks(agent)
    assert (again["init"], again["source"]) == (True, "import math")  # approved by nobody
    await reject(agent, again)
    done = await finished(agent, execution)
    assert done["status"] == "cancelled"
    assert "init_source" in done["reason"]
