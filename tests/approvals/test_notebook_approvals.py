"""Approval where a person works: what their notebook shows of code that nobody has let run."""

from __future__ import annotations

import asyncio
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.records import digest_of
from tests.approvals.person_deciding import approvals, approve, asks, look, reject
from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import NOTEBOOK, Desk, entries, finished, notebook_target

pytestmark = pytest.mark.usefixtures("cells_have_time")

ALWAYS = {"approval": {"notebook": "always", "kernel": "first"}}


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return ALWAYS


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
        while done["document"] is None or done["document"]["status"] in ("proposed", "writing"):
            done = await look(self.agent, execution)
        return done


async def until_one_asks(agent: Agent) -> dict[str, Any]:
    while not (asking := (await approvals(agent))["executions"]):
        pass
    return dict(asking[0])


@pytest.fixture
def notebook(agent: Agent, desk: Desk) -> Notebook:
    return Notebook(agent, desk)


async def test_nothing_of_a_proposal_is_in_the_notebook_until_it_runs(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    before = notebook.stored()
    execution = await asks(notebook.agent, notebook.session, "print('hello')")
    document = execution["document"]
    assert (document["status"], document["cell_id"]) == ("proposed", None)
    assert (document["path"], document["placement"]) == (NOTEBOOK, "end")
    assert await notebook.sources() == ["a = 1"]
    assert notebook.stored() == before
    await approve(notebook.agent, execution)
    done = await notebook.until_told(execution)
    assert (done["status"], done["document"]["status"]) == ("ok", "written")
    assert done["document"]["placement"] is None
    cell = notebook.stored()[1]
    assert (cell.id, cell.source) == (execution["id"], "print('hello')")
    assert cell.outputs[0].text == "hello\n"


@pytest.mark.parametrize(
    ("end", "agent_exec_config"),
    [
        ("rejected", ALWAYS),
        ("cancelled", ALWAYS),
        ("closed", ALWAYS),
        ("expired", {**ALWAYS, "approval_timeout": 1}),
    ],
)
async def test_a_proposal_that_does_not_run_leaves_nothing(notebook: Notebook, end: str) -> None:
    await notebook.open("a = 1")
    before = (notebook.desk.root / NOTEBOOK).read_bytes()
    execution = await notebook.agent.run(notebook.session, "drop()", wait=0)
    assert execution["approval"]["status"] in ("asked", end)  # it may have expired already
    if end == "rejected":
        await reject(notebook.agent, execution, "Never.")
    elif end == "cancelled":
        await notebook.agent.ask("POST", f"executions/{execution['id']}/cancel")
    elif end == "closed":
        await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    document = (await notebook.until_told(execution))["document"]
    assert (document["status"], document["cell_id"]) == ("not_written", None)
    assert document["reason"] == "It was not run, so the notebook is as it was."
    assert (notebook.desk.root / NOTEBOOK).read_bytes() == before
    written = [e for e in await entries(notebook.agent, notebook.session) if "document" in e]
    assert [entry["document"]["status"] for entry in written] == ["not_written"]


async def test_approved_code_is_not_in_the_notebook_before_it_runs(
    notebook: Notebook, gate: Gate
) -> None:
    await notebook.open("a = 1")
    agent = notebook.agent
    other = await agent.open(target=notebook_target())
    running = await asks(agent, other, gate.source, placement="none")
    await approve(agent, running)
    await asyncio.to_thread(gate.wait_until_it_runs)
    before = (notebook.desk.root / NOTEBOOK).read_bytes()
    execution = await asks(agent, notebook.session, "b = 2", queue_timeout=0.1)
    await approve(agent, execution)
    done = await notebook.until_told(execution)
    assert (done["status"], done["document"]["status"]) == ("timed_out", "not_written")
    waiting = await asks(agent, notebook.session, "c = 3")
    await approve(agent, waiting)
    queued = await look(agent, waiting)
    assert (queued["status"], queued["document"]["status"]) == ("queued", "proposed")
    assert (notebook.desk.root / NOTEBOOK).read_bytes() == before
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await notebook.until_told(waiting))["document"]["status"] == "written"
    assert [cell.source for cell in notebook.stored()] == ["a = 1", "c = 3"]


async def test_what_runs_is_what_the_person_approved_and_the_cell_shows_it(
    notebook: Notebook,
) -> None:
    await notebook.open("a = 1")
    execution = await asks(notebook.agent, notebook.session, "print('all')")
    await approve(notebook.agent, execution, source="print('some')")
    done = await notebook.until_told(execution)
    assert (done["source"], done["document"]["status"]) == ("print('some')", "written")
    assert done["approval"]["asked_source"] == "print('all')"
    cell = notebook.stored()[1]
    assert (cell.source, cell.outputs[0].text) == ("print('some')", "some\n")
    assert cell.metadata.agent_exec.source_sha256 == digest_of(b"print('some')")


async def test_proposals_after_the_same_cell_stand_in_order(
    notebook: Notebook,
) -> None:
    await notebook.open("a = 1", "z = 26")
    placement = {"after": notebook.stored()[0].id}
    proposed = [
        await asks(notebook.agent, notebook.session, source, placement=placement)
        for source in ("b = 2", "c = 3", "d = 4")
    ]
    ids = [each["id"] for each in proposed]
    assert [each["document"]["follows"] for each in proposed] == [[], ids[:1], [ids[1], ids[0]]]
    await approve(notebook.agent, proposed[0])
    await reject(notebook.agent, proposed[1])
    await approve(notebook.agent, proposed[2])
    for each in proposed:
        await notebook.until_told(each)
    assert [cell.source for cell in notebook.stored()] == ["a = 1", "b = 2", "d = 4", "z = 26"]


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
    assert execution["document"]["status"] == "proposed"
    assert execution["document"]["cell_id"] == before[0].id
    assert execution["document"]["placement"]["cell"] == before[0].id
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


async def test_with_first_approval_waiting_code_is_not_in_the_notebook(
    agent: Agent, notebook: Notebook
) -> None:
    await agent.ask("PUT", "approvals/policy", {"notebook": "first"})
    await notebook.open("a = 1")
    before = notebook.stored()
    first = await asks(agent, notebook.session, "1", placement="none")
    changed = await agent.run(notebook.session, "a = 2", placement={"cell": before[0].id}, wait=0)
    added = await agent.run(notebook.session, "b = 2", wait=0)
    for queued in (changed, added):
        assert (queued["status"], queued["document"]["status"]) == ("queued", "proposed")
    assert await notebook.sources() == ["a = 1"]
    await approve(agent, first)
    for queued in (changed, added):
        done = await notebook.until_told(queued)
        assert (done["status"], done["approval"]) == ("ok", None)
    assert [cell.source for cell in notebook.stored()] == ["a = 2", "b = 2"]


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
