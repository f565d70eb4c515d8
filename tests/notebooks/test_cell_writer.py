"""One cell, kept as its execution stands, by ways that come and go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import DocumentUnwritable, NotebookNotFound
from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.cell_writer import (
    CHANGED,
    CellState,
    CellWriter,
    ExistingCell,
    NewCell,
    WriteLoop,
)
from jupyter_agent_exec.notebooks.changes import Position, PutCell, Unreachable
from jupyter_agent_exec.notebooks.documents import Notebooks
from jupyter_agent_exec.types import CellId
from tests.notebooks.ways import DictWay, Switch, code, notebook

LOG = logging.getLogger(__name__)
RUNNING = CellState(
    agent_exec={"status": "running"},
    execution_count=None,
    ended=False,
    has_begun=True,
)
QUEUED = replace(RUNNING, agent_exec={"status": "queued"}, has_begun=False)
OK = CellState(agent_exec={"status": "ok"}, execution_count=7, ended=True, has_begun=True)
SCRIPT = {
    "output_type": "display_data",
    "data": {"application/javascript": "alert(1)"},
    "metadata": {},
}


class Printing:
    """The outputs of an execution that prints."""

    def __init__(self) -> None:
        self.steps: list[OutputChange] = []

    def changes(self, version: int) -> tuple[int, list[OutputChange]]:
        return len(self.steps), self.steps[version:]

    def prints(self, text: str) -> None:
        if self.steps:
            self.steps.append(OutputChange(index=0, append=text))
        else:
            output = {"output_type": "stream", "name": "stdout", "text": text}
            self.steps.append(OutputChange(index=0, output=output))


class Kept:
    """A writer at work."""

    def __init__(
        self,
        *reaches: Any,
        cell: NewCell | ExistingCell | None = None,
        state: CellState = RUNNING,
        merge_delay: float = 0,
        batch_delay: float = 0,
    ) -> None:
        self.path = "a.ipynb"
        self.printing = Printing()
        self.loop = WriteLoop(
            Notebooks(reaches), LOG, merge_delay=merge_delay, batch_delay=batch_delay
        )
        self.writer = CellWriter(
            self.loop,
            "x",
            cell or NewCell("print()", Position()),
            path=lambda: self.path,
            state=state,
            changes=self.printing.changes,
        )
        self.loop.add(self.writer)

    async def prints(self, text: str) -> None:
        """Print, and wait until all is written that was."""
        self.printing.prints(text)
        self.writer.request_update()
        await self.rest()

    async def rest(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    async def ends(self) -> Any:
        self.writer.update(OK)
        return await asyncio.wait_for(self.writer.written, 10)


@asynccontextmanager
async def kept(
    *reaches: Any,
    cell: NewCell | ExistingCell | None = None,
    state: CellState = RUNNING,
) -> AsyncIterator[Kept]:
    it = Kept(*reaches, cell=cell, state=state)
    task = asyncio.create_task(it.loop.run())
    await it.rest()
    yield it
    task.cancel()
    await asyncio.wait({task})


def added(
    loop: WriteLoop,
    id: str,
    state: CellState,
    printing: Printing | None = None,
    path: str = "a.ipynb",
) -> CellWriter:
    """Have a loop write another cell."""
    printing = printing or Printing()
    cell = NewCell("print()", Position())
    return loop.add(
        CellWriter(loop, CellId(id), cell, path=lambda: path, state=state, changes=printing.changes)
    )


def text(way: DictWay) -> str:
    return "".join(output["text"] for output in way.cells["x"]["outputs"])


async def test_the_cell_appears_grows_and_ends():
    tab = DictWay(notebook(code("a")))
    async with kept(tab) as it:
        assert tab.order == ["a", "x"]
        assert tab.cells["x"]["metadata"]["agent_exec"] == {
            "status": "running",
            "execution_count": None,
            "outputs": "inert",
        }
        assert it.writer.document().status == "writing"
        await it.prints("1\n")
        await it.prints("2\n")
        assert text(tab) == "1\n2\n"
        document = await it.ends()
    assert tab.cells["x"]["execution_count"] == 7
    assert tab.cells["x"]["metadata"] == {
        "agent_exec": {"status": "ok", "execution_count": 7, "outputs": "inert"},
        "trusted": True,
    }
    assert (document.status, document.via, document.outputs) == ("written", "tab", "inert")
    assert (document.path, document.cell_id, document.reason) == ("a.ipynb", "x", None)


async def test_only_what_is_new_is_sent():
    tab = DictWay(notebook())
    async with kept(tab) as it:
        await it.prints("1\n")
        await it.prints("2\n")
        await it.prints("3\n")
    sent = [change.changes for changes in tab.applied[2:] for change in changes]
    assert sent == [[OutputChange(index=0, append="2\n")], [OutputChange(index=0, append="3\n")]]


async def test_one_write_at_a_time_and_what_comes_meanwhile_is_merged():
    tab = DictWay(notebook())
    tab.acknowledged = asyncio.Event()
    async with kept(tab) as it:
        for number in range(50):
            await it.prints(f"{number}\n")
        assert len(tab.applied) == 1
        tab.acknowledged.set()
        await it.ends()
    assert tab.most_under_way == 1
    assert len(tab.applied) <= 3
    assert text(tab) == "".join(f"{number}\n" for number in range(50))


async def test_a_tab_that_reloads_gets_the_cell_again_and_whole():
    old = DictWay(notebook(code("a")))
    switch = Switch(old)
    async with kept(switch) as it:
        await it.prints("1\n")
        switch.way = new = DictWay(notebook(code("a")))
        await it.prints("2\n")
        assert text(new) == "1\n2\n"
        await it.prints("3\n")
        await it.ends()
    assert text(new) == "1\n2\n3\n"
    assert text(old) == "1\n"


@pytest.mark.parametrize("made", [True, False], ids=["made", "not made"])
async def test_a_tab_that_closes_in_the_middle_leaves_it_to_the_file(made: bool):
    file = DictWay(notebook(code("a")), via="contents", streams=False)
    tab = DictWay(file.content)
    switch = Switch(tab)
    async with kept(switch, file) as it:
        await it.prints("1\n")
        file.content = tab.content  # it was saved

        def close() -> None:
            switch.way = None
            if not made:
                raise Unreachable("The tab was closed.")

        tab.before, tab.breaks_after = close, made
        await it.prints("2\n")
        document = await it.ends()
    assert text(file) == "1\n2\n"
    assert file.order == ["a", "x"]
    assert document.via == "contents"


async def test_a_tab_that_fails_but_stays_is_passed_over():
    file = DictWay(notebook(), via="contents", streams=False)
    tab = DictWay(notebook())

    def fail() -> None:
        tab.before = fail
        raise Unreachable("It does not answer.")

    fail_first = fail
    tab.before = fail_first
    async with kept(tab, file) as it:
        await it.prints("1\n")
        await it.ends()
    assert text(file) == "1\n"


async def test_a_notebook_that_is_opened_meanwhile_streams_from_then_on():
    file = DictWay(notebook(), via="contents", streams=False)
    switch = Switch(None)
    async with kept(switch, file) as it:
        await it.prints("1\n")
        switch.way = tab = DictWay(file.content)
        await it.prints("2\n")
        assert text(tab) == "1\n2\n"
        document = await it.ends()
    assert tab.order == ["x"]
    assert document.via == "tab"


async def test_the_file_is_written_when_accepted_and_when_finished():
    file = DictWay(notebook(), via="contents", streams=False)
    async with kept(file) as it:
        await it.prints("1\n")
        await it.prints("2\n")
        assert len(file.applied) == 1
        assert file.cells["x"]["metadata"]["agent_exec"]["status"] == "running"
        await it.ends()
    assert len(file.applied) == 2
    assert text(file) == "1\n2\n"


async def test_an_end_that_comes_with_the_beginning_is_written_once():
    file = DictWay(notebook(), via="contents", streams=False)
    it = Kept(file)
    it.writer.update(OK)
    await it.loop.run()
    assert len(file.applied) == 1
    assert file.cells["x"]["execution_count"] == 7


async def test_a_file_that_somebody_saved_without_the_cell_gets_it_again():
    file = DictWay(notebook(code("a")), via="contents", streams=False)
    async with kept(file) as it:
        file.content = notebook(code("a"), code("b"))
        await it.prints("1\n")
        await it.ends()
    assert file.order == ["a", "b", "x"]
    assert text(file) == "1\n"


async def test_outputs_that_a_person_cleared_come_back_with_the_next():
    tab = DictWay(notebook())
    async with kept(tab) as it:
        await it.prints("1\n")
        tab.content = notebook({**tab.cells["x"], "outputs": []})
        await it.prints("2\n")
        assert text(tab) == "1\n2\n"


async def test_a_cell_that_a_person_deleted_stays_deleted():
    tab = DictWay(notebook(code("a")))
    async with kept(tab) as it:
        await it.prints("1\n")
        tab.content = notebook(code("a"))
        await it.prints("2\n")
        document = await it.ends()
    assert tab.order == ["a"]
    assert (document.status, document.cell_id) == ("not_written", None)
    assert "not in the notebook any more" in document.reason


async def test_a_deleted_cell_that_a_person_brings_back_shows_the_end():
    tab = DictWay(notebook(code("a")))
    async with kept(tab) as it:
        await it.prints("1\n")
        before = tab.content
        tab.content = notebook(code("a"))
        await it.prints("2\n")
        assert it.writer.document().status == "not_written"
        tab.content = before
        document = await it.ends()
    assert text(tab) == "1\n2\n"
    assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "ok"
    assert (document.status, document.cell_id, document.reason) == ("written", "x", None)


async def test_a_cell_that_a_person_deleted_stays_deleted_by_another_way_too():
    tab, file = (DictWay(notebook(code("a"))), DictWay(notebook(code("a")), via="contents"))
    switch = Switch(tab)
    async with kept(switch, file) as it:
        await it.prints("1\n")
        tab.content = notebook(code("a"))
        await it.prints("2\n")
        switch.way = None
        document = await it.ends()
    assert (file.order, document.status) == (["a"], "not_written")


async def test_what_is_active_is_held_and_said_to_be():
    tab = DictWay(notebook())
    async with kept(tab) as it:
        it.printing.steps.append(OutputChange(index=0, output=SCRIPT))
        it.writer.request_update()
        await it.rest()
        assert tab.cells["x"]["metadata"]["agent_exec"]["outputs"] == "held"
        assert (await it.ends()).outputs == "held"
    assert "application/javascript" not in tab.cells["x"]["outputs"][0]["data"]


async def test_large_tables_are_made_inert_too():
    tab = DictWay(notebook())
    rows = "<tr><td>1</td></tr>" * 5000
    async with kept(tab) as it:
        for index in range(3):
            html = f"<table>{rows}</table><script>alert({index})</script>"
            output = {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}
            it.printing.steps.append(OutputChange(index=index, output=output))
        it.writer.request_update()
        assert (await it.ends()).outputs == "held"
    tables = [output["data"]["text/html"] for output in tab.cells["x"]["outputs"]]
    assert [table.count("<td>") for table in tables] == [5000] * 3
    assert "script" not in "".join(tables)


async def test_an_unwritable_notebook_is_tried_again_at_the_end():
    file = DictWay(notebook(), via="contents", streams=False)

    def refuse() -> None:
        raise DocumentUnwritable("a.ipynb is read-only.")

    file.before = refuse
    async with kept(file) as it:
        told = it.writer.document()
        assert (told.status, told.reason) == ("not_written", "a.ipynb is read-only.")
        await it.prints("1\n")
        assert file.attempts == 1
        assert (await it.ends()).status == "written"
    assert text(file) == "1\n"


async def test_a_notebook_that_is_renamed_is_followed():
    tab = DictWay(notebook())
    switch = Switch(tab)
    async with kept(switch) as it:
        switch.error = NotebookNotFound("No notebook.")
        it.writer.update(OK)
        await asyncio.sleep(0)
        it.path, switch.error = "b.ipynb", None
        document = await asyncio.wait_for(it.writer.written, 10)
    assert (document.status, document.path) == ("written", "b.ipynb")


async def test_no_cell_waits_for_the_end_of_another_in_a_notebook_that_was_renamed():
    tab = DictWay(notebook())
    async with kept(tab) as it:

        def goes_on() -> None:
            tab.before = goes_on
            it.printing.prints(".")
            it.writer.request_update()

        goes_on()
        it.path = "b.ipynb"
        other = added(it.loop, "y", OK)
        await asyncio.wait_for(other.written, 10)
        assert not it.writer.written.done()


async def test_a_file_that_is_renamed_while_writes_are_gathered_is_followed():
    file = DictWay(notebook(), via="contents", streams=False)
    switch = Switch(file)
    it = Kept(switch, batch_delay=3600)
    it.writer.update(OK)
    task = asyncio.create_task(it.loop.run())
    await it.rest()
    assert file.attempts == 0
    it.path = "b.ipynb"
    it.loop.hurry("b.ipynb")
    await asyncio.wait_for(task, 10)
    document = it.writer.document()
    assert (document.status, document.path, switch.asked[-1]) == ("written", "b.ipynb", "b.ipynb")


async def test_a_notebook_that_vanished_is_told():
    switch = Switch(None)
    async with kept(switch) as it:
        document = await it.ends()
    assert (document.status, document.via) == ("not_written", None)
    assert "a.ipynb" in document.reason


async def test_a_cell_that_is_run_loses_its_old_outputs_only():
    old = [{"output_type": "stream", "name": "stdout", "text": "old"}]
    tab = DictWay(notebook(code("x", "1", old, agent_exec={"status": "error"}), code("b")))
    async with kept(tab, cell=ExistingCell("1", None)) as it:
        await it.prints("new")
        await it.ends()
    assert tab.order == ["x", "b"]
    assert text(tab) == "new"
    assert tab.cells["x"]["source"] == "1"
    assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "ok"


async def test_a_source_that_is_given_replaces_that_of_the_cell():
    tab = DictWay(notebook(code("x", "1")))
    async with kept(tab, cell=ExistingCell("1", "2")) as it:
        tab.content = notebook({**tab.cells["x"], "source": "a person's"})
        await it.ends()
    assert tab.cells["x"]["source"] == "a person's"
    assert tab.applied[0][0].source == "2"


async def test_a_source_that_a_person_changed_first_is_left_alone():
    tab = DictWay(notebook(code("x", "a person's")))
    async with kept(tab, cell=ExistingCell("1", "2")) as it:
        document = await it.ends()
    assert tab.content == notebook(code("x", "a person's"))
    assert document.status == "not_written"
    assert "source was changed" in document.reason


async def test_a_source_that_was_replaced_and_then_edited_stays_edited():
    tab = DictWay(notebook(code("x", "1")))

    def edit() -> None:
        tab.content = notebook({**tab.cells["x"], "source": "edited since"})

    def break_then_edit() -> None:
        tab.before = edit

    tab.before, tab.breaks_after = break_then_edit, True
    async with kept(tab, cell=ExistingCell("1", "2")) as it:
        document = await it.ends()
    assert tab.cells["x"]["source"] == "edited since"
    assert "agent_exec" not in tab.cells["x"]["metadata"]
    assert (document.status, document.reason) == ("not_written", CHANGED)


async def test_an_unacknowledged_source_is_not_taken_for_the_users():
    tab = DictWay(notebook(code("x", "1")))
    tab.breaks_after = True
    async with kept(tab, cell=ExistingCell("1", "2")) as it:
        document = await it.ends()
    assert tab.cells["x"]["source"] == "2"
    assert document.status == "written"


async def test_cells_put_out_of_order_stand_in_order():
    document = DictWay(notebook(code("a", "1"), code("y", "2")))
    it = Kept(document)
    it.writer.again_at = Position(before="y")
    task = asyncio.create_task(it.loop.run())
    await it.ends()
    assert document.order == ["a", "x", "y"]
    await task


async def test_a_new_cell_of_a_short_execution_is_written_once_with_its_end():
    tab = DictWay(notebook(code("a")))
    short = Kept(tab, merge_delay=3600)
    task = asyncio.create_task(short.loop.run())
    await short.rest()
    assert tab.attempts == 0
    short.printing.prints("1\n")
    await short.ends()
    await task
    assert tab.attempts == 1
    assert text(tab) == "1\n"
    assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "ok"


async def test_a_writer_that_is_broken_off_leaves_nothing_half_told():
    tab = DictWay(notebook())
    async with kept(tab) as it:
        pass
    document = it.writer.document()
    assert (document.status, document.reason) == ("not_written", "Writing the cell was broken off.")
    assert it.writer.there.done()


@pytest.mark.parametrize("late", ["x", "y", "z", "none"])
async def test_gathered_ends_cost_one_save_in_order(late):
    """One may end just when the batch is written; it does not overtake the others."""
    file = DictWay(notebook(code("a")), via="contents", streams=False)
    loop = WriteLoop(Notebooks([file]), LOG, merge_delay=0, batch_delay=3600)
    writers: dict[str, CellWriter] = {}
    task: asyncio.Task[None] | None = None
    for id in ("x", "y", "z"):
        writers[id] = added(loop, id, RUNNING)
        task = task or asyncio.create_task(loop.run())
        if id != late:
            writers[id].update(OK)
        for _ in range(5):
            await asyncio.sleep(0)
    assert file.attempts == 0
    if late in writers:
        writers[late].update(OK)
    loop.hurry("a.ipynb")
    await asyncio.wait_for(task, 10)
    assert [change.cell["id"] for change in file.applied[0] if isinstance(change, PutCell)] == [
        *writers
    ]
    assert file.order == ["a", "x", "y", "z"]
    assert file.attempts == 1
    assert [writer.document().status for writer in writers.values()] == ["written"] * 3


async def test_a_cell_that_cannot_be_written_does_not_keep_others_from_being_written():
    class Choosy(DictWay):
        async def apply(self, changes: Any, expected: Any) -> None:
            if any(isinstance(each, PutCell) and each.cell["id"] == "bad" for each in changes):
                raise DocumentUnwritable("A cell would not be valid.")
            await super().apply(changes, expected)

    file = Choosy(notebook(), via="contents", streams=False)
    loop = WriteLoop(Notebooks([file]), LOG, merge_delay=0, batch_delay=0)
    writers = []
    for id in ("x", "bad", "y"):
        writers.append(added(loop, id, OK))
    await asyncio.wait_for(loop.run(), 10)
    assert file.order == ["x", "y"]
    assert [writer.document().reason for writer in writers] == [
        None,
        "A cell would not be valid.",
        None,
    ]


async def test_a_cell_whose_outputs_fail_does_not_keep_others_from_being_written(
    caplog: pytest.LogCaptureFixture,
):
    class Failing(Printing):
        def changes(self, version: int) -> tuple[int, list[OutputChange]]:
            raise RecursionError

    tab = DictWay(notebook())
    async with kept(tab) as it:
        bad = added(it.loop, "bad", OK, Failing())
        told = await asyncio.wait_for(bad.written, 10)
        assert (told.status, told.reason) == ("not_written", "Writing the cell was broken off.")
        assert (await it.ends()).status == "written"
    assert tab.order == ["x"]
    assert "RecursionError" in caplog.text


@pytest.mark.parametrize("way", [{}, {"streams": False, "via": "contents"}])
@pytest.mark.parametrize(
    "cell",
    [
        NewCell("print()", Position()),
        ExistingCell("print()", None),
        ExistingCell("1 + 1", "print()"),
    ],
)
async def test_a_cell_whose_source_is_another_when_its_execution_begins_is_left_alone(
    way: dict[str, Any], cell: NewCell | ExistingCell
) -> None:
    before = [] if isinstance(cell, NewCell) else [code("x", cell.before)]
    document = DictWay(notebook(*before), **way)
    async with kept(document, cell=cell, state=QUEUED) as it:
        assert document.cells["x"]["metadata"]["agent_exec"]["status"] == "queued"
        document.cells["x"]["source"] = "print('another')"
        told = await it.ends()
    assert (told.status, told.cell_id, told.reason) == ("not_written", None, CHANGED)
    left = document.cells["x"]
    assert (left["source"], left["outputs"], left["execution_count"]) == (
        "print('another')",
        [],
        None,
    )
    assert "agent_exec" not in left["metadata"]


async def test_who_types_in_a_cell_while_its_code_runs_sees_how_it_ends() -> None:
    tab = DictWay(notebook(code("x", "1 + 1")))
    async with kept(tab, cell=ExistingCell("1 + 1", None)) as it:
        tab.cells["x"]["source"] = "1 + 12"
        told = await it.ends()
    assert told.status == "written"
    assert (tab.cells["x"]["source"], tab.cells["x"]["execution_count"]) == ("1 + 12", 7)
