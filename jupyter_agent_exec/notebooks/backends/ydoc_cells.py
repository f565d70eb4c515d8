"""Makes changes to a notebook that users share through collaboration.

The changes are those of `changes`, with one difference. Carriage returns and backspaces in a stream
take effect here, as in JupyterLab, because its pages show text from other clients unprocessed.

Needs pycrdt and jupyter_ydoc, which come with jupyter-collaboration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jupyter_ydoc import YNotebook
from pycrdt import Array, Doc, Map, Text

from ...types import CellId
from ..changes import (
    CELL_IDS_SINCE,
    Change,
    DeleteCell,
    Expected,
    MoveCell,
    Moved,
    Notebook,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    id_of,
)
from .ydoc_outputs import End, LiveOutputs, OutputsCheck, alike, shareable, with_integers

ORIGIN = "jupyter_agent_exec"
"""The origin of our transactions. It keeps them out of the undo histories of the document and the
pages."""


class LiveCells:
    """The cells of a shared document."""

    def __init__(self, document: YNotebook) -> None:
        self._document = document
        self._cells: Array[Map[Any]] = document.ycells
        self._meta: Map[Any] = document.ydoc.get("meta", type=Map)
        self._ids: list[CellId] | None = None  # None: read them again
        self._hints: dict[CellId, int] = {}  # the last known indexes of cells
        self._looked: dict[CellId, tuple[int, Map[Any]]] = {}  # within a transaction
        self._with_ids = True
        self._ends: dict[CellId, End] = {}
        self._ours = False
        self._subscription = self._cells.observe(self._on_change)

    def close(self) -> None:
        """Stop observing the document."""
        self._cells.unobserve(self._subscription)

    def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes in one transaction, all or none.

        Raises
        ------
        Moved
            An expectation does not hold, a cell to change is gone, or someone else has changed its
            outputs.
        """
        self._ours = True
        try:
            with self._document.ydoc.transaction(origin=ORIGIN):
                self._with_ids = int(self._meta.get("nbformat_minor", 0)) >= CELL_IDS_SINCE
                self._check(changes, expected)
                # Insert a new cell with its final trust, so that a page builds it only once.
                trusted = {
                    change.cell_id: change.trusted
                    for change in changes
                    if isinstance(change, SetCell)
                }
                for change in changes:
                    self._apply_one(change, trusted)
        finally:
            self._ours = False
            self._looked.clear()

    # -- find --------------------------------------------------------------------------------------

    def _on_change(self, event: Any) -> None:
        """Forget the order when other clients have added, moved or removed cells."""
        if not self._ours:
            self._ids = None

    def _order(self) -> list[CellId]:
        """Return the ids of all cells, without reading the rest of the cells."""
        if self._ids is None:
            self._looked.clear()
            self._ids = [_id_of(cell, self._with_ids) or CellId("") for cell in self._cells]
        return self._ids

    def _find(self, id: CellId) -> tuple[int, Map[Any]] | None:
        """Return the index of a cell, and the cell; None if it is gone."""
        for _ in range(2):
            order = self._order()
            if id in self._looked:
                return self._looked[id]
            index = self._hints.get(id, 0)
            if not (index < len(order) and order[index] == id):
                try:
                    index = order.index(id)
                except ValueError:
                    return None
            cell = self._cells[index]
            if _id_of(cell, self._with_ids) == id:
                self._hints[id] = index
                self._looked[id] = index, cell
                return index, cell
            self._ids = None  # someone changed the id of a cell
        return None

    def _get(self, id: CellId) -> tuple[int, Map[Any]]:
        found = self._find(id)
        if found is None:
            raise Moved(f"Cell {id} is gone.")
        return found

    def _place(self, at: Position) -> int:
        """Return the index at which to insert a cell."""
        for id in at.follows:
            if (found := self._find(id)) is not None:
                return found[0] + 1
        places = []
        if at.after is not None and (found := self._find(at.after)) is not None:
            places.append((found[0], found[0] + 1))
        if at.before is not None and (found := self._find(at.before)) is not None:
            places.append((found[0], found[0]))
        return min(places)[1] if places else len(self._cells)

    # -- check -------------------------------------------------------------------------------------

    def _check(self, changes: Sequence[Change], expected: Expected) -> None:
        """Raise Moved if changes cannot be made, because a transaction cannot be rolled back."""
        try:
            self._check_once(changes, expected)
        except Moved:
            self._ids = None  # someone may have changed the id of a cell
            self._check_once(changes, expected)

    def _check_once(self, changes: Sequence[Change], expected: Expected) -> None:
        if expected.order is not None and expected.order != self._order():
            raise Moved("Cells were added, removed or moved.")
        for id, (cell_type, source) in expected.cells.items():
            _, cell = self._get(id)
            if cell["cell_type"] != cell_type or str(cell["source"]) != source:
                raise Moved(f"Cell {id} has changed.")
        for id, count in expected.counts.items():
            _, cell = self._get(id)
            if cell.get("execution_count") != count:
                raise Moved(f"Cell {id} was run.")
        self._rehearse(changes)

    def _rehearse(self, changes: Sequence[Change]) -> None:
        shapes: dict[CellId, OutputsCheck | None] = {}

        def look(id: CellId) -> OutputsCheck | None:
            if id not in shapes:
                shapes[id] = self._shape(id)
            return shapes[id]

        for change in changes:
            match change:
                case PutCell():
                    id = CellId(change.cell["id"])
                    if look(id) is None:
                        shapes[id] = OutputsCheck(code=change.cell["cell_type"] == "code")
                case DeleteCell():
                    shapes[change.cell_id] = None
                case MoveCell() if change.cell_id in (change.at.after, change.at.before):
                    pass
                case _:
                    shape = look(change.cell_id)
                    if shape is None:
                        raise Moved(f"Cell {change.cell_id} is gone.")
                    if isinstance(change, SetOutputs):
                        shape.apply(change)

    def _shape(self, id: CellId) -> OutputsCheck | None:
        found = self._find(id)
        if found is None:
            return None
        _, cell = found
        if cell["cell_type"] != "code":
            return OutputsCheck(code=False)
        return LiveOutputs(cell["outputs"], self._ends.get(id)).shape()

    # -- change ------------------------------------------------------------------------------------

    def _apply_one(self, change: Change, trusted: dict[CellId, bool]) -> None:
        match change:
            case PutCell():
                id = CellId(change.cell["id"])
                if self._find(id) is None:
                    self._put(id, change, trusted.get(id, False))
            case DeleteCell():
                found = self._find(change.cell_id)
                if found is not None:
                    self._remove(*found)
            case MoveCell():
                if change.cell_id not in (change.at.after, change.at.before):
                    cell = self._remove(*self._get(change.cell_id))
                    self._insert(self._place(change.at), change.cell_id, cell)
            case SetSource():
                _set_text(self._get(change.cell_id)[1]["source"], change.source)
            case SetCell():
                self._set_cell(change)
            case SetOutputs():
                id = change.cell_id
                outputs = LiveOutputs(self._get(id)[1]["outputs"], self._ends.get(id))
                outputs.apply(change.changes)
                self._ends[id] = outputs.end

    def _put(self, id: CellId, change: PutCell, trusted: bool) -> None:
        """Insert a cell, trusted if a change in the same transaction says so."""
        metadata = {**change.cell.get("metadata", {})}
        metadata.pop("trusted", None)
        if trusted:
            metadata["trusted"] = True
        if not self._with_ids:
            metadata["agent_exec"] = {**metadata.get("agent_exec", {}), "cell_id": id}
        self._ends.pop(id, None)
        self._insert(self._place(change.at), id, {**change.cell, "metadata": metadata})

    def _insert(self, index: int, id: CellId, cell: dict[str, Any]) -> None:
        state = cell.pop("execution_state", None)
        self._cells.insert(index, self._document.create_ycell(shareable(cell)))
        self._order().insert(index, id)
        self._looked.clear()
        self._hints[id] = index
        if state is not None:
            inserted = self._cells[index]
            if "execution_state" in inserted:
                _set(inserted, "execution_state", state)

    def _remove(self, index: int, shared: Map[Any]) -> dict[str, Any]:
        cell: dict[str, Any] | None = shared.to_py()
        assert cell is not None
        order = self._order()
        del self._cells[index]
        del order[index]
        self._looked.clear()
        return cell

    def _set_cell(self, change: SetCell) -> None:
        index, cell = self._get(change.cell_id)
        metadata: Map[Any] = cell["metadata"]
        was_trusted = bool(metadata.get("trusted", False))
        ours = change.agent_exec
        if not self._with_ids:  # the only way to find it again
            ours = {**(ours or {}), "cell_id": change.cell_id}
        _set(metadata, "agent_exec", ours)
        _set(metadata, "trusted", True if change.trusted else None)
        if cell["cell_type"] == "code":
            if cell.get("execution_count", 0) != change.execution_count:
                cell["execution_count"] = change.execution_count
            if "execution_state" in cell:
                _set(cell, "execution_state", change.execution_state)
        if was_trusted != change.trusted:
            # A page reads this only when it builds the cell.
            self._insert(index, change.cell_id, self._remove(index, cell))


def read(document: YNotebook) -> Callable[[], Notebook]:
    """Copy the current document. Return a function that converts the copy, in any thread."""
    update = document.ydoc.get_update()

    def notebook() -> Notebook:
        copied: Doc[Any] = Doc()
        copied.apply_update(update)
        meta = copied.get("meta", type=Map).to_py() or {}
        cells = copied.get("cells", type=Array)
        minor = int(meta.get("nbformat_minor", 0))
        return Notebook(
            # Convert cells one by one, so that other threads can run in between.
            cells=[_as_stored(cell.to_py(), with_ids=minor >= CELL_IDS_SINCE) for cell in cells],
            metadata=with_integers(meta.get("metadata", {})),
            nbformat_minor=minor,
        )

    return notebook


def _as_stored(cell: dict[str, Any], *, with_ids: bool) -> dict[str, Any]:
    """Return a cell as a file stores it, without its trust."""
    cell = with_integers(cell)
    cell.pop("execution_state", None)
    cell["metadata"].pop("trusted", None)
    if not with_ids:
        cell.pop("id", None)
    if not cell.get("attachments", True):
        del cell["attachments"]
    return cell


def _id_of(cell: Map[Any], with_ids: bool) -> CellId | None:
    if with_ids:
        return CellId(cell["id"])
    return id_of({"metadata": {"agent_exec": cell["metadata"].get("agent_exec")}})


def _set(shared: Map[Any], key: str, value: Any) -> None:
    """Set a value if it differs; None removes it."""
    if value is None:
        if key in shared:
            del shared[key]
    elif shared.get(key) != value:
        shared[key] = shareable(value)


def _set_text(shared: Text, text: str) -> None:
    """Change only the part of a text that differs, so that the user's cursor stays in place."""
    before = str(shared)
    start = alike(before, text)
    rest, rest_before = text[start:], before[start:]
    end = alike(rest[::-1], rest_before[::-1])
    gone = rest_before[: len(rest_before) - end]
    at = len(before[:start].encode())  # a shared text counts bytes
    if gone:
        del shared[at : at + len(gone.encode())]
    if more := rest[: len(rest) - end]:
        shared.insert(at, more)
