"""What each change does to a notebook; the reference for every way."""

from __future__ import annotations

import copy
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.changes import (
    Change,
    DeleteCell,
    Expected,
    MoveCell,
    Moved,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    apply,
    apply_output_changes,
    find_cell,
    new_cell,
    order_of,
)
from jupyter_agent_exec.types import CellId
from tests.notebooks.notebooks_made import (
    as_read,
    as_written,
    code,
    markdown,
    persons_notebook,
)

ANY = Expected()
X = CellId("x_01JD0000000000000000000000")
OURS = {"execution_id": X, "agent": "tester"}


def id(text: str) -> CellId:
    return CellId(text)


def after(text: str) -> Position:
    return Position(after=id(text))


def put(at: Position = Position(), cell_id: str = "new", **cell: Any) -> PutCell:  # noqa: B008
    return PutCell(cell={**new_cell(id(cell_id), "code", "2"), **cell}, at=at)


def stands(cell_id: str, **said: Any) -> SetCell:
    told = {"agent_exec": OURS, "execution_count": 7, "execution_state": "idle", "trusted": True}
    return SetCell(cell_id=id(cell_id), **{**told, **said})


def applied(notebook: Any, *changes: Change, expected: Expected = ANY) -> Any:
    """Apply changes, and hold that nothing but the result has them, and that it is valid."""
    before = copy.deepcopy(notebook)
    made = apply(notebook, changes, expected)
    assert notebook == before
    nbformat.validate(nbformat.from_dict(made))
    return made


def order(notebook: Any) -> list[str]:
    return [str(one) for one in order_of(notebook["cells"])]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (Position(), ["a", "b", "c", "new"]),
        (after("a"), ["a", "new", "b", "c"]),
        (after("c"), ["a", "b", "c", "new"]),
        (Position(before=id("a")), ["new", "a", "b", "c"]),
        (Position(before=id("c")), ["a", "b", "new", "c"]),
        (after("gone"), ["a", "b", "c", "new"]),
        (Position(before=id("gone")), ["a", "b", "c", "new"]),
        (Position(after=id("a"), follows=(id("gone"), id("b"))), ["a", "b", "new", "c"]),
        (Position(after=id("a"), follows=(id("gone"),)), ["a", "new", "b", "c"]),
    ],
)
def test_a_cell_is_put_by_its_neighbour_or_at_the_end(at: Position, expected: list[str]) -> None:
    notebook = persons_notebook(code("a"), code("b"), code("c"))
    assert order(applied(notebook, put(at))) == expected


def test_a_cell_that_is_there_is_not_put_again() -> None:
    notebook = persons_notebook(code("a"), code("new", "the person's edit"))
    assert applied(notebook, put(after("a"))) == notebook


def test_a_cell_that_is_put_is_never_trusted() -> None:
    made = applied(persons_notebook(), put(metadata={"trusted": True, "tags": ["t"]}))
    assert made["cells"][-1]["metadata"] == {"tags": ["t"]}


@pytest.mark.parametrize(
    ("cell", "at", "expected"),
    [
        ("a", Position(), ["b", "c", "a"]),
        ("a", after("b"), ["b", "a", "c"]),
        ("c", Position(before=id("a")), ["c", "a", "b"]),
        ("b", after("b"), ["a", "b", "c"]),
        ("b", Position(before=id("b")), ["a", "b", "c"]),
        ("a", after("gone"), ["b", "c", "a"]),
    ],
)
def test_a_cell_is_moved(cell: str, at: Position, expected: list[str]) -> None:
    notebook = persons_notebook(code("a"), code("b"), code("c"))
    assert order(applied(notebook, MoveCell(cell_id=id(cell), at=at))) == expected


def test_a_cell_is_deleted_once() -> None:
    notebook = persons_notebook(code("a"), code("b"))
    gone = DeleteCell(cell_id=id("a"))
    assert order(applied(notebook, gone, gone)) == ["b"]


def test_a_source_is_set_and_the_rest_of_the_cell_stays() -> None:
    notebook = persons_notebook()
    made = applied(notebook, SetSource(cell_id=id("plot"), source="2"))
    assert made["cells"][2] == {**notebook["cells"][2], "source": "2"}


def test_where_an_execution_stands_is_told_in_the_cell() -> None:
    notebook = persons_notebook()
    notebook["cells"][1]["metadata"] = {"tags": ["mine"], "agent_exec": {"old": 1}}
    cell = applied(notebook, stands("load"))["cells"][1]
    assert cell["metadata"] == {"tags": ["mine"], "agent_exec": OURS, "trusted": True}
    assert cell["execution_count"] == 7
    cell = applied(notebook, stands("load", agent_exec=None, trusted=False))["cells"][1]
    assert cell["metadata"] == {"tags": ["mine"]}


def test_a_markdown_cell_gets_no_execution_count() -> None:
    made = applied(persons_notebook(markdown("m")), stands("m"))
    assert "execution_count" not in made["cells"][0]


STREAM = {"output_type": "stream", "name": "stdout", "text": "a"}
SHOWN = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([OutputChange(index=0, truncate=True)], []),
        ([OutputChange(index=1, truncate=True)], [STREAM]),
        ([OutputChange(index=9, truncate=True)], [STREAM, SHOWN]),
        ([OutputChange(index=0, append="b")], [{**STREAM, "text": "ab"}, SHOWN]),
        ([OutputChange(index=1, output=STREAM)], [STREAM, STREAM]),
        ([OutputChange(index=2, output=STREAM)], [STREAM, SHOWN, STREAM]),
        (
            [OutputChange(index=0, truncate=True), OutputChange(index=0, output=SHOWN)],
            [SHOWN],
        ),
        (
            [OutputChange(index=2, output=STREAM), OutputChange(index=2, append="\n")],
            [STREAM, SHOWN, {**STREAM, "text": "a\n"}],
        ),
    ],
)
def test_outputs_change_step_by_step(steps: list[OutputChange], expected: list[Any]) -> None:
    outputs = [STREAM, SHOWN]
    assert apply_output_changes(outputs, steps) == expected
    assert outputs == [STREAM, SHOWN]
    notebook = persons_notebook(code("a", outputs=outputs))
    made = applied(notebook, SetOutputs(cell_id=id("a"), changes=steps))
    assert made["cells"][0]["outputs"] == expected


def test_a_stream_that_is_a_list_of_lines_is_appended_to() -> None:
    listed = [{**STREAM, "text": ["a\n", "b"]}]
    (made,) = apply_output_changes(listed, [OutputChange(index=0, append="c")])
    assert made["text"] == "a\nbc"


@pytest.mark.parametrize(
    "change",
    [
        MoveCell(cell_id=id("gone"), at=Position()),
        SetSource(cell_id=id("gone"), source=""),
        stands("gone"),
        SetOutputs(cell_id=id("gone"), changes=[]),
        SetOutputs(cell_id=id("title"), changes=[]),
        SetOutputs(cell_id=id("load"), changes=[OutputChange(index=2, output=STREAM)]),
        SetOutputs(cell_id=id("load"), changes=[OutputChange(index=1, append="x")]),
        SetOutputs(cell_id=id("plot"), changes=[OutputChange(index=0, append="x")]),
    ],
)
def test_all_is_done_or_nothing(change: Change) -> None:
    notebook = persons_notebook()
    before = copy.deepcopy(notebook)
    with pytest.raises(Moved):
        apply(notebook, [put(), DeleteCell(cell_id=id("raw")), change], ANY)
    assert notebook == before


@pytest.mark.parametrize(
    "expected",
    [
        Expected(cells={id("load"): ("code", "1")}),
        Expected(cells={id("load"): ("markdown", "import pandas\ndf = 1")}),
        Expected(cells={id("gone"): ("code", "")}),
        Expected(order=[id("title"), id("load"), id("raw"), id("plot")]),
        Expected(order=[id("title")]),
        Expected(order=[]),
        Expected(counts={id("load"): 7}),
        Expected(counts={id("gone"): None}),
    ],
)
def test_nothing_is_done_when_something_else_was_expected(expected: Expected) -> None:
    with pytest.raises(Moved):
        apply(persons_notebook(), [put()], expected)


def test_what_holds_is_no_obstacle() -> None:
    expected = Expected(
        cells={id("load"): ("code", "import pandas\ndf = 1")},
        order=[id("title"), id("load"), id("plot"), id("raw")],
    )
    assert order(applied(persons_notebook(), put(), expected=expected))[-1] == "new"
    lines = persons_notebook()
    lines["cells"][1]["source"] = ["import pandas\n", "df = 1"]
    apply(lines, [put()], expected)


def test_before_ids_cells_that_change_hold_their_names_in_their_metadata() -> None:
    notebook = persons_notebook(minor=4)
    notebook["cells"] = as_read(notebook).cells
    names = order(notebook)
    made = apply(notebook, [put(cell_id=X), stands(X)], ANY)
    assert made["cells"][:-1] == notebook["cells"]
    assert made["nbformat_minor"] == 4
    assert order(made) == [*names, X]
    assert made["cells"][-1]["metadata"]["agent_exec"] == {**OURS, "cell_id": X}
    first = CellId(names[0])
    for change in (
        SetSource(cell_id=first, source="3"),
        stands(first, agent_exec=None),
        MoveCell(cell_id=first, at=Position()),
    ):
        changed = find_cell(apply(made, [change], ANY)["cells"], first)
        assert changed is not None
        assert changed["metadata"]["agent_exec"] == {"cell_id": first}


def test_in_a_copy_of_an_agents_cell_its_own_id_counts() -> None:
    notebook = persons_notebook(code("copy"), code(X))
    notebook["cells"][0]["metadata"]["agent_exec"] = OURS
    made = applied(notebook, SetSource(cell_id=X, source="changed"))
    assert [cell["source"] for cell in made["cells"]] == ["1 + 1", "changed"]


def test_what_is_not_touched_is_written_as_it_was() -> None:
    notebook = persons_notebook()
    made = applied(notebook, put(after("load")))
    del made["cells"][2]
    assert as_written(nbformat.from_dict(made)) == as_written(notebook)
