"""What edits amount to: changes that bring the planned notebook, or a refusal that says why."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.errors import AgentExecError, CellNotFound, DocumentChanged, InvalidRequest
from jupyter_agent_exec.models import (
    CellPart,
    ClearOutputs,
    DeleteCell,
    Edit,
    InsertCell,
    MoveCell,
    ReplaceCell,
    SplitCell,
)
from jupyter_agent_exec.notebooks.changes import apply, order_of
from jupyter_agent_exec.notebooks.edits import (
    MAX_TOLD_SOURCE,
    EditPlan,
    notebook_hash,
    plan,
    source_hash,
)
from jupyter_agent_exec.types import CellId, Digest
from tests.notebooks.notebooks_made import (
    as_read,
    code,
    markdown,
    numbered,
    persons_notebook,
    result,
    without_ids,
)

STREAM = {"output_type": "stream", "name": "stdout", "text": "a\n"}


def three() -> Any:
    return persons_notebook(
        code("a", "1", [STREAM]), markdown("b", "two"), code("c", "3", [result(text_plain="3")])
    )


def id(text: str) -> CellId:
    return CellId(text)


def planned(notebook: Any, *edits: Edit) -> tuple[EditPlan, Any]:
    """Plan edits; hold that the changes bring what the plan says of it."""
    made = plan(as_read(notebook), edits, numbered())
    after = apply(notebook, made.changes, made.expected)
    nbformat.validate(nbformat.from_dict(after))
    assert made.hash == notebook_hash(after["cells"])
    assert made.after["order"] == order_of(after["cells"])
    assert made.before["order"] == order_of(notebook["cells"])
    for state, cells in ((made.before, notebook["cells"]), (made.after, after["cells"])):
        for cell in cells:
            if cell.get("id") in state["cells"]:
                known = {key: cell[key] for key in ("cell_type", "source")}
                assert state["cells"][cell["id"]] == known
    return made, after


def sources(notebook: Any) -> list[tuple[str, str, str]]:
    return [(cell["id"], cell["cell_type"][0], cell["source"]) for cell in notebook["cells"]]


A, B, C = ("a", "c", "1"), ("b", "m", "two"), ("c", "c", "3")


def inserted(**at: Any) -> InsertCell:
    return InsertCell(cell_type="code", source="x", **at)


NEW = ("new-1", "c", "x")


@pytest.mark.parametrize(
    ("edits", "cell_ids", "expected"),
    [
        ([inserted()], [["new-1"]], [A, B, C, NEW]),
        ([inserted(after=id("a"))], [["new-1"]], [A, NEW, B, C]),
        ([inserted(before=id("a"))], [["new-1"]], [NEW, A, B, C]),
        (
            [ReplaceCell(cell_id=id("b"), source="2")],
            [["b"]],
            [A, ("b", "m", "2"), C],
        ),
        (
            [ReplaceCell(cell_id=id("b"), source="2", cell_type="code")],
            [["b"]],
            [A, ("b", "c", "2"), C],
        ),
        (
            [ReplaceCell(cell_id=id("a"), source="2", cell_type="markdown")],
            [["a"]],
            [("a", "m", "2"), B, C],
        ),
        (
            [ReplaceCell(cell_id=id("c"), source="2", cell_type="raw")],
            [["c"]],
            [A, B, ("c", "r", "2")],
        ),
        ([MoveCell(cell_id=id("a"))], [["a"]], [B, C, A]),
        ([MoveCell(cell_id=id("c"), before=id("a"))], [["c"]], [C, A, B]),
        ([MoveCell(cell_id=id("a"), after=id("b"))], [["a"]], [B, A, C]),
        ([DeleteCell(cell_id=id("b"))], [[]], [A, C]),
        (
            [
                SplitCell(
                    cell_id=id("a"),
                    parts=[
                        CellPart(cell_type="markdown", source="# h"),
                        CellPart(cell_type="code", source="1"),
                        CellPart(cell_type="code", source="2"),
                    ],
                )
            ],
            [["a", "new-1", "new-2"]],
            [("a", "m", "# h"), ("new-1", "c", "1"), ("new-2", "c", "2"), B, C],
        ),
        (
            [
                inserted(after=id("a")),
                ReplaceCell(cell_id=id("new-1"), source="y"),
                MoveCell(cell_id=id("a"), after=id("new-1")),
                DeleteCell(cell_id=id("c")),
                inserted(after=id("a")),
            ],
            [["new-1"], ["new-1"], ["a"], [], ["new-2"]],
            [("new-1", "c", "y"), A, ("new-2", "c", "x"), B],
        ),
    ],
)
def test_edits_are_made_in_order(edits: list[Edit], cell_ids: Any, expected: Any) -> None:
    made, after = planned(three(), *edits)
    assert sources(after) == expected
    assert made.cell_ids == cell_ids


def test_a_new_source_leaves_outputs_and_metadata_as_they_are() -> None:
    notebook = three()
    _, after = planned(notebook, ReplaceCell(cell_id=id("a"), source="2"))
    assert after["cells"][0] == {**notebook["cells"][0], "source": "2"}


def test_a_change_of_type_drops_trust_and_record() -> None:
    notebook = three()
    notebook["cells"][0]["metadata"] = {"tags": ["t"], "trusted": True, "agent_exec": {"x": 1}}
    _, after = planned(notebook, ReplaceCell(cell_id=id("a"), source="2", cell_type="markdown"))
    assert after["cells"][0]["metadata"] == {"tags": ["t"]}
    assert "outputs" not in after["cells"][0]


def test_attachments_stay_where_they_can_be_shown() -> None:
    notebook = three()
    notebook["cells"][1]["attachments"] = {"a.png": {"image/png": "AA=="}}
    _, after = planned(notebook, ReplaceCell(cell_id=id("b"), source="2", cell_type="raw"))
    assert after["cells"][1]["attachments"] == {"a.png": {"image/png": "AA=="}}


@pytest.mark.parametrize("cell_id", [id("a"), None])
def test_outputs_are_cleared_and_nothing_else(cell_id: CellId | None) -> None:
    notebook = three()
    ours = {"execution_id": "x"}
    notebook["cells"][0].update(execution_count=5, metadata={"agent_exec": ours, "trusted": True})
    made, after = planned(notebook, ClearOutputs(cell_id=cell_id))
    first, _, last = after["cells"]
    assert (first["outputs"], first["execution_count"]) == ([], None)
    assert first["metadata"] == {"agent_exec": ours, "trusted": True}
    assert last["outputs"] == ([] if cell_id is None else notebook["cells"][2]["outputs"])
    assert made.cell_ids == [["a", "c"] if cell_id is None else ["a"]]
    assert made.before == made.after


def test_clearing_does_not_bring_trust() -> None:
    notebook = three()
    notebook["cells"][0].update(execution_count=5)
    _, after = planned(notebook, ClearOutputs())
    assert "trusted" not in after["cells"][0]["metadata"]


def test_what_is_clear_is_not_touched() -> None:
    made, _ = planned(persons_notebook(code("a")), ClearOutputs())
    assert (made.changes, made.cell_ids) == ([], [[]])


def test_a_plan_relies_on_what_it_touches_and_on_the_order() -> None:
    made, _ = planned(three(), ReplaceCell(cell_id=id("a"), source="2"), inserted(after=id("c")))
    assert made.expected.cells == {"a": ("code", "1"), "c": ("code", "3")}
    assert made.expected.order == ["a", "b", "c"]
    assert made.before == {
        "order": ["a", "b", "c"],
        "cells": {"a": {"cell_type": "code", "source": "1"}},
    }
    assert made.after["cells"] == {
        "a": {"cell_type": "code", "source": "2"},
        "new-1": {"cell_type": "code", "source": "x"},
    }


def test_an_id_that_is_taken_is_not_given() -> None:
    notebook = persons_notebook(code("new-1"), code("new-2"))
    made, _ = planned(notebook, inserted(), inserted())
    assert made.cell_ids == [["new-3"], ["new-4"]]


def refused(notebook: Any, *edits: Edit) -> AgentExecError:
    with pytest.raises(AgentExecError) as raised:
        plan(as_read(notebook), edits, numbered())
    return raised.value


OK = inserted()
PART = CellPart(cell_type="code", source="")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (inserted(after=id("gone")), "after"),
        (inserted(before=id("gone")), "before"),
        (ReplaceCell(cell_id=id("gone"), source=""), "cell_id"),
        (MoveCell(cell_id=id("gone")), "cell_id"),
        (MoveCell(cell_id=id("a"), after=id("gone")), "after"),
        (DeleteCell(cell_id=id("gone")), "cell_id"),
        (SplitCell(cell_id=id("gone"), parts=[PART]), "cell_id"),
        (ClearOutputs(cell_id=id("gone")), "cell_id"),
    ],
)
def test_a_cell_that_is_not_there_is_named(edit: Edit, field: str) -> None:
    error = refused(three(), OK, edit)
    assert isinstance(error, CellNotFound)
    assert error.detail == {
        "field": f"edits[1].{field}",
        "cell_ids": ["a", "b", "c", "new-1"],
    }
    assert error.message.startswith(f"edits[1].{field}: ")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (inserted(after=id("a"), before=id("b")), "after"),
        (MoveCell(cell_id=id("a"), after=id("b"), before=id("c")), "after"),
        (MoveCell(cell_id=id("a"), after=id("a")), "after"),
        (MoveCell(cell_id=id("a"), before=id("a")), "before"),
        (ClearOutputs(cell_id=id("b")), "cell_id"),
    ],
)
def test_an_edit_that_makes_no_sense_is_named(edit: Edit, field: str) -> None:
    error = refused(three(), OK, edit)
    assert isinstance(error, InvalidRequest)
    assert error.detail["field"] == f"edits[1].{field}"


def sha(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("expected", ["1", "2"])
def test_a_source_that_has_changed_is_not_overwritten(expected: str) -> None:
    edits: list[Edit] = [
        ReplaceCell(cell_id=id("a"), source="x", source_sha256=sha(expected)),
        DeleteCell(cell_id=id("a"), source_sha256=sha("x")),
    ]
    if expected == "1":
        planned(three(), *edits)
        return
    error = refused(three(), *edits)
    assert isinstance(error, DocumentChanged)
    assert error.detail["field"] == "edits[0].source_sha256"
    assert error.detail["hash"] == notebook_hash(three()["cells"])
    assert error.detail["cells"][0] == {
        "id": "a",
        "cell_type": "code",
        "source": "1",
        "source_sha256": sha("1"),
    }


def test_split_and_delete_look_at_the_source_too() -> None:
    for edit in (
        SplitCell(cell_id=id("a"), parts=[PART], source_sha256=sha("2")),
        DeleteCell(cell_id=id("a"), source_sha256=sha("2")),
    ):
        assert isinstance(refused(three(), edit), DocumentChanged)


def test_a_refusal_does_not_tell_long_sources_whole() -> None:
    notebook = persons_notebook(code("a", "x" * 10_000))
    error = refused(notebook, DeleteCell(cell_id=id("a"), source_sha256=sha("")))
    (cell,) = error.detail["cells"]
    assert len(cell["source"]) == MAX_TOLD_SOURCE
    assert cell["source_sha256"] == sha("x" * 10_000)


def test_the_hash_tells_types_sources_and_their_order_and_nothing_else() -> None:
    cells = three()["cells"]
    base = notebook_hash(cells)
    cells[0]["outputs"], cells[0]["execution_count"], cells[0]["metadata"] = [], 9, {"a": 1}
    cells[0]["id"] = "z"
    assert notebook_hash(cells) == base
    cells[1]["source"] = ["t", "wo"]
    assert notebook_hash(cells) == base
    assert notebook_hash(cells[::-1]) != base
    for key, value in (("source", "x"), ("cell_type", "raw")):
        assert notebook_hash([{**cells[0], key: value}, *cells[1:]]) != base


def test_a_lone_surrogate_passes() -> None:
    made, after = planned(persons_notebook(code("a", "'\ud800'")), inserted())
    assert made.hash == notebook_hash(after["cells"])
    assert source_hash("\ud800") != source_hash("?")
    json.dumps(made.before)


def test_before_ids_each_cell_keeps_its_name_whatever_becomes_of_its_equals() -> None:
    notebook = without_ids(minor=4)
    before = as_read(notebook)
    title, first, second, raw, empty, other = order_of(before.cells)
    edits: list[Edit] = [
        DeleteCell(cell_id=first),
        ReplaceCell(cell_id=title, source="changed"),
        MoveCell(cell_id=other, before=empty),
        ReplaceCell(cell_id=raw, source="x", cell_type="markdown"),
        inserted(after=title),
        ClearOutputs(cell_id=second),
    ]
    made = plan(before, edits, numbered())
    after = apply({**notebook, "cells": before.cells}, made.changes, made.expected)
    bare = {**after, "cells": [{**cell, "id": None} for cell in after["cells"]]}
    assert order_of(as_read(bare).cells) == [title, "new-1", second, raw, other, empty]
    assert made.expected.cells.keys() >= {second}
    assert made.touched == {title, first, second, raw, other, "new-1"}
    few = plan(before, [ReplaceCell(cell_id=first, source="changed")], numbered())
    after = before.after(few.changes).cells
    assert [one is other for one, other in zip(after, before.cells, strict=True)] == [
        True,
        False,
        True,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("edit", "is_code"),
    [
        (inserted(), True),
        (InsertCell(cell_type="markdown", source="x"), False),
        (ReplaceCell(cell_id=id("a"), source="x"), True),
        (ReplaceCell(cell_id=id("a"), source="x", cell_type="markdown"), True),
        (ReplaceCell(cell_id=id("b"), source="x"), False),
        (ReplaceCell(cell_id=id("b"), source="x", cell_type="code"), True),
        (MoveCell(cell_id=id("a"), after=id("b")), True),
        (MoveCell(cell_id=id("b"), after=id("c")), False),
        (DeleteCell(cell_id=id("a")), True),
        (DeleteCell(cell_id=id("b")), False),
        (ClearOutputs(), False),
        (ClearOutputs(cell_id=id("a")), False),
    ],
)
def test_what_adds_changes_moves_or_removes_a_code_cell_is_code(edit: Edit, is_code: bool) -> None:
    made, _ = planned(three(), edit)
    assert made.is_code is is_code
