"""Whatever a notebook's file holds is read as it is, or refused with a reason, never broken."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_server.services.contents.filemanager import FileContentsManager
from nbformat import v4

from jupyter_agent_exec.errors import DocumentUnwritable
from jupyter_agent_exec.models import ClearOutputs, Edit, MoveCell, ReplaceCell
from jupyter_agent_exec.notebooks.backends.contents import ContentsBackend
from jupyter_agent_exec.notebooks.changes import Notebook, order_of
from jupyter_agent_exec.notebooks.edits import notebook_hash, plan
from jupyter_agent_exec.notebooks.manager import CellsQuery, told
from jupyter_agent_exec.types import CellId
from tests.fuzzing import examples, json_values
from tests.notebooks.notebooks_made import NEW_IDS, VERSION_3, File, numbered, result, without_ids

LOG = logging.getLogger("test")


def whole(minor: int) -> dict[str, Any]:
    notebook = without_ids(minor, ids=["a", "b"])
    outputs = notebook["cells"][1]["outputs"]
    outputs += [result(text_plain="1"), v4.new_output("error", ename="E", evalue="", traceback=[])]
    return notebook


def places(part: Any, *above: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each field of a notebook."""
    fields = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in fields:
        yield (*above, key)
        if isinstance(value, (dict, list)):
            yield from places(value, *above, key)


AT_ONCE = 20
"""How many notebooks are read at a time: an unreadable one is tried again for a while."""

WHOLE = [(notebook, [*places(notebook)]) for notebook in (*map(whole, (0, 4, 5)), VERSION_3)]
IDS = st.sampled_from(["", "a", "0123abcd", "my cell", "x" * 65, None])
MUTATIONS = st.sampled_from(["replace", "remove", "repeat", "add", "id"])


@st.composite
def notebooks(draw: st.DrawFn) -> dict[str, Any]:
    """Return a notebook in which up to three fields are other ones, or missing, or there twice."""
    notebook, fields = draw(st.sampled_from(WHOLE))
    chosen = draw(st.sets(st.integers(0, len(fields) - 1), min_size=1, max_size=3))
    mutated = copy.deepcopy(notebook)
    for index in sorted(chosen, reverse=True):  # a place does not move what stands before it
        *above, last = fields[index]
        part = mutated
        for key in above:
            part = part[key]
        match draw(MUTATIONS):
            case "remove":
                del part[last]
            case "repeat" if isinstance(part, list):
                part.insert(last, copy.deepcopy(part[last]))
            case "add" if isinstance(part, dict):
                part["unknown"] = draw(json_values)
            case "id" if isinstance(part, dict):
                part["id"] = draw(IDS)
            case _:
                part[last] = draw(json_values)
    return mutated


@NEW_IDS
@pytest.mark.hypothesis
@examples(4)
@given(mutated=st.lists(notebooks(), min_size=AT_ONCE, max_size=AT_ONCE), at=st.integers(0, 5))
def test_a_mutated_notebook_is_read_alike_and_edited_only_where_asked(
    tmp_path: Path, mutated: list[dict[str, Any]], at: int
) -> None:
    backend = ContentsBackend(FileContentsManager(root_dir=str(tmp_path)), LOG)

    async def edit_all() -> None:
        files = [tmp_path / f"{index}.ipynb" for index in range(AT_ONCE)]
        for file, notebook in zip(files, mutated, strict=True):
            File(file).text = json.dumps(notebook)
        await asyncio.gather(*(read_and_edited(backend, file, at) for file in files))

    asyncio.run(edit_all())


async def read_and_edited(backend: ContentsBackend, path: Path, at: int) -> None:
    """Read a notebook twice, edit one of its cells, and look at the others."""
    file = File(path)
    before = file.text
    way = await backend.find(path.name)
    try:
        notebook = await way.read()
    except DocumentUnwritable:
        return
    names = order_of(notebook.cells)
    assert order_of((await way.read()).cells) == names
    assert len(set(names)) == len(names)
    told(path.name, "contents", notebook, CellsQuery(), lambda id, offset: "")
    for name in names[at : at + 1]:
        planned = plan(notebook, edits(notebook, name), numbered())
        try:
            await way.apply(planned.changes, planned.expected)
        except DocumentUnwritable:
            assert file.text == before
            return
        after = await way.read()
        assert notebook_hash(after.cells) == planned.hash
        assert order_of(after.cells) == planned.after["order"]
        others = set(names) - planned.touched
        assert cells(file.text, planned.after["order"], others) == cells(before, names, others)


def edits(notebook: Notebook, name: CellId) -> list[Edit]:
    """Return edits of one cell, and of what is beside it."""
    first = order_of(notebook.cells)[0]
    moved: list[Edit] = [] if first == name else [MoveCell(cell_id=name, before=first)]
    return [ClearOutputs(), ReplaceCell(cell_id=name, source="edited"), *moved]


def cells(text: str, names: list[CellId], wanted: set[CellId]) -> dict[CellId, str]:
    """Return cells of a file as text, without what Jupyter itself fills in."""
    found = {}
    for name, cell in zip(names, nbformat.reads(text, nbformat.NO_CONVERT).cells, strict=True):
        if name in wanted:
            cell.pop("id", None)
            if cell.cell_type == "code" and not cell.get("outputs"):
                cell["outputs"] = []
            found[name] = json.dumps(cell, sort_keys=True)
    return found
