"""Changes to a shared document do what they do to a dict."""

from __future__ import annotations

import gc
import itertools
import random
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from jupyter_ydoc import YNotebook
from pycrdt import Doc

from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks import changes as notebook_changes
from jupyter_agent_exec.notebooks.backends.ydoc_cells import LiveCells, carried_out, read
from jupyter_agent_exec.notebooks.cell_names import with_names
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
    order_of,
)
from jupyter_agent_exec.types import CellId

NOTHING = Expected()
STDOUT = {"output_type": "stream", "name": "stdout", "text": "one\n"}
STDERR = {"output_type": "stream", "name": "stderr", "text": "oh\n"}
RESULT = {
    "output_type": "execute_result",
    "execution_count": 3,
    "data": {"text/plain": "1.5", "application/json": {"a": [1, 2.5, None, True]}},
    "metadata": {},
}


def code(id: str, source: str = "", outputs: list[Any] | None = None, **more: Any) -> Any:
    return {
        "id": id,
        "cell_type": "code",
        "source": source,
        "metadata": more,
        "outputs": outputs or [],
        "execution_count": None,
    }


def markdown(id: str, source: str) -> Any:
    return {"id": id, "cell_type": "markdown", "source": source, "metadata": {}}


def notebook(*cells: Any, minor: int = 5) -> dict[str, Any]:
    metadata = {"kernelspec": {"name": "python3"}, "language_info": {"name": "python"}}
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


class Both:
    """A notebook as a dict, and the same one shared."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.dict = content
        self.shared = YNotebook()
        self.shared.source = content
        self.live = LiveCells(self.shared)

    def apply(self, *changes: Change, expected: Expected = NOTHING) -> None:
        """Make changes to both, or to none of them."""
        try:
            changed = notebook_changes.apply(self.dict, changes, expected)
        except Moved:
            before = self.shared.ydoc.get_state()
            with pytest.raises(Moved):
                self.live.apply(changes, expected)
            assert self.shared.ydoc.get_state() == before
            return
        self.live.apply(changes, expected)
        self.dict = changed
        self.check()

    def check(self) -> None:
        live = read(self.shared)()
        assert live.cells == [shown(cell) for cell in self.dict["cells"]]
        trusted = [cell["metadata"].get("trusted") for cell in self.shared.get()["cells"]]
        assert trusted == [cell["metadata"].get("trusted") for cell in self.dict["cells"]]
        assert live.nbformat_minor == self.dict["nbformat_minor"]


def shown(cell: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in cell["metadata"].items() if key != "trusted"}
    if cell["cell_type"] != "code":
        return {**cell, "metadata": metadata}
    outputs = [
        {**output, "text": carried_out(output["text"])}
        if output["output_type"] == "stream"
        else output
        for output in cell["outputs"]
    ]
    return {**cell, "metadata": metadata, "outputs": outputs}


def steps(id: str, *changes: OutputChange) -> SetOutputs:
    return SetOutputs(cell_id=CellId(id), changes=list(changes))


def output(index: int, output: dict[str, Any]) -> OutputChange:
    return OutputChange(index=index, output=output)


def append(index: int, text: str) -> OutputChange:
    return OutputChange(index=index, append=text)


def truncate(index: int) -> OutputChange:
    return OutputChange(index=index, truncate=True)


def standing(id: str, *, trusted: bool = True, **more: Any) -> SetCell:
    return SetCell(
        **{
            "cell_id": CellId(id),
            "agent_exec": {"seq": 1, "agent": {"name": "analyst"}},
            "execution_count": None,
            "execution_state": "running",
            "trusted": trusted,
            **more,
        }
    )


def put(id: str, source: str = "", **at: str | tuple[str, ...]) -> PutCell:
    return PutCell(cell=code(id, source), at=Position(**at))  # type: ignore[arg-type]


def at(**named: str) -> Position:
    return Position(**named)  # type: ignore[arg-type]


@pytest.fixture
def both() -> Both:
    return Both(notebook(code("a", "x = 1"), markdown("b", "# Text"), code("c", "y", [STDOUT])))


def test_a_cell_says_how_its_execution_stands(both: Both) -> None:
    both.apply(standing("a"), standing("b"))
    assert both.shared.ycells[0]["execution_state"] == "running"
    both.apply(standing("a", execution_count=7, execution_state="idle"))
    assert both.shared.ycells[0]["execution_state"] == "idle"
    both.apply(standing("a", agent_exec=None, trusted=False))
    both.apply(standing("gone"))


def test_a_new_cell_is_trusted_as_what_comes_with_it_says(both: Both) -> None:
    claims = {**code("n1"), "metadata": {"trusted": True, "tags": ["t"]}}
    both.apply(PutCell(cell=claims, at=at()))
    both.apply(put("n2"), standing("n2"), steps("n2", output(0, RESULT)))
    assert [cell["metadata"].get("trusted") for cell in both.shared.get()["cells"][-2:]] == [
        None,
        True,
    ]


def test_a_cell_whose_trust_changes_is_built_again(both: Both) -> None:
    both.apply(standing("c"))
    both.apply(steps("c", append(0, "two\n"), output(1, RESULT)))
    inserted = inserted_into(both, lambda: both.apply(standing("c", execution_state="running")))
    assert inserted == []
    inserted = inserted_into(both, lambda: both.apply(standing("c", trusted=False)))
    assert [cell["id"] for cell in inserted] == ["c"]
    assert both.shared.ycells[2]["execution_state"] == "running"
    both.apply(steps("c", truncate(0), output(0, STDERR)), standing("c", trusted=True))


def inserted_into(both: Both, deed: Callable[[], None]) -> list[Any]:
    """Return the cells that those who follow the document see inserted."""
    follower = YNotebook(Doc())
    follower.ydoc.apply_update(both.shared.ydoc.get_update())
    inserted: list[Any] = []

    def take(event: Any) -> None:
        for part in event.delta:
            inserted.extend(cell.to_py() for cell in part.get("insert", []))

    follower.ycells.observe(take)
    deed()
    follower.ydoc.apply_update(both.shared.ydoc.get_update())
    assert follower.get() == both.shared.get()
    return inserted


def test_what_is_expected_is_checked_first(both: Both) -> None:
    order = [CellId(id) for id in "abc"]
    counts = {CellId("a"): None}
    as_it_is = {CellId("a"): ("code", "x = 1"), CellId("b"): ("markdown", "# Text")}
    both.apply(put("n"), expected=Expected(cells=as_it_is, order=order, counts=counts))
    assert len(both.dict["cells"]) == 4
    for expected in (
        Expected(order=order),
        Expected(cells={CellId("a"): ("code", "x = 2")}),
        Expected(cells={CellId("a"): ("markdown", "x = 1")}),
        Expected(cells={CellId("gone"): ("code", "")}),
        Expected(counts={CellId("a"): 7}),
        Expected(counts={CellId("gone"): None}),
    ):
        both.apply(put("m"), expected=expected)
        assert len(both.dict["cells"]) == 4


def test_a_notebook_without_cell_ids_knows_each_cell() -> None:
    both = Both(notebook(*(code("x", str(n % 2)) for n in range(4)), minor=4))
    both.dict["cells"] = with_names(both.dict["cells"], 4)
    first, second, third, _ = order_of(both.dict["cells"])
    both.check()
    both.apply(
        SetSource(cell_id=first, source="changed"), expected=Expected(cells={first: ("code", "0")})
    )
    both.apply(steps(second, output(0, STDOUT)), standing(second))
    both.shared.ycells[2]["source"] += "typed"
    with pytest.raises(Moved):
        both.live.apply([standing(third)], NOTHING)
    del both.shared.ycells[2], both.dict["cells"][2]
    both.apply(put("n1", "1"), standing("n1"))
    both.apply(steps("n1", output(0, STDOUT)), SetSource(cell_id=CellId("n1"), source="2"))
    both.apply(put("n1"), put("n2", before="n1"), standing("n2", agent_exec=None))
    both.apply(MoveCell(cell_id=CellId("n1"), at=at(before="n2")))
    both.apply(standing("x"), DeleteCell(cell_id=CellId("x")))
    both.apply(DeleteCell(cell_id=first), MoveCell(cell_id=second, at=at()))
    assert all("id" not in cell for cell in both.shared.get()["cells"])


def test_what_is_no_usable_id_is_replaced_when_something_is_written() -> None:
    both = Both(notebook(code("my cell", "1"), code("", "2"), code("c", "3")))
    both.dict["cells"] = with_names(both.dict["cells"], 5)
    first, second, _ = order_of(both.dict["cells"])
    both.check()
    both.apply(SetSource(cell_id=second, source="changed"))
    assert [cell["id"] for cell in both.shared.get()["cells"]] == [first, second, "c"]
    both.apply(SetSource(cell_id=second, source="again"), standing(first))


def test_numbers_are_those_that_a_page_can_take(both: Both) -> None:
    large = {
        **RESULT,
        "data": {"application/json": {"n": 2**53, "deep": [2**70, -(2**60)], "m": 7}},
    }
    both.apply(steps("c", output(1, large)))
    data = both.shared.ycells[2]["outputs"][1].to_py()["data"]["application/json"]
    assert data == {"n": 2.0**53, "deep": [2.0**70, -(2.0**60)], "m": 7}
    assert {type(data["n"]), *map(type, data["deep"])} == {float}


def test_lines_are_written_over(both: Both) -> None:
    both.apply(steps("c", append(0, "0 %\r10")))
    assert text_of(both) == "one\n10%"
    both.apply(steps("c", append(0, "0 %")))
    assert text_of(both) == "one\n100 %"
    both.apply(steps("c", append(0, "\r")), steps("c", append(0, "9")))
    assert text_of(both) == "one\n900 %"
    both.apply(steps("c", append(0, "é\b\bx\ndone")))
    assert text_of(both) == "one\nx %\ndone"
    both.apply(steps("c", append(0, "\r"), output(0, {**STDERR, "text": "a\rb"}), append(0, "c")))
    assert text_of(both) == "bc"


def text_of(both: Both) -> Any:
    return both.shared.ycells[2]["outputs"][0].to_py()["text"]


def test_outputs_that_others_changed_are_set_as_a_whole(both: Both) -> None:
    both.live.apply([steps("c", append(0, "two"))], NOTHING)
    both.shared.ycells[2]["outputs"][0]["text"].clear()
    for refused in (append(0, "three"), output(1, RESULT), truncate(1)):
        with pytest.raises(Moved, match="have changed since the last update"):
            both.live.apply([steps("c", refused)], NOTHING)
    both.live.apply([steps("c", truncate(0), output(0, STDERR), append(0, "!"))], NOTHING)
    assert text_of(both) == "oh\n!"


def test_cells_are_found_while_others_add_remove_and_rename_them(both: Both) -> None:
    both.apply(put("n"))
    del both.shared.ycells[0]
    both.shared.append_cell(code("d"))
    both.live.apply([put("d", "is there already")], NOTHING)
    both.live.apply([SetSource(cell_id=CellId("n"), source="found")], NOTHING)
    both.shared.ycells[0]["id"] = "renamed"
    both.live.apply([SetSource(cell_id=CellId("renamed"), source="too")], NOTHING)
    with pytest.raises(Moved):
        both.live.apply([SetSource(cell_id=CellId("b"), source="gone")], NOTHING)
    assert [cell["source"] for cell in both.shared.get()["cells"]] == ["too", "y", "found", ""]


def test_a_persons_undo_leaves_agents_cells_alone(both: Both) -> None:
    both.shared.ycells[0]["source"].insert(5, " + 1")
    both.live.apply([put("n", "agent's"), standing("n")], NOTHING)
    both.live.apply([steps("n", output(0, STDOUT))], NOTHING)
    both.shared.undo_manager.undo()
    assert [cell["source"] for cell in both.shared.get()["cells"]] == [
        "x = 1",
        "# Text",
        "y",
        "agent's",
    ]


def test_what_an_agent_does_is_one_update_of_the_document(both: Both) -> None:
    updates: list[Any] = []
    both.shared.ydoc.observe(updates.append)
    both.live.apply([put("n", "1"), standing("n"), steps("n", output(0, RESULT))], NOTHING)
    assert len(updates) == 1


@pytest.mark.parametrize("seed", range(60))
def test_any_changes_do_the_same_to_both(seed: int) -> None:
    chance = random.Random(seed)
    both = Both(notebook(code("c0", "0", [STDOUT]), markdown("c1", "1"), code("c2", "2")))
    for _ in range(30):
        both.apply(*(any_change(chance, both) for _ in range(chance.randint(1, 3))))


def any_change(chance: random.Random, both: Both) -> Change:
    ids = [cell["id"] for cell in both.dict["cells"]]
    id = CellId(chance.choice([*ids, "gone"]) if chance.random() < 0.97 else "gone")
    named = {chance.choice(["after", "before"]): chance.choice([*ids, "gone"])}
    match chance.randint(0, 9):
        case 0:
            follows = tuple(chance.sample([*ids, "gone"], 2))
            return put(f"n{chance.randint(0, 9)}", "new", **named, follows=follows)
        case 1:
            return MoveCell(cell_id=id, at=at(**named))
        case 2 if len(ids) > 3:
            return DeleteCell(cell_id=id)
        case 3:
            return SetSource(cell_id=id, source=any_text(chance))
        case 4:
            return standing(
                id,
                trusted=chance.random() < 0.5,
                execution_count=chance.choice([None, 3]),
                agent_exec=chance.choice([None, {"seq": chance.randint(0, 9)}]),
            )
    return steps(id, *(any_step(chance) for _ in range(chance.randint(1, 4))))


def any_step(chance: random.Random) -> OutputChange:
    index = chance.choice([0, 0, 0, 1, 1, 2])
    match chance.randint(0, 6):
        case 0:
            return truncate(index)
        case 1:
            return output(index, RESULT)
        case 2:
            return output(index, {**STDERR, "text": any_text(chance)})
        case 3:
            return output(index, {**STDOUT, "text": any_text(chance)})
    return append(index, any_text(chance))


def any_text(chance: random.Random, edits: Sequence[str] = ()) -> str:
    return "".join(chance.choice(["a", "bc", "\n", "é", "😀", *edits]) for _ in range(5))


@pytest.mark.parametrize("seed", range(20))
def test_any_lines_are_written_over_as_if_they_came_at_once(seed: int) -> None:
    chance = random.Random(seed)
    both = Both(notebook(code("c", "", [RESULT])))
    both.apply(steps("c", output(1, {**STDOUT, "text": any_text(chance, "\r\b")})))
    for _ in range(30):
        more = append(1, any_text(chance, "\r\b"))
        both.apply(steps("c", *chance.choice([[more], [output(0, RESULT), more]])))


class Page:
    """Shows outputs as pages of JupyterLab do, which apply changes to them only in part.

    Source: `_onSharedModelChanged` of CodeCellModel, and OutputAreaModel.
    """

    def __init__(self, document: YNotebook) -> None:
        self._document = document
        self.shared = YNotebook(Doc())
        self.cells: list[tuple[list[Any], list[str]]] = []  # outputs, the last stream's name
        self.shared.ycells.observe_deep(self._on_changes)
        self.update()

    def update(self) -> None:
        self.shared.ydoc.apply_update(self._document.ydoc.get_update())

    def _on_changes(self, events: list[Any]) -> None:
        # It hears of cells first, then of the text of streams, then of outputs.
        for event in sorted(events, key=lambda event: (len(event.path) > 0, -len(event.path))):
            match event.path:
                case []:
                    self._change_cells(event.delta)
                case [int(index), "outputs", int(), "text"]:
                    self._change_text(self.cells[index][0], event.delta)
                case [int(index), "outputs"]:
                    self._change_outputs(*self.cells[index], event.delta)

    def _change_cells(self, delta: list[dict[str, Any]]) -> None:
        index = 0
        for part in delta:
            index += part.get("retain", 0)
            del self.cells[index : index + part.get("delete", 0)]
            for cell in part.get("insert", []):
                self.cells.insert(index, ([], [""]))
                for each in cell.to_py().get("outputs", []):
                    self._add(*self.cells[index], each)
                index += 1

    def _change_text(self, outputs: list[Any], delta: list[dict[str, Any]]) -> None:
        last = outputs[-1]
        for part in delta:
            if part.get("delete"):
                last["text"] = last["text"].encode()[: -part["delete"]].decode()
            last["text"] += part.get("insert", "")

    def _change_outputs(
        self, outputs: list[Any], stream: list[str], delta: list[dict[str, Any]]
    ) -> None:
        index = 0
        for part in delta:
            index += part.get("retain", 0)
            del outputs[index : index + part.get("delete", 0)]
            for each in part.get("insert", []):
                self._add(outputs, stream, each.to_py())

    def _add(self, outputs: list[Any], stream: list[str], output: dict[str, Any]) -> None:
        name = output.get("name", "")
        if name and name == stream[0] and outputs:
            outputs[-1]["text"] += output["text"]
        else:
            outputs.append(output)
            stream[0] = name


@pytest.mark.parametrize("seed", range(40))
def test_a_page_shows_outputs_as_the_document_has_them(seed: int) -> None:
    chance = random.Random(seed)
    both = Both(notebook(code("c0", "0", [STDOUT]), code("c1", "1", [RESULT]), code("c2", "2")))
    page = Page(both.shared)
    for _ in range(40):
        steps_of = [steps(f"c{chance.randint(0, 2)}", *(output_steps(chance))) for _ in range(2)]
        changes: list[Change] = [*steps_of]
        if chance.random() < 0.2:
            changes.append(any_change(chance, both))
        if is_of_a_kernel(both, changes):
            both.apply(*changes)
            page.update()
        cells = page.shared.ycells.to_py() or []
        assert [outputs for outputs, _ in page.cells] == [cell.get("outputs", []) for cell in cells]


def output_steps(chance: random.Random) -> list[OutputChange]:
    count = chance.randint(1, 3)
    return [any_step(chance) for _ in range(count)]


def is_of_a_kernel(both: Both, changes: Sequence[Change]) -> bool:
    """Return whether no stream follows one of the same name, since a kernel's outputs join them."""
    try:
        cells = notebook_changes.apply(both.dict, changes, NOTHING)["cells"]
    except Moved:
        return False
    names = [[each.get("name") for each in cell.get("outputs", [])] for cell in cells]
    return not any(
        one is not None and one == other
        for of_cell in names
        for one, other in itertools.pairwise(of_cell)
    )


def test_what_observes_a_document_does_not_keep_it() -> None:
    document = YNotebook()
    live = LiveCells(document)
    kept = weakref.ref(document.ydoc)
    del document, live
    gc.collect()
    assert kept() is None


def test_what_json_has_not_is_null_as_in_a_file(both: Both) -> None:
    both.shared.ycells[0]["metadata"]["odd"] = {"a": float("nan"), "b": float("inf")}
    assert read(both.shared)().cells[0]["metadata"]["odd"] == {"a": None, "b": None}
