"""Which way leads to a notebook, and what becomes of edits when it moves or breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jupyter_agent_exec.errors import DocumentChanged, DocumentUnwritable, NotebookNotFound
from jupyter_agent_exec.models import (
    ClearOutputs,
    DeleteCell,
    Edit,
    InsertCell,
    MoveCell,
    ReplaceCell,
)
from jupyter_agent_exec.notebooks.changes import (
    Change,
    Expected,
    Notebook,
    NotebookHandle,
    Position,
    PutCell,
    Unreachable,
    apply,
    new_cell,
    order_of,
)
from jupyter_agent_exec.notebooks.documents import MAX_PLANS, Notebooks
from jupyter_agent_exec.notebooks.edits import EditPlan, notebook_hash
from jupyter_agent_exec.types import CellId, Via
from tests.notebooks.notebooks_made import as_read, code, persons_notebook, result

ANY = Expected()
PATH = "work/a.ipynb"


class Document:
    """What the ways of a test lead to."""

    def __init__(self, *cells: Any) -> None:
        self.content: dict[str, Any] = persons_notebook(*cells)

    def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        self.content = apply(self.content, changes, expected)

    @property
    def order(self) -> list[str]:
        return [str(id) for id in order_of(self.content["cells"])]


class OneWay:
    """A way, and what reaches it."""

    streams = False

    def __init__(self, document: Document, via: Via) -> None:
        self.document = document
        self.via = via
        self.there = True
        self.applied = 0
        self.put: list[str] = []
        self.before_apply: Callable[[], None] | None = None
        self.before_read: Callable[[], None] | None = None
        self.breaks_off: str | None = None

    async def find(self, path: str) -> NotebookHandle | None:
        return self if self.there and path == PATH else None

    async def read(self) -> Notebook:
        if self.breaks_off == "reading":
            raise Unreachable
        await asyncio.sleep(0)
        if self.before_read is not None:
            self.before_read()
        return as_read(self.document.content)

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        self.applied += 1
        self.put = [change.cell["id"] for change in changes if isinstance(change, PutCell)]
        if self.before_apply is not None:
            self.before_apply()
        if self.breaks_off == "before":
            raise Unreachable
        await asyncio.sleep(0)
        self.document.apply(changes, expected)
        if self.breaks_off == "after":
            raise Unreachable


class Ways:
    """Three ways to one document."""

    def __init__(self) -> None:
        self.document = Document(code("a", "1"), code("b", "2"))
        self.live = OneWay(self.document, "collaboration")
        self.tab = OneWay(self.document, "tab")
        self.file = OneWay(self.document, "contents")
        self.notebooks = Notebooks([self.live, self.tab, self.file])
        self.told: list[int] = []

    async def edit(self, *edits: Edit, **asked: Any) -> tuple[Via, EditPlan]:
        async def about_to(planned: EditPlan) -> None:
            self.told.append(self.live.applied + self.tab.applied + self.file.applied)

        hash = asked.get("hash")
        return await self.notebooks.edit(PATH, edits, hash, about_to)


@pytest.fixture
def ways() -> Ways:
    return Ways()


def put(id: str = "new") -> PutCell:
    return PutCell(cell=new_cell(CellId(id), "code", ""), at=Position())


def inserted(source: str = "x", **at: Any) -> InsertCell:
    return InsertCell(cell_type="code", source=source, **at)


async def test_the_first_way_that_there_is_is_taken(ways: Ways) -> None:
    assert (await ways.notebooks.find(PATH)).via == "collaboration"
    ways.live.there = False
    assert (await ways.notebooks.find(PATH)).via == "tab"
    ways.tab.there = False
    assert (await ways.notebooks.find(PATH)).via == "contents"


async def test_a_way_that_breaks_off_is_followed_by_the_next(ways: Ways) -> None:
    ways.live.breaks_off = "reading"
    way, notebook = await ways.notebooks.read(PATH)
    assert (way.via, order_of(notebook.cells)) == ("tab", ["a", "b"])
    ways.tab.breaks_off = "after"
    ways.live.breaks_off = "before"
    handle = await ways.notebooks.revise(PATH, lambda *_: ([put()], ANY))
    assert handle.via == "contents"
    assert ways.document.order == ["a", "b", "new"]


async def test_no_way_is_no_notebook(ways: Ways) -> None:
    for call in (
        ways.notebooks.find("b.ipynb"),
        ways.notebooks.read("b.ipynb"),
        ways.notebooks.revise("b.ipynb", lambda *_: ([], ANY)),
    ):
        with pytest.raises(NotebookNotFound):
            await call


async def test_what_is_to_be_done_is_told_before_and_again_when_it_changes(ways: Ways) -> None:
    moves = iter([True, True])

    def move() -> None:
        if next(moves, False):
            ways.document.apply([put(f"person-{len(ways.document.order)}")], ANY)

    ways.live.before_apply = move
    via, planned = await ways.edit(inserted(after=CellId("a")))
    ((new,),) = planned.cell_ids
    assert via == "collaboration"
    assert ways.document.order == ["a", new, "b", "person-2", "person-3"]
    assert planned.before["order"] == ["a", "b", "person-2", "person-3"]
    assert planned.hash == notebook_hash(ways.document.content["cells"])
    assert ways.told == [0, 1, 2]


async def test_a_notebook_that_never_rests_is_left_alone(ways: Ways) -> None:
    ways.live.before_apply = lambda: ways.document.apply([put(f"p{ways.live.applied}")], ANY)
    with pytest.raises(DocumentChanged) as raised:
        await ways.edit(inserted())
    assert ways.live.applied == MAX_PLANS
    assert len(ways.document.order) == 2 + MAX_PLANS
    assert raised.value.detail["cell_count"] == 1 + MAX_PLANS


async def test_a_cell_that_goes_while_it_is_edited_is_told_as_gone(ways: Ways) -> None:
    ways.live.before_apply = lambda: ways.document.apply([put()], ANY)
    hash = notebook_hash(ways.document.content["cells"])
    with pytest.raises(DocumentChanged) as raised:
        await ways.edit(inserted(), hash=hash)
    assert raised.value.detail["field"] == "hash"
    assert ways.document.order == ["a", "b", "new"]


async def test_a_hash_that_is_not_the_notebooks_is_refused_before_anything_is_told(
    ways: Ways,
) -> None:
    with pytest.raises(DocumentChanged) as raised:
        await ways.edit(inserted(), hash="0" * 64)
    assert [cell["id"] for cell in raised.value.detail["cells"]] == ["a", "b"]
    assert (ways.told, ways.live.applied) == ([], 0)
    hash = notebook_hash(ways.document.content["cells"])
    await ways.edit(inserted(), hash=hash)


EDITS: list[list[Edit]] = [
    [inserted(after=CellId("a"))],
    [ReplaceCell(cell_id=CellId("a"), source="3", source_sha256=None)],
    [MoveCell(cell_id=CellId("a"))],
    [DeleteCell(cell_id=CellId("b"))],
    [inserted(), DeleteCell(cell_id=CellId("a")), inserted("y")],
]


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("breaks_off", ["before", "after"])
@pytest.mark.parametrize("with_hash", [True, False])
async def test_edits_are_made_once_when_a_way_breaks_off(
    ways: Ways, edits: list[Edit], breaks_off: str, with_hash: bool
) -> None:
    alone = Ways()
    await alone.edit(*edits)
    hash = notebook_hash(ways.document.content["cells"]) if with_hash else None
    ways.live.breaks_off = ways.tab.breaks_off = breaks_off
    via, planned = await ways.edit(*edits, hash=hash)
    assert via == ("contents" if breaks_off == "before" else "tab")

    def sources(of: Ways) -> list[str]:
        return [cell["source"] for cell in of.document.content["cells"]]

    assert sources(ways) == sources(alone)
    assert planned.hash == notebook_hash(ways.document.content["cells"])
    assert ways.told[0] == 0


async def test_outputs_are_cleared_though_a_way_broke_off_before_that(ways: Ways) -> None:
    ways.document.content = persons_notebook(code("a", "1", [result(text_plain="1")]))
    ways.live.breaks_off = "before"
    via, _ = await ways.edit(ClearOutputs(cell_id=CellId("a")))
    assert via == "tab"
    assert ways.document.content["cells"][0]["outputs"] == []


async def test_a_cell_put_before_a_break_is_not_put_twice(
    ways: Ways,
) -> None:
    ways.live.breaks_off = "after"
    ways.tab.before_read = lambda: ways.document.apply([put("person")], ANY)
    via, planned = await ways.edit(inserted("x"))
    ((new,),) = planned.cell_ids
    assert via == "tab"
    assert ways.document.order == ["a", "b", new, "person"]
    assert ways.told[0] == 0


async def test_a_cell_is_put_under_one_id_by_all_ways(ways: Ways) -> None:
    ways.live.breaks_off = "before"
    via, planned = await ways.edit(inserted("x"), inserted("y"))
    assert via == "tab"
    assert ways.live.put == ways.tab.put == [id for (id,) in planned.cell_ids]


async def test_edits_of_two_agents_come_one_after_the_other(ways: Ways) -> None:
    await asyncio.gather(*(ways.edit(inserted(str(n))) for n in range(20)))
    sources = [cell["source"] for cell in ways.document.content["cells"][2:]]
    assert sources == [str(n) for n in range(20)]
    assert ways.live.applied == 20


async def test_what_the_record_does_not_take_is_not_done(ways: Ways) -> None:
    async def about_to(planned: EditPlan) -> None:
        raise DocumentUnwritable("no")

    with pytest.raises(DocumentUnwritable):
        await ways.notebooks.edit(PATH, [inserted()], None, about_to)
    assert ways.live.applied == 0


async def test_very_many_edits_are_planned_beside_the_loop(ways: Ways) -> None:
    ways.document.content = persons_notebook(*(code(f"c{n}") for n in range(300)))
    _, planned = await ways.edit(*(inserted(str(n)) for n in range(200)))
    assert len(ways.document.order) == 500
    assert len({id for (id,) in planned.cell_ids}) == 200
