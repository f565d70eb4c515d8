"""Notebooks as files, through real contents managers and a real notary."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.filemanager import (
    AsyncFileContentsManager,
    FileContentsManager,
)
from jupyter_server.services.contents.largefilemanager import (
    AsyncLargeFileManager,
    LargeFileManager,
)
from nbformat.sign import MemorySignatureStore, NotebookNotary
from tornado.web import HTTPError

from jupyter_agent_exec.errors import AgentExecError, DocumentUnwritable, NotebookNotFound
from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.backends.contents import MAX_TRIES, ContentsBackend
from jupyter_agent_exec.notebooks.changes import (
    Change,
    DeleteCell,
    Expected,
    Moved,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    find_cell,
    new_cell,
    order_of,
)
from jupyter_agent_exec.types import CellId
from tests.notebooks.notebooks_made import (
    CELLS,
    NEW_IDS,
    OTHER_MAKERS,
    File,
    as_written,
    code,
    persons_notebook,
    result,
)

ANY = Expected()
X = CellId("x_01JD0000000000000000000000")
LOG = logging.getLogger("test")

MANAGERS = [
    FileContentsManager,
    AsyncFileContentsManager,
    LargeFileManager,
    AsyncLargeFileManager,
]


@pytest.fixture(params=MANAGERS, ids=lambda manager: manager.__name__)
def contents(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return managing(request.param, tmp_path)


def managing(manager: Any, folder: Path) -> Any:
    made = manager(root_dir=str(folder))
    notary = NotebookNotary(data_dir=str(folder), store_factory=MemorySignatureStore)
    made.notary = notary
    return made


@pytest.fixture
def file(tmp_path: Path) -> File:
    (tmp_path / "a b").mkdir()
    file = File(tmp_path / "a b" / "sales.ipynb")
    file.text = as_written(persons_notebook())
    return file


API_PATH = "a b/sales.ipynb"


def put(id: str = X, source: str = "2") -> PutCell:
    return PutCell(cell=new_cell(CellId(id), "code", source), at=Position())


def agents_cell(output: Any, *, trusted: bool = True, id: CellId = X) -> list[Change]:
    """What an agent's execution does to a notebook."""
    return [
        put(id),
        SetCell(
            cell_id=id,
            agent_exec={"execution_id": id},
            execution_count=1,
            execution_state="idle",
            trusted=trusted,
        ),
        SetOutputs(
            cell_id=id,
            changes=[OutputChange(index=0, truncate=True), OutputChange(index=0, output=output)],
        ),
    ]


async def applied(
    contents: Any, *changes: Change, path: str = API_PATH, expected: Expected = ANY
) -> None:
    ways = ContentsBackend(contents, LOG)
    await (await ways.find(path)).apply(changes, expected)
    await ways.stop()


def on_disk(file: File) -> Any:
    made = nbformat.reads(file.text, nbformat.NO_CONVERT)
    nbformat.validate(made)
    return made


async def test_a_notebook_is_read_as_it_is_on_disk(contents: Any, file: File) -> None:
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    notebook = await way.read()
    assert (way.via, way.streams) == ("contents", False)
    assert [cell["id"] for cell in notebook.cells] == ["title", "load", "plot", "raw"]
    assert notebook.cells[1]["source"] == "import pandas\ndf = 1"
    assert notebook.cells[1]["outputs"][0]["text"] == "a\nb\n"
    assert notebook.nbformat_minor == 5


async def test_an_added_cell_leaves_the_rest_of_the_file_unchanged(
    contents: Any, file: File
) -> None:
    before = file.text
    await applied(contents, *agents_cell(result(text_plain="2\n3")))
    assert [cell["id"] for cell in on_disk(file).cells] == ["title", "load", "plot", "raw", X]
    await applied(contents, DeleteCell(cell_id=X))
    assert file.text == before


async def test_a_notebook_before_ids_is_not_upgraded(contents: Any, file: File) -> None:
    file.text = as_written(persons_notebook(minor=4))
    before = file.text
    await applied(contents, *agents_cell(result(text_plain="2")))
    assert on_disk(file).nbformat_minor == 4
    assert on_disk(file).cells[-1].metadata.agent_exec == {"execution_id": X, "cell_id": X}
    await applied(contents, DeleteCell(cell_id=X))
    assert file.text == before


async def trust(contents: Any) -> None:
    await ensure_async(contents.trust_notebook(API_PATH))


async def is_trusted(contents: Any, file: File) -> bool:
    """Ask the notary, and what a reload says of each cell."""
    signed = contents.notary.check_signature(on_disk(file))
    reloaded = (await ensure_async(contents.get(API_PATH)))["content"]
    marks = {cell.metadata.trusted for cell in reloaded.cells if cell.cell_type == "code"}
    assert marks == {signed}
    return bool(signed)


@pytest.mark.parametrize("trusted_before", [True, False])
async def test_an_inert_cell_leaves_the_notebooks_trust_as_it_was(
    contents: Any, file: File, trusted_before: bool
) -> None:
    if trusted_before:
        await trust(contents)
    assert await is_trusted(contents, file) is trusted_before
    await applied(contents, *agents_cell(result(text_plain="2", text_html="<b>2</b>")))
    assert await is_trusted(contents, file) is trusted_before
    assert "trusted" not in file.text


async def test_a_cell_that_is_not_said_to_be_trusted_takes_the_trust_away(
    contents: Any, file: File
) -> None:
    await trust(contents)
    await applied(contents, *agents_cell(result(text_html="<b>2</b>"), trusted=False))
    assert not await is_trusted(contents, file)


async def test_a_cell_that_is_put_cannot_bring_trust(contents: Any, file: File) -> None:
    await trust(contents)
    cell = {**code(X, outputs=[result(text_html=PAYLOAD)]), "metadata": {"trusted": True}}
    await applied(contents, PutCell(cell=cell, at=Position()))
    assert not await is_trusted(contents, file)


PAYLOAD = "<script>alert(1)</script>"


async def test_what_was_expected_is_asked_of_the_file(contents: Any, file: File) -> None:
    before = file.text
    expected = Expected(cells={CellId("load"): ("code", "something else")})
    with pytest.raises(Moved):
        await applied(contents, put(), expected=expected)
    assert file.text == before


class Counting:
    """Lets a test do something between the reading of a notebook and its saving."""

    def __init__(self, contents: Any) -> None:
        self._contents = contents
        self.saves = 0
        self.reads = 0
        self.after_read: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._contents, name)

    async def get(self, path: str, content: bool = True, **asked: Any) -> Any:
        model = await ensure_async(self._contents.get(path, content=content, **asked))
        if content:
            self.reads += 1
            if self.after_read is not None:
                await self.after_read()
        return model

    async def save(self, model: Any, path: str) -> Any:
        self.saves += 1
        return await ensure_async(self._contents.save(model, path))


class Hashing(Counting):
    async def get(
        self, path: str, content: bool = True, require_hash: bool = False, **asked: Any
    ) -> Any:
        return await super().get(path, content=content, require_hash=require_hash, **asked)


@pytest.mark.parametrize("kind", [Hashing, Counting])
async def test_what_somebody_saves_meanwhile_is_kept(
    contents: Any, file: File, kind: type[Counting]
) -> None:
    counting = kind(contents)
    edited = persons_notebook()
    edited.cells[1].source = "edited by the person"

    async def save_once() -> None:
        counting.after_read = None
        file.text = as_written(edited)

    counting.after_read = save_once
    await applied(counting, put())
    assert [cell.source for cell in on_disk(file).cells][1] == "edited by the person"
    assert on_disk(file).cells[-1].id == X
    assert (counting.reads, counting.saves) == (2, 1)


async def test_what_is_saved_within_a_tick_of_the_clock_is_kept(
    contents: Any, file: File, tmp_path: Path
) -> None:
    counting = Hashing(contents)
    path = tmp_path / API_PATH
    edited = persons_notebook()
    edited.cells[1].source = "edited by the person"

    async def save_once() -> None:
        counting.after_read = None
        before = path.stat()
        file.text = as_written(edited)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    counting.after_read = save_once
    await applied(counting, put())
    assert on_disk(file).cells[1].source == "edited by the person"
    assert on_disk(file).cells[-1].id == X


async def test_hidden_notebooks_are_reached_where_the_server_shows_them(
    contents: Any, file: File, tmp_path: Path
) -> None:
    contents.allow_hidden = True
    hidden = tmp_path / ".hidden" / "n.ipynb"
    hidden.parent.mkdir()
    hidden.write_text(as_written(persons_notebook()))
    await (await ContentsBackend(contents, LOG).find(".hidden/n.ipynb")).apply([put()], ANY)
    assert X in hidden.read_text()


async def test_a_read_waits_for_a_save_to_end(contents: Any, file: File) -> None:
    whole = file.text
    file.text = ""  # as whoever saves in place leaves it for a moment

    class BeingSaved(Counting):
        async def get(self, path: str, content: bool = True, **asked: Any) -> Any:
            try:
                return await super().get(path, content=content, **asked)
            except HTTPError:
                file.text = whole
                raise

    await applied(BeingSaved(contents), put())
    assert [cell.id for cell in on_disk(file).cells] == ["title", "load", "plot", "raw", X]


async def test_a_file_that_never_rests_is_left_alone(contents: Any, file: File) -> None:
    counting = Hashing(contents)

    async def save_each_time() -> None:
        file.text = file.text + "\n"

    counting.after_read = save_each_time
    with pytest.raises(Moved):
        await applied(counting, put())
    assert (counting.reads, counting.saves) == (MAX_TRIES, 0)


async def test_callers_that_wait_save_in_turn_and_each_has_its_own_failure(
    contents: Any, file: File
) -> None:
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    wrong = Expected(order=[])
    outcomes = await asyncio.gather(
        *(way.apply([put(f"n{n}")], wrong if n == 3 else ANY) for n in range(8)),
        return_exceptions=True,
    )
    assert [type(one) for one in outcomes] == [type(None)] * 3 + [Moved] + [type(None)] * 4
    assert [cell.id for cell in on_disk(file).cells[4:]] == [f"n{n}" for n in range(8) if n != 3]


async def test_who_shows_the_notebook_hears_of_a_save_and_of_the_hash_since(
    contents: Any, file: File
) -> None:
    heard: list[tuple[str, str | None]] = []
    ways = ContentsBackend(contents, LOG, saved=lambda path, hash: heard.append((path, hash)))
    way = await ways.find(f"/{API_PATH}")
    with pytest.raises(Moved):
        await way.apply([put()], Expected(order=[]))
    await way.apply([put()], ANY)
    await ways.stop()
    model = await ensure_async(contents.get(API_PATH, content=False, require_hash=True))
    assert heard == [(API_PATH, model["hash"])]


async def test_a_cell_that_would_not_be_valid_fails_its_own_caller_only(
    contents: Any, file: File
) -> None:
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    outcomes = await asyncio.gather(
        way.apply(agents_cell({"output_type": "stream", "text": "no name"}, id=CellId("bad")), ANY),
        way.apply([put("good")], ANY),
        return_exceptions=True,
    )
    assert [type(one) for one in outcomes] == [DocumentUnwritable, type(None)]
    assert [cell.id for cell in on_disk(file).cells[4:]] == ["good"]


async def test_what_comes_while_it_saves_is_saved_after_it(contents: Any, file: File) -> None:
    reading = Hashing(contents)
    ways = ContentsBackend(reading, LOG)
    later: list[asyncio.Future[None]] = []

    async def ask_for_more() -> None:
        reading.after_read = None
        way = await ways.find(f"/{API_PATH}")  # the same file
        later.extend(asyncio.ensure_future(way.apply([put(f"n{n}")], ANY)) for n in range(3))

    reading.after_read = ask_for_more
    await (await ways.find(API_PATH)).apply([put()], ANY)
    await ways.stop()
    assert [cell.id for cell in on_disk(file).cells[4:]] == [X, "n0", "n1", "n2"]
    await asyncio.gather(*later)


async def test_a_caller_who_leaves_does_not_take_the_others_along(
    contents: Any, file: File
) -> None:
    counting = Hashing(contents)
    ways = ContentsBackend(counting, LOG)
    way = await ways.find(API_PATH)
    leaves = asyncio.ensure_future(way.apply([put("leaves")], ANY))

    async def leave() -> None:
        counting.after_read = None
        leaves.cancel()
        await asyncio.wait({leaves})

    counting.after_read = leave
    await way.apply([put("stays")], ANY)
    await ways.stop()
    assert [cell.id for cell in on_disk(file).cells[4:]] == ["stays"]


async def test_a_save_that_has_begun_ends_when_its_caller_leaves(contents: Any, file: File) -> None:
    class Leaving(Hashing):
        async def save(self, model: Any, path: str) -> Any:
            leaves.cancel()
            return await super().save(model, path)

    way = await ContentsBackend(Leaving(contents), LOG).find(API_PATH)
    leaves = asyncio.ensure_future(way.apply([put("leaves")], ANY))
    await asyncio.gather(way.apply([put("one")], ANY), way.apply([put("two")], ANY))
    assert [cell.id for cell in on_disk(file).cells[4:]] == ["leaves", "one", "two"]
    assert leaves.cancelled()


async def test_a_file_is_written_by_one_at_a_time(contents: Any, file: File) -> None:
    class Alone(Hashing):
        at_work = False

        async def get(self, path: str, content: bool = True, **asked: Any) -> Any:
            assert not (content and self.at_work)
            self.at_work |= content
            for _ in range(10):  # so that others come in between
                await asyncio.sleep(0)
            return await super().get(path, content=content, **asked)

        async def save(self, model: Any, path: str) -> Any:
            await super().save(model, path)
            self.at_work = False

    way = await ContentsBackend(Alone(contents), LOG).find(API_PATH)
    first = asyncio.ensure_future(way.apply([put("first")], ANY))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.gather(*(way.apply([put(f"n{n}")], ANY) for n in range(3)), first)
    assert [cell.id for cell in on_disk(file).cells[4:]] == ["first", "n0", "n1", "n2"]


def broken(path: Path, **changed: Any) -> None:
    made = json.loads(as_written(persons_notebook()))
    file.text = json.dumps({**made, **changed})


EMPTY_3 = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": []}


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        (json.dumps(EMPTY_3), True),
        (json.dumps({"nbformat": 5, "nbformat_minor": 0, "metadata": {}, "cells": []}), False),
        (json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}), False),
        ("not a notebook", False),
        ("", False),
        ("[]", False),
        (as_written(persons_notebook()).replace('"metadata": {', '"extra": {', 1), False),
    ],
    ids=["nbformat 3", "nbformat 5", "no cell", "text", "empty", "list", "no metadata"],
)
async def test_what_is_no_valid_notebook_of_version_4_is_not_written_to(
    contents: Any, file: File, text: str, readable: bool
) -> None:
    file.text = text
    with pytest.raises(DocumentUnwritable, match=r"^a b/sales.ipynb .*\.$"):
        await applied(contents, put())
    assert file.text == text
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    if readable:
        assert (await way.read()).cells == []
    else:
        with pytest.raises(DocumentUnwritable):
            await way.read()


@pytest.mark.parametrize(
    "where",
    ["gone.ipynb", "a b", "", "../etc/passwd", "x" * 300, ".hidden/n.ipynb", "a b/s\0.ipynb"],
)
async def test_where_no_notebook_is_is_said(
    contents: Any, file: File, tmp_path: Path, where: str
) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "n.ipynb").write_text(as_written(persons_notebook()))
    way = await ContentsBackend(contents, LOG).find(where)
    for call in (way.read(), way.apply([put()], ANY)):
        with pytest.raises(NotebookNotFound):
            await call


async def test_a_file_that_is_read_only_is_not_written_to(contents: Any, file: File) -> None:
    class ReadOnly(Hashing):
        """As a contents manager tells it; the user that runs tests may write everywhere."""

        async def get(self, path: str, **asked: Any) -> Any:
            return {**await super().get(path, **asked), "writable": False}

    counting = ReadOnly(contents)
    with pytest.raises(DocumentUnwritable, match="read-only"):
        await applied(counting, put())
    assert counting.saves == 0


async def test_a_save_that_fails_is_told_to_all_who_wait(contents: Any, file: File) -> None:
    class Failing(Hashing):
        async def save(self, model: Any, path: str) -> Any:
            raise HTTPError(403, "Permission denied: %s", path)

    way = await ContentsBackend(Failing(contents), LOG).find(API_PATH)
    outcomes = await asyncio.gather(
        way.apply([put()], ANY), way.apply([put("b")], ANY), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [DocumentUnwritable] * 2
    assert all(isinstance(one, AgentExecError) for one in outcomes)
    assert outcomes[0] is not outcomes[1]


async def test_a_contents_manager_that_breaks_leaves_nobody_waiting(
    contents: Any, file: File, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Hashing):
        async def save(self, model: Any, path: str) -> Any:
            raise RuntimeError("It is broken.")

    way = await ContentsBackend(Broken(contents), LOG).find(API_PATH)
    for _ in range(2):
        with pytest.raises(DocumentUnwritable, match="log says why"):
            await way.apply([put()], ANY)
    await asyncio.sleep(0)
    assert "It is broken." in caplog.text


async def test_a_notebook_that_vanishes_before_it_is_saved_is_told(
    contents: Any, file: File
) -> None:
    counting = Hashing(contents)

    async def vanish() -> None:
        file.remove()

    counting.after_read = vanish
    with pytest.raises(NotebookNotFound):
        await applied(counting, put())
    assert not file.exists


async def test_a_source_may_be_set_in_a_large_notebook_without_touching_others(
    contents: Any, file: File
) -> None:
    cells = [code(f"c{n}", f"x = {n}\n" * 20) for n in range(300)]
    file.text = as_written(persons_notebook(*cells))
    before = file.text
    await applied(contents, SetSource(cell_id=CellId("c150"), source="changed"))
    await applied(contents, SetSource(cell_id=CellId("c150"), source="x = 150\n" * 20))
    assert file.text == before


@pytest.mark.parametrize("kernelspec", [{}, None])
async def test_what_is_not_quite_valid_is_read_and_stays_as_it_is(
    contents: Any, file: File, kernelspec: Any
) -> None:
    notebook = persons_notebook(*(code(id) for id in ("bare", "extra", "outputs", "changed")))
    bare, extra, outputs, changed = notebook.cells
    notebook.metadata.kernelspec = kernelspec
    for cell in (bare, changed):
        del cell["outputs"], cell["execution_count"]
    extra["unknown"] = {"to": "nbformat"}
    outputs["outputs"] = [{"output_type": "display_data", "data": {"text/plain": "<Plot>"}}]
    file.text = json.dumps(notebook)
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    first, *_ = (await way.read()).cells
    assert (first["outputs"], first["execution_count"]) == ([], None)
    await applied(contents, SetSource(cell_id=CellId("changed"), source="2"))
    after = json.loads(file.text)
    assert after["metadata"] == notebook.metadata
    kept = nbformat.reads(file.text, nbformat.NO_CONVERT).cells[:3]
    assert kept == [{**bare, "outputs": []}, extra, outputs]
    assert after["cells"][3]["execution_count"] is None


@pytest.mark.parametrize(
    ("at", "value", "place"),
    [
        (("cell_type",), "heading", "cell 1: cell_type"),
        (("cell_type",), None, "cell 1: cell_type"),
        (("metadata",), None, "cell 1: metadata"),
        (("source",), 7, "cell 1: source"),
        (("execution_count",), "one", "cell 1: execution_count"),
        (("outputs", 0, "text"), {}, r"cell 1: outputs\[0\].text"),
        (("outputs", 0, "output_type"), "odd", r"cell 1: outputs\[0\]"),
    ],
)
async def test_what_cannot_be_repaired_is_refused_by_its_place(
    contents: Any, file: File, at: tuple[Any, ...], value: Any, place: str
) -> None:
    notebook = json.loads(file.text)
    *above, last = ("cells", 1, *at)
    part = notebook
    for key in above:
        part = part[key]
    part[last] = value
    file.text = before = json.dumps(notebook)
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    for call in (way.read(), way.apply([put()], ANY)):
        with pytest.raises(DocumentUnwritable, match=place):
            await call
    assert file.text == before


@NEW_IDS
@pytest.mark.parametrize("notebook", OTHER_MAKERS.values(), ids=OTHER_MAKERS.keys())
async def test_cells_without_ids_are_named_alike_at_each_read_and_untouched_ones_stay(
    contents: Any, file: File, notebook: dict[str, Any]
) -> None:
    file.text = json.dumps(notebook)
    way = await ContentsBackend(contents, LOG).find(API_PATH)
    names = order_of((await way.read()).cells)
    assert order_of((await way.read()).cells) == names
    for name, (_, source) in zip(names, CELLS, strict=True):
        cell = find_cell((await way.read()).cells, name)
        assert cell is not None
        assert cell["source"] == source
    await applied(contents, SetSource(cell_id=names[2], source="changed"))
    after = on_disk(file)
    as_before = nbformat.reads(json.dumps(notebook), nbformat.NO_CONVERT)
    for index, (cell, before) in enumerate(zip(after.cells, as_before.cells, strict=True)):
        if after.nbformat_minor >= 5:
            assert cell.pop("id") == names[index]
            before.pop("id", None)
        elif index == 2:
            assert cell.metadata.pop("agent_exec") == {"cell_id": names[index]}
        assert cell == {**before, "source": "changed" if index == 2 else before.source}
    assert order_of((await way.read()).cells) == names
