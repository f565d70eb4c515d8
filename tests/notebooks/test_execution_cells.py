"""Where the cells of executions go in a notebook, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import (
    CellNotFound,
    DocumentChanged,
    DocumentUnwritable,
    InvalidRequest,
)
from jupyter_agent_exec.models import Placement
from jupyter_agent_exec.notebooks.changes import DeleteCell, Expected
from jupyter_agent_exec.records import digest_of
from jupyter_agent_exec.types import CellId
from tests.notebooks.placing_bench import Session, late_is_written, record, rest
from tests.notebooks.ways import DictWay, Switch, code, notebook

HTML = {"output_type": "display_data", "data": {"text/html": "<b>late</b>"}, "metadata": {}}


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
    await session.written("x")
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
    await session.written("x")
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


async def test_cells_after_the_same_cell_stand_in_order(session: Session, tab: DictWay):
    for id in ("x", "y"):
        await session.run(id, "1", Placement(after="a"))
    await tab.apply([DeleteCell(cell_id=CellId("y"))], Expected())
    await session.run("z", "1", Placement(after="a"))
    assert tab.order == ["a", "x", "z", "b"]


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
    await session.written("y")
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "y"
    assert tab.cells["a"]["outputs"] == second.outputs()


@pytest.mark.parametrize("field", ["after", "before", "cell"])
async def test_a_cell_that_is_not_there_is_refused(session: Session, field: str):
    with pytest.raises(CellNotFound) as refused:
        await session.find("1", Placement(**{field: "no"}))
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
        await session.find(source, placement)
    assert refused.value.detail["field"] == field


async def test_a_cell_whose_source_is_another_now_is_refused(session: Session):
    with pytest.raises(DocumentChanged) as refused:
        await session.find(None, Placement(cell="a", source_sha256=digest_of(b"other")))
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
        await session.find(None, Placement(cell="a"))


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
    await other.until_shown(second, 10)


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
    await session.written("y")


async def test_a_cell_run_by_two_shows_the_first_until_it_ends(session: Session, tab: DictWay):
    first = await session.accept("x", None, Placement(cell="a"))
    second = await session.accept("y", None, Placement(cell="a"))
    session.cells.changed(second)
    await rest()
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "x"
    session.finish(first)
    await rest()
    assert tab.cells["a"]["metadata"]["agent_exec"]["execution_id"] == "y"
    session.finish(second)
    await session.written("y")


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


async def test_late_output_leaves_accepted_outputs_alone(session: Session, tab: DictWay):
    await session.run("x", "print()")
    before = tab.content
    done = session.owner.records["x"]
    session.owner.records["x"] = replace(
        done, outputs=[HTML], document=replace(done.document, outputs="accepted")
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
