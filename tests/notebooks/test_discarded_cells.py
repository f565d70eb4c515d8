"""Agents' cells that people take out of a notebook, and put back as they were."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupyter_ydoc import YNotebook
from nbformat.sign import MemorySignatureStore, NotebookNotary

from jupyter_agent_exec.errors import (
    CellNotFound,
    DocumentChanged,
    ExecutionNotFound,
    HistoryUnavailable,
    NotebookNotFound,
    NotFinished,
)
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.verify import Outcome, verify_history
from jupyter_agent_exec.notebooks.backends.contents import ContentsBackend
from jupyter_agent_exec.notebooks.backends.ydoc_cells import LiveCells, read
from jupyter_agent_exec.notebooks.changes import Backend, Change, Expected, Notebook
from jupyter_agent_exec.types import Via
from tests.journal.recorded import accepted, closed, new_execution_id, new_history
from tests.notebooks.deciding_bench import ADA, INERT, SCRIPT, Bench, Full
from tests.notebooks.ways import code, notebook


async def test_a_cell_that_was_discarded_comes_back_as_it_was(bench: Bench):
    id = bench.ran(1)
    bench.way.content["cells"].append(code("b", "2"))
    bench.changes(id, metadata={**bench.way.cells[id]["metadata"], "tags": ["plot"]})
    await bench.about_outputs.restore(id, ADA)
    before = bench.way.content
    record = await bench.about_cells.discard(id, ADA)
    assert bench.way.order == ["a", "b"]
    assert (record.document.status, record.document.cell_id) == ("discarded", None)
    assert bench.settled[-1] == "a.ipynb"
    record = await bench.about_cells.restore(id, ADA)
    assert bench.way.content == before
    assert (record.document.status, record.document.cell_id) == ("unsaved", id)
    assert record.document.outputs == "held"


class Shared:
    """The way to a document that people share, without a server."""

    via: Via = "collaboration"
    streams = True

    def __init__(self, content: dict[str, Any]) -> None:
        self._document = YNotebook()
        self._document.source = content
        self._cells = LiveCells(self._document)

    async def find(self, path: str) -> Shared:
        return self

    async def read(self) -> Notebook:
        return read(self._document)()

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        self._cells.apply(changes, expected)


def stored(content: dict[str, Any], folder: Path) -> ContentsBackend:
    contents = LargeFileManager(root_dir=str(folder))
    contents.notary = NotebookNotary(data_dir=str(folder), store_factory=MemorySignatureStore)
    (folder / "a.ipynb").write_text(json.dumps(content))
    return ContentsBackend(contents, logging.getLogger(__name__))


def without_trust(notebook: Notebook) -> list[dict[str, Any]]:
    """Return cells as their file has them: trust is not in files."""
    return [
        {**cell, "metadata": {k: v for k, v in cell["metadata"].items() if k != "trusted"}}
        for cell in notebook.cells
    ]


@pytest.mark.parametrize("minor", [5, 4])
@pytest.mark.parametrize("via", ["collaboration", "contents"])
async def test_it_comes_back_by_whichever_way(bench: Bench, tmp_path: Path, via: Via, minor: int):
    ids = [bench.ran(1), bench.ran(2, outputs=(INERT,), what="inert")]
    content = {**bench.way.content, "nbformat_minor": minor}
    if minor < 5:
        for cell in content["cells"]:
            cell_id = cell.pop("id")
            if "agent_exec" in cell["metadata"]:
                cell["metadata"]["agent_exec"]["cell_id"] = cell_id
    reach: Backend = Shared(content) if via == "collaboration" else stored(content, tmp_path)
    bench.switch = reach
    bench.start(bench.history)
    for id in ids:
        await bench.about_outputs.restore(id, ADA)
    way = await reach.find("a.ipynb")
    assert way is not None
    before = await way.read()
    for id in ids:
        record = await bench.about_cells.discard(id, ADA)
        assert record.document.via == via
    assert len((await way.read()).cells) == 1
    for id in ids:
        await bench.about_cells.restore(id, ADA)
    assert without_trust(await way.read()) == without_trust(before)
    if isinstance(reach, ContentsBackend):
        on_disk = nbformat.read(tmp_path / "a.ipynb", as_version=4)
        nbformat.validate(on_disk)
        await reach.stop()


async def test_the_cell_is_on_disk_before_it_is_taken_out(bench: Bench, history: History):
    id = bench.ran(1)
    seen = []
    bench.way.before = lambda: seen.append(history.execution(id).document.status)
    await bench.about_cells.discard(id, ADA)
    bench.way.before = lambda: seen.append(history.execution(id).document.status)
    await bench.about_cells.restore(id, ADA)
    assert seen == ["discarded", "written"]
    lines = history.journal_path(bench.session.session_id).read_text().splitlines()
    discarded, restored = json.loads(lines[-4]), json.loads(lines[-2])
    assert discarded["entry"]["type"] == "cell_discarded"
    assert discarded["entry"]["by"]["username"] == "ada"
    assert discarded["entry"]["after"] == "a"
    (cell,) = discarded["payloads"].values()
    assert json.loads(cell)["outputs"] == [INERT]
    assert restored["entry"]["type"] == "cell_restored"
    assert restored["entry"]["by"]["username"] == "ada"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("back", list(itertools.permutations(range(3))))
async def test_cells_that_stood_together_stand_as_they_did(
    bench: Bench, order: tuple[int, ...], back: tuple[int, ...]
):
    ids = [bench.ran(1), bench.ran(2), bench.ran(3)]
    bench.way.content["cells"].append(code("b", "2"))
    before = bench.way.order
    for index in order:
        await bench.about_cells.discard(ids[index], ADA)
    assert bench.way.order == ["a", "b"]
    for index in back:
        await bench.about_cells.restore(ids[index], ADA)
    assert bench.way.order == before


@pytest.mark.parametrize("back", [(0, 1, 2), (2, 0, 1)])
async def test_all_cells_of_a_session_that_are_the_agent_s_are_discarded(
    bench: Bench, back: tuple[int, ...]
):
    first, edited, second, run_again, third, _ = (bench.ran(seq) for seq in range(1, 7))
    del bench.way.content["cells"][-1]
    bench.changes(edited, source="a person's")
    bench.changes(run_again, execution_count=7)
    before = bench.way.order
    applied = len(bench.way.applied)
    records = await bench.about_cells.discard_all(bench.session.session_id, ADA)
    assert {record.id for record in records} == {first, second, third}
    assert {record.document.status for record in records} == {"discarded"}
    assert len(bench.way.applied) == applied + 1
    assert bench.way.order == ["a", edited, run_again]
    assert await bench.about_cells.discard_all(bench.session.session_id, ADA) == []
    ids = [first, second, third]
    for index in back:
        await bench.about_cells.restore(ids[index], ADA)
    assert bench.way.order == before


async def test_a_cell_that_an_agent_ran_again_is_discarded_with_what_it_shows(bench: Bench):
    first = bench.ran(1)
    del bench.way.content["cells"][-1]
    second = bench.ran(2, cell_id=first)
    with pytest.raises(DocumentChanged):
        await bench.about_cells.discard(first, ADA)
    await bench.about_cells.discard(second, ADA)
    assert bench.way.order == ["a"]
    record = await bench.about_cells.restore(second, ADA)
    assert record.document.cell_id == first
    assert bench.way.order == ["a", first]


BY_A_PERSON = [
    ({"source": "mine"}, "edited"),
    ({"execution_count": 7}, "run again"),
    ({"execution_count": None, "outputs": []}, "run again"),
    ({"cell_type": "markdown"}, "run again"),
]


@pytest.mark.parametrize(
    ("change", "why", "at_this_moment"),
    [
        *((*each, False) for each in BY_A_PERSON),
        *((*each, True) for each in BY_A_PERSON),
        ({"metadata": {}}, "run again", False),
    ],
)
async def test_a_cell_that_is_a_person_s_by_now_stays(
    bench: Bench, change: Any, why: str, at_this_moment: bool
):
    id = bench.ran(1)
    if at_this_moment:
        bench.way.before = lambda: bench.changes(id, **change)
    else:
        bench.changes(id, **change)
    with pytest.raises(DocumentChanged, match=why):
        await bench.about_cells.discard(id, ADA)
    assert id in bench.way.order
    document = bench.history.execution(id).document
    assert document is not None
    assert (document.status, document.cell_id) == ("written", id)


async def test_all_but_those_that_a_person_runs_at_this_moment_are_discarded(bench: Bench):
    mine, other = bench.ran(1), bench.ran(2)
    bench.way.before = lambda: bench.changes(mine, execution_count=None)
    records = await bench.about_cells.discard_all(bench.session.session_id, ADA)
    assert [record.id for record in records] == [other]
    assert bench.way.order == ["a", mine]
    document = bench.history.execution(mine).document
    assert document is not None
    assert document.status == "written"


async def test_a_cell_that_was_there_before_the_agent_stays(bench: Bench):
    id = bench.ran(1, cell_id="mine")
    with pytest.raises(DocumentChanged, match="was there before"):
        await bench.about_cells.discard(id, ADA)
    assert await bench.about_cells.discard_all(bench.session.session_id, ADA) == []
    assert "mine" in bench.way.order


async def test_where_the_cell_before_is_gone_it_goes_before_the_agents_next(bench: Bench):
    first, second, third = (f"x_01JD00000000000000000000{n}0" for n in range(3))
    for seq, id in enumerate((first, second, third), 1):
        bench.records(id, seq, outputs=(INERT,), what="inert")
        cell = code(id, "show()", [INERT], agent_exec={"execution_id": id})
        bench.way.content["cells"].append({**cell, "execution_count": 1})
    bench.way.content["cells"].insert(2, code("b"))
    await bench.about_cells.discard(second, ADA)
    bench.way.content = notebook(*(c for c in bench.way.content["cells"] if c["id"] != "b"))
    await bench.about_cells.restore(second, ADA)
    assert bench.way.order == ["a", first, second, third]
    await bench.about_cells.discard(third, ADA)
    bench.way.content = notebook(code("new"))
    await bench.about_cells.restore(third, ADA)
    assert bench.way.order == ["new", third]


async def test_the_first_cell_comes_back_as_the_first(bench: Bench):
    bench.way.content = notebook()
    id = bench.ran(1)
    await bench.about_cells.discard(id, ADA)
    bench.way.content = notebook(code("new"))
    await bench.about_cells.restore(id, ADA)
    assert bench.way.order == [id, "new"]


async def test_accepted_originals_come_back_trusted(bench: Bench):
    id = bench.ran(1)
    await bench.about_outputs.accept(id, ADA)
    await bench.about_cells.discard(id, ADA)
    record = await bench.about_cells.restore(id, ADA)
    assert record.document.outputs == "accepted"
    assert bench.outputs(id) == [SCRIPT]
    assert bench.way.cells[id]["metadata"]["trusted"] is True


async def test_what_others_wrote_into_the_cell_comes_back_untrusted(bench: Bench):
    """Who can write the file could have its script trusted by a person's undo."""
    id = bench.ran(1)
    bench.changes(id, outputs=[SCRIPT])
    await bench.about_cells.discard(id, ADA)
    await bench.about_cells.restore(id, ADA)
    assert bench.outputs(id) == [SCRIPT]
    assert "trusted" not in bench.way.cells[id]["metadata"]


@pytest.mark.parametrize("length", [9, 9_000])
async def test_it_comes_back_after_the_session_s_end_and_a_restart(
    bench: Bench, history: History, length: int
):
    outputs = [display_of(length)]
    id = bench.ran(1, outputs=outputs, what="inert")
    bench.changes(id, outputs=outputs)
    bench.session.close(closed())
    await bench.about_cells.discard(id, ADA)
    history.stop()
    after = new_history(history.folder)
    bench.start(after)
    await bench.about_cells.restore(id, ADA)
    assert bench.outputs(id) == outputs
    assert bench.published == [("execution", id), ("execution", id)]
    after.stop()
    assert verify_history(history.folder).outcome is Outcome.WHOLE


def display_of(length: int) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": "x" * length}, "metadata": {}}


async def test_what_cannot_be_recorded_is_not_done(bench: Bench, history: History):
    id = bench.ran(1)
    before = bench.way.content
    with pytest.raises(HistoryUnavailable):
        await bench.deciding(history, Full(history)).cells.discard(id, ADA)
    assert bench.way.content is before
    await bench.about_cells.discard(id, ADA)
    before = bench.way.content
    with pytest.raises(HistoryUnavailable):
        await bench.deciding(history, Full(history)).cells.restore(id, ADA)
    assert bench.way.content is before


async def test_a_notebook_that_goes_meanwhile_leaves_the_record_right(bench: Bench):
    id = bench.ran(1)

    def goes() -> None:
        raise NotebookNotFound("It is gone.")

    bench.way.before = goes
    with pytest.raises(NotebookNotFound):
        await bench.about_cells.discard(id, ADA)
    assert bench.history.execution(id).document.status == "written"  # type: ignore[union-attr]
    await bench.about_cells.discard(id, ADA)
    bench.way.before = goes
    with pytest.raises(NotebookNotFound):
        await bench.about_cells.restore(id, ADA)
    assert bench.history.execution(id).document.status == "discarded"  # type: ignore[union-attr]
    await bench.about_cells.restore(id, ADA)
    assert bench.way.order == ["a", id]


async def test_what_runs_has_no_cell_to_be_discarded(bench: Bench):
    id = new_execution_id()
    entry, source = accepted(id, 1, "show()")
    bench.session.append([entry], [source])
    for decide in (bench.about_cells.discard, bench.about_cells.restore):
        with pytest.raises(NotFinished):
            await decide(id, ADA)
        with pytest.raises(ExecutionNotFound):
            await decide(new_execution_id(), ADA)


async def test_a_cell_that_is_gone_is_told(bench: Bench):
    id = bench.ran(1)
    bench.way.content = notebook(code("a"))
    with pytest.raises(CellNotFound):
        await bench.about_cells.discard(id, ADA)
    with pytest.raises(CellNotFound):
        await bench.about_cells.restore(id, ADA)


async def test_a_cell_that_is_back_is_not_put_twice(bench: Bench):
    id = bench.ran(1)
    await bench.about_cells.discard(id, ADA)
    with pytest.raises(CellNotFound):
        await bench.about_cells.discard(id, ADA)
    await asyncio.gather(*(bench.about_cells.restore(id, ADA) for _ in range(2)))
    assert bench.way.order == ["a", id]


async def test_a_cell_that_came_back_by_itself_stays_as_it_is(bench: Bench):
    """A person has gone back to an earlier version of the file."""
    id = bench.ran(1)
    before = bench.way.content
    await bench.about_cells.discard(id, ADA)
    bench.way.content = before
    bench.changes(id, source="mine")
    record = await bench.about_cells.restore(id, ADA)
    assert record.document.status == "unsaved"
    assert bench.way.cells[id]["source"] == "mine"
    assert bench.outputs(id) == [INERT]
    assert "trusted" not in bench.way.cells[id]["metadata"]


async def test_a_notebook_that_changes_at_this_very_moment_is_looked_at_again(bench: Bench):
    id = bench.ran(1)
    await bench.about_cells.discard(id, ADA)

    def insert() -> None:
        bench.way.content = notebook(code("new"), *bench.way.content["cells"])

    bench.way.before = insert
    await bench.about_cells.restore(id, ADA)
    assert bench.way.order == ["new", "a", id]


async def test_a_cell_that_is_still_written_is_waited_for(bench: Bench):
    id = bench.ran(1)
    async with bench.placing.lock(id):
        task = asyncio.create_task(bench.about_cells.discard(id, ADA))
        for _ in range(20):
            await asyncio.sleep(0)
        assert id in bench.way.order
    await task
    assert id not in bench.way.order
