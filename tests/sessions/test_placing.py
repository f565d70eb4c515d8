"""Where the cells of executions go in a notebook, and what becomes of them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace
from ways import DictWay, Switch, code, notebook

from jupyter_agent_exec.errors import (
    CellNotFound,
    DocumentChanged,
    DocumentUnwritable,
    InvalidRequest,
)
from jupyter_agent_exec.models import (
    Agent,
    Chain,
    ExecutionKernel,
    Omitted,
    OutputChange,
    Placement,
)
from jupyter_agent_exec.notebooks.document import Notebooks
from jupyter_agent_exec.records import By, CellWritten, ExecutionRecord, digest_of
from jupyter_agent_exec.sessions.placing import NotebookCells, Placing

AT = "2026-11-21T09:00:00.000Z"
KERNEL = ExecutionKernel(id="k", name="python3", incarnation=1, restarted=False, reason=None)
HTML = {"output_type": "display_data", "data": {"text/html": "<b>late</b>"}, "metadata": {}}


def record(id: str, source: str, **fields: Any) -> ExecutionRecord:
    whole: dict[str, Any] = {
        "id": id,
        "session_id": "s",
        "seq": 1,
        "init": False,
        "status": "queued",
        "reason": None,
        "source": source,
        "agent": Agent(name="analyst"),
        "username": "ada",
        "timeout": None,
        "kernel": None,
        "execution_count": None,
        "outputs": [],
        "blobs": (),
        "error": None,
        "accepted_at": AT,
        "started_at": None,
        "finished_at": None,
        "outputs_complete": True,
        "omitted": Omitted(),
        "interrupt_ignored": False,
        "text": None,
        "text_bytes": 0,
        "omitted_text_bytes": 0,
        "entry_hash": None,
        "chain": Chain(head="0" * 64, length=1),
    }
    return ExecutionRecord(**{**whole, **fields})


class Live:
    """An execution that goes on."""

    waiting_for = None

    def __init__(self, id: str, source: str) -> None:
        self.id = id
        self.source = source
        self.by = By(kind="agent")
        self.status = "queued"
        self.steps: list[OutputChange] = []

    def standing(self) -> ExecutionRecord:
        return record(self.id, self.source, status=self.status, kernel=KERNEL)

    def changes(self, version: int) -> tuple[int, list[OutputChange]]:
        return len(self.steps), self.steps[version:]

    def prints(self, text: str) -> None:
        output = {"output_type": "stream", "name": "stdout", "text": text}
        self.steps.append(OutputChange(index=len(self.steps), output=output))

    def outputs(self) -> list[Any]:
        return [step.output for step in self.steps]


class Owner:
    """The session."""

    id = "s"

    def __init__(self) -> None:
        self.path: str | None = "a.ipynb"
        self.entries: list[CellWritten] = []
        self.records: dict[str, ExecutionRecord] = {}
        self.told: list[str] = []

    async def note(self, entry: CellWritten, payloads: Any = ()) -> None:
        self.entries.append(entry)
        if entry.execution_id in self.records:
            self.records[entry.execution_id] = replace(
                self.records[entry.execution_id], document=entry.document
            )

    async def recorded(self, execution_id: str) -> ExecutionRecord:
        return self.records[execution_id]

    def document_changed(self, execution_id: str) -> None:
        self.told.append(execution_id)


class Session:
    """A session's cells, with executions that are run by hand."""

    def __init__(self, *reaches: Any) -> None:
        self.owner = Owner()
        self.settled: list[str] = []
        self.placing = Placing(
            Notebooks(reaches),
            settle=self.settled.append,
            log=logging.getLogger(__name__),
            merge_delay=0,
            gather_delay=0,
        )
        self.cells: NotebookCells = self.placing.cells(self.owner)

    async def accept(
        self,
        id: str,
        source: str | None,
        placement: Any = "end",
        *,
        by: NotebookCells | None = None,
    ) -> Live:
        cells = by or self.cells
        place = await cells.find(source, placement)
        execution = Live(id, place.source)
        cells.accepted(execution, place)
        await rest()
        return execution

    def finish(self, execution: Live, **fields: Any) -> ExecutionRecord:
        done = record(
            execution.id,
            execution.source,
            kernel=KERNEL,
            outputs=execution.outputs(),
            **{"status": "ok", "execution_count": 3, "entry_hash": "f" * 64, **fields},
        )
        self.owner.records[execution.id] = done
        self.cells.finished(done)
        return done

    async def run(self, id: str, source: str | None, placement: Any = "end") -> Live:
        execution = await self.accept(id, source, placement)
        execution.prints("out\n")
        self.finish(execution)
        await self.cells.written(id)
        await rest()
        return execution


async def rest() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


async def late_is_written(session: Session, id: str) -> None:
    """Wait until nothing writes to a cell any more."""
    await rest()
    async with session.placing.lock(id):
        await rest()


@pytest.fixture
def tab() -> DictWay:
    return DictWay(notebook(code("a", "1"), code("b", "2")))


@pytest.fixture
def session(tab: DictWay) -> Session:
    return Session(tab)


async def test_the_cell_shows_that_it_waits_runs_and_ended(session: Session, tab: DictWay):
    execution = await session.accept("x", "print()")
    assert tab.order == ["a", "b", "x"]
    assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "queued"
    execution.status = "running"
    session.cells.changed(execution)
    await rest()
    assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "running"
    assert session.cells.document("x").status == "writing"
    execution.prints("out\n")
    session.cells.changed(execution)
    await rest()
    assert tab.cells["x"]["outputs"][0]["text"] == "out\n"
    session.finish(execution)
    await session.cells.written("x")
    ours = tab.cells["x"]["metadata"]["agent_exec"]
    assert ours["status"] == "ok"
    assert ours["entry_hash"] == "f" * 64
    assert ours["outputs"] == "inert"
    assert ours["source_sha256"] == digest_of(b"print()")
    assert tab.cells["x"]["execution_count"] == 3


async def test_what_became_of_the_cell_is_recorded_and_told(session: Session):
    await session.run("x", "print()")
    (entry,) = session.owner.entries
    assert entry.execution_id == "x"
    assert (entry.document.status, entry.document.cell_id) == ("written", "x")
    assert session.cells.document("x") is None
    assert session.owner.told == ["x"]
    assert session.settled == ["a.ipynb"]


async def test_a_file_is_not_waited_for(tab: DictWay):
    file = DictWay(tab.content, via="contents", streams=False)
    file.acknowledged = asyncio.Event()
    session = Session(file)
    execution = await session.accept("x", "print()")
    session.finish(execution)
    await session.cells.written("x")
    assert session.cells.document("x").status == "writing"
    file.acknowledged.set()
    await rest()
    assert session.owner.entries[0].document.status == "written"
    assert session.settled == []


@pytest.mark.parametrize(
    ("placement", "order"),
    [
        ({"after": "a"}, ["a", "x", "b"]),
        ({"before": "a"}, ["x", "a", "b"]),
        ("end", ["a", "b", "x"]),
    ],
)
async def test_a_cell_goes_where_it_is_asked_to(
    session: Session, tab: DictWay, placement: Any, order: list[str]
):
    await session.run("x", "1", placement if placement == "end" else Placement(**placement))
    assert tab.order == order


async def test_a_cell_that_is_there_is_run(session: Session, tab: DictWay):
    execution = await session.run("x", None, Placement(cell="a", source_sha256=digest_of(b"1")))
    assert execution.source == "1"
    assert tab.order == ["a", "b"]
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "x"
    assert session.owner.entries[0].document.cell_id == "a"


async def test_a_cell_that_is_run_with_another_source_gets_that(session: Session, tab: DictWay):
    await session.run("x", "new", Placement(cell="a"))
    assert tab.cells["a"]["source"] == "new"


async def test_a_cell_that_is_run_twice_shows_the_second(session: Session, tab: DictWay):
    first = await session.accept("x", None, Placement(cell="a"))
    second = await session.accept("y", None, Placement(cell="a"))
    session.finish(first)
    second.prints("second")
    session.finish(second)
    await session.cells.written("y")
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "y"
    assert tab.cells["a"]["outputs"] == second.outputs()


@pytest.mark.parametrize("field", ["after", "before", "cell"])
async def test_a_cell_that_is_not_there_is_refused(session: Session, field: str):
    with pytest.raises(CellNotFound) as refused:
        await session.cells.find("1", Placement(**{field: "no"}))
    assert refused.value.detail == {"field": f"placement.{field}", "cell_ids": ["a", "b"]}


@pytest.mark.parametrize(
    ("source", "placement", "field"),
    [
        (None, "end", "source"),
        (None, Placement(after="a"), "source"),
        ("1", Placement(), "placement"),
        ("1", Placement(after="a", before="b"), "placement"),
        ("1", Placement(after="a", cell="b"), "placement"),
        ("1", Placement(after="a", source_sha256="0" * 64), "placement.source_sha256"),
        ("1", Placement(cell="m"), "placement.cell"),
    ],
)
async def test_a_placement_that_cannot_be_is_refused(
    session: Session, tab: DictWay, source: str | None, placement: Any, field: str
):
    markdown = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "text"}
    tab.content["cells"].append(markdown)
    with pytest.raises(InvalidRequest) as refused:
        await session.cells.find(source, placement)
    assert refused.value.detail["field"] == field


async def test_a_cell_whose_source_is_another_now_is_refused(session: Session):
    with pytest.raises(DocumentChanged) as refused:
        await session.cells.find(None, Placement(cell="a", source_sha256=digest_of(b"other")))
    assert refused.value.detail["source"] == "1"
    assert refused.value.detail["source_sha256"] == digest_of(b"1")
    assert refused.value.detail["cell_id"] == "a"


async def test_without_a_notebook_that_can_be_read_it_runs_all_the_same():
    switch = Switch(None)
    switch.error = DocumentUnwritable("It is no notebook.")
    session = Session(switch)
    for id, placement in (("x", "end"), ("y", Placement(after="a")), ("z", Placement(cell="a"))):
        await session.run(id, "1", placement)
    documents = [entry.document for entry in session.owner.entries]
    assert [document.status for document in documents] == ["not_written"] * 3
    assert {document.reason for document in documents} == {"It is no notebook."}
    with pytest.raises(DocumentUnwritable):
        await session.cells.find(None, Placement(cell="a"))


async def test_two_sessions_at_the_end_keep_the_order_of_acceptance(tab: DictWay):
    session = Session(tab)
    other = session.placing.cells(session.owner)
    tab.acknowledged = asyncio.Event()
    first = await session.accept("x", "1")
    second = await session.accept("y", "2", by=other)
    assert tab.attempts == 1
    tab.acknowledged.set()
    await rest()
    assert tab.order == ["a", "b", "x", "y"]
    session.finish(first)
    other.finished(record("y", second.source, status="ok"))
    await other.written("y")


async def test_cells_at_the_end_that_are_lost_come_back_in_their_order(tab: DictWay):
    switch = Switch(tab)
    session = Session(switch)
    first = await session.accept("x", "1")
    second = await session.accept("y", "2")
    switch.way = new = DictWay(notebook(code("a")))
    session.cells.changed(second)
    await rest()
    session.cells.changed(first)
    await rest()
    assert new.order == ["a", "x", "y"]
    session.finish(first)
    session.finish(second)
    await session.cells.written("y")


async def test_a_cell_that_is_run_by_two_shows_the_first_until_that_has_ended(
    session: Session, tab: DictWay
):
    first = await session.accept("x", None, Placement(cell="a"))
    second = await session.accept("y", None, Placement(cell="a"))
    session.cells.changed(second)
    await rest()
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "x"
    session.finish(first)
    await rest()
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "y"
    session.finish(second)
    await session.cells.written("y")


async def test_late_output_that_comes_while_it_is_written_is_written_next(
    session: Session, tab: DictWay
):
    await session.run("x", "print()")
    done = session.owner.records["x"]
    session.owner.records["x"] = replace(done, outputs=[HTML])
    tab.acknowledged = asyncio.Event()
    session.cells.late("x")
    while not tab.under_way:
        await asyncio.sleep(0)
    session.owner.records["x"] = replace(session.owner.records["x"], outputs=[HTML, HTML])
    session.cells.late("x")
    tab.acknowledged.set()
    while tab.cells["x"]["outputs"] != [HTML, HTML]:
        await asyncio.sleep(0)
    assert tab.most_under_way == 1


async def test_late_output_comes_into_the_cell_inert(session: Session, tab: DictWay):
    execution = await session.run("x", "print()")
    done = session.owner.records["x"]
    script = {"application/javascript": "alert(1)", "text/html": "<b>late</b>"}
    late = [*execution.outputs(), {**HTML, "data": script}]
    session.owner.records["x"] = replace(done, outputs=late)
    session.cells.late("x")
    session.cells.late("x")
    await late_is_written(session, "x")
    assert tab.cells["x"]["outputs"] == [*execution.outputs(), HTML]
    assert tab.cells["x"]["metadata"]["agent_exec"]["outputs"] == "held"
    assert session.owner.entries[-1].document.outputs == "held"
    assert len(session.owner.entries) == 2


@pytest.mark.parametrize("what", ["accepted", "discarded"])
async def test_late_output_leaves_a_decision_alone(session: Session, tab: DictWay, what: Any):
    await session.run("x", "print()")
    before = tab.content
    done = session.owner.records["x"]
    session.owner.records["x"] = replace(
        done, outputs=[HTML], document=replace(done.document, outputs=what)
    )
    session.cells.late("x")
    await late_is_written(session, "x")
    assert tab.content is before


@pytest.mark.parametrize(
    "change",
    [
        {"source": "edited"},
        {"execution_count": 9},
        {"metadata": {}},
        {"metadata": {"agent_exec": {"execution_id": "another"}}},
        {"id": "gone"},
    ],
)
async def test_late_output_leaves_a_persons_cell_alone(
    session: Session, tab: DictWay, change: dict[str, Any]
):
    await session.run("x", "print()")
    tab.content = notebook({**tab.cells["x"], **change})
    before, attempts = tab.content, tab.attempts
    session.owner.records["x"] = replace(session.owner.records["x"], outputs=[HTML])
    session.cells.late("x")
    await late_is_written(session, "x")
    assert tab.content is before
    assert tab.attempts == attempts


async def test_closing_writes_what_is_still_to_be_written(tab: DictWay):
    file = DictWay(tab.content, via="contents", streams=False)
    session = Session(file)
    execution = await session.accept("x", "print()")
    session.finish(execution)
    await session.cells.close()
    assert file.cells["x"]["execution_count"] == 3
    assert session.owner.entries[0].document.status == "written"
    session.owner.records["x"] = replace(session.owner.records["x"], outputs=[HTML])
    session.cells.late("x")
    await late_is_written(session, "x")
    assert file.cells["x"]["outputs"] == []
