"""Changes to a notebook, and their effect on a plain nbformat 4 dict.

Every backend makes the same changes. JupyterLab tabs receive them as JSON over a WebSocket. Cells
and positions are identified by their names (see `cell_names`), not by index, because the user may
edit meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import nbformat
from msgspec import UNSET, Struct
from msgspec.structs import replace

from ..models import OutputChange
from ..types import CellId, ExecutionId, Output, Via
from .cell_names import CELL_IDS_SINCE


class Position(Struct, frozen=True, kw_only=True):
    """A position after or before a cell; the end if neither is given, or if that cell is gone."""

    after: CellId | None = None
    before: CellId | None = None
    follows: tuple[CellId, ...] = ()
    """Cells that it goes after instead: the first of them that is there."""


class PutCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="put"):
    """Insert a cell. Nothing happens if a cell has its id already."""

    cell: dict[str, Any]
    """An nbformat 4.5 cell without outputs."""
    at: Position


class MoveCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="move"):
    """Move a cell."""

    cell_id: CellId
    at: Position

    @property
    def moves(self) -> bool:
        """Whether the position is not the cell's own."""
        return self.cell_id not in (self.at.after, self.at.before)


class DeleteCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Delete a cell. Nothing happens if it is gone."""

    cell_id: CellId


class SetSource(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_source"):
    """Replace the source of a cell."""

    cell_id: CellId
    source: str


class SetCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_cell"):
    """Set the metadata of an agent's execution in its cell."""

    cell_id: CellId
    agent_exec: dict[str, Any] | None
    """The new `metadata.agent_exec` of the cell; null removes it."""
    execution_count: int | None
    execution_state: Literal["idle", "running"]
    trusted: bool
    """Whether the cell's outputs, current and following ones, are inert or were accepted."""


class SetOutputs(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_outputs"):
    """Change a code cell's outputs step by step. To replace them, first truncate to 0."""

    cell_id: CellId
    changes: list[OutputChange]


Change = PutCell | MoveCell | DeleteCell | SetSource | SetCell | SetOutputs


class Expected(Struct, frozen=True, kw_only=True):
    """Conditions that must hold when changes are made. Otherwise none of them is made."""

    cells: dict[CellId, tuple[str, str]] = {}
    """Cell type and source of cells, by id."""
    counts: dict[CellId, int | None] = {}
    """Execution counts of code cells, by id. Another count means that someone ran the cell."""
    order: list[CellId] | None = None
    """Ids of all cells in order; null to accept any order."""


class Moved(Exception):
    """An expectation does not hold; nothing was changed. Read the notebook and plan again."""


class Unreachable(Exception):
    """The handle cannot reach the document any more, for example because its tab was closed.

    Changes in transit may or may not have been made. All changes except `SetOutputs` can be made
    again through another backend. Outputs must then be replaced as a whole.
    """


class Notebook(Struct, frozen=True, kw_only=True):
    """The current notebook, unsaved edits included."""

    cells: list[dict[str, Any]]
    """nbformat 4 cells; `source` and stream texts are strings, and `id` is the cell's name."""
    nbformat_minor: int

    def after(self, changes: Sequence[Change]) -> Notebook:
        """Return the notebook after changes; Moved if a cell to change is gone."""
        content = {"cells": self.cells, "nbformat_minor": self.nbformat_minor}
        return replace(self, cells=apply(content, changes, Expected())["cells"])


class NotebookHandle(Protocol):
    """An open or stored document that one backend reaches."""

    @property
    def via(self) -> Via:
        """The kind of the backend."""

    @property
    def streams(self) -> bool:
        """Whether outputs can be sent as they arrive, since no write saves the whole document."""

    async def read(self) -> Notebook:
        """Return the document.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, Unreachable
        """

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes, all or none. When this returns, they are in the document.

        Raises
        ------
        Moved, Unreachable, NotebookNotFound, DocumentUnwritable
        """


class Backend(Protocol):
    """Reaches notebooks in one way: through collaboration, open tabs or the contents manager."""

    async def find(self, path: str) -> NotebookHandle | None:
        """Return the handle of the notebook at a contents path; None if there is none now.

        The handle is the same object while it reaches the same document. So a caller that used it
        before can send only later changes.
        """


Cell: TypeAlias = dict[str, Any]


def apply(notebook: dict[str, Any], changes: Sequence[Change], expected: Expected) -> Cell:
    """Return a changed copy of a notebook. It shares all unchanged cells with the original.

    The `id` of each cell is its name. Notebooks before nbformat 4.5 cannot hold it, and are not
    upgraded: there, cells that are inserted, changed or moved get their name in their metadata.

    Raises
    ------
    Moved
        An expectation does not hold, or a cell to change is gone.
    """
    cells: list[Cell] = list(notebook["cells"])
    check(cells, expected)
    with_ids = notebook.get("nbformat_minor", 0) >= CELL_IDS_SINCE
    for change in changes:
        _apply_one(cells, change, with_ids)
    return {**notebook, "cells": cells}


def check(cells: Sequence[Cell], expected: Expected) -> None:
    """Raise Moved if an expectation does not hold."""
    if expected.order is not None and expected.order != order_of(cells):
        raise Moved("Cells were added, removed or moved.")
    for id, (cell_type, source) in expected.cells.items():
        cell = cells[_index(cells, id)]
        if cell["cell_type"] != cell_type or joined(cell["source"]) != source:
            raise Moved(f"Cell {id} has changed.")
    for id, count in expected.counts.items():
        if cells[_index(cells, id)].get("execution_count") != count:
            raise Moved(f"Cell {id} was run.")


def id_of(cell: Cell) -> CellId:
    """Return the name of a cell."""
    return CellId(cell["id"])


def find_cell(cells: Sequence[Cell], id: CellId) -> Cell | None:
    """Return the cell with an id; None if there is none."""
    return next((cell for cell in cells if id_of(cell) == id), None)


def execution_in(cell: Cell) -> object:
    """Return the id of the agent's execution that a cell shows, or did; None if there is none."""
    ours = cell["metadata"].get("agent_exec")
    return ours.get("execution_id") if isinstance(ours, dict) else None


def shows(cell: Cell, id: ExecutionId, count: int | None) -> bool:
    """Return whether a cell shows an execution with this count, and was not run again."""
    is_count = cell.get("execution_count") == count
    return cell["cell_type"] == "code" and execution_in(cell) == id and is_count


def order_of(cells: Sequence[Cell]) -> list[CellId]:
    """Return the names of cells in order."""
    return [id_of(cell) for cell in cells]


def joined(text: str | Sequence[str]) -> str:
    """Return a multi-line string as one string. nbformat also allows a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def apply_output_changes(
    outputs: Sequence[Output], changes: Sequence[OutputChange]
) -> list[Output]:
    """Return outputs after changes to them.

    Raises
    ------
    Moved
        A change refers to a missing output.
    """
    changed = list(outputs)
    for change in changes:
        if change.truncate is not UNSET:
            del changed[change.index :]
        elif change.output is not UNSET:
            if change.index > len(changed):
                raise Moved(f"There is no output {change.index - 1}.")
            changed[change.index : change.index + 1] = [change.output]
        elif change.append is not UNSET:
            if change.index >= len(changed) or changed[change.index]["output_type"] != "stream":
                raise Moved(f"Output {change.index} is not a stream.")
            stream = changed[change.index]
            changed[change.index] = {**stream, "text": joined(stream["text"]) + change.append}
    return changed


def _apply_one(cells: list[Cell], change: Change, with_ids: bool) -> None:
    match change:
        case PutCell():
            if change.cell["id"] not in order_of(cells):
                cells.insert(_place(cells, change.at), _new(change.cell, with_ids))
        case DeleteCell():
            cells[:] = [cell for cell in cells if id_of(cell) != change.cell_id]
        case MoveCell():
            _move(cells, change, with_ids)
        case SetSource():
            _update(
                cells,
                change.cell_id,
                lambda cell: _holding_name({**cell, "source": change.source}, with_ids),
            )
        case SetCell():
            _update(cells, change.cell_id, lambda cell: _with_state(cell, change, with_ids))
        case SetOutputs():
            _update(cells, change.cell_id, lambda cell: _with_outputs(cell, change))


def _new(cell: Cell, with_ids: bool) -> Cell:
    """Return a cell to insert. It is not trusted unless a `SetCell` says so."""
    metadata = {key: value for key, value in cell.get("metadata", {}).items() if key != "trusted"}
    return _holding_name({**cell, "metadata": metadata}, with_ids)


def _holding_name(cell: Cell, with_ids: bool) -> Cell:
    """Return a cell with its name in its metadata, if the notebook has no ids."""
    ours = cell["metadata"].get("agent_exec")
    ours = ours if isinstance(ours, dict) else {}
    if with_ids or ours.get("cell_id") == cell["id"]:
        return cell
    return {**cell, "metadata": {**cell["metadata"], "agent_exec": {**ours, "cell_id": cell["id"]}}}


def _move(cells: list[Cell], change: MoveCell, with_ids: bool) -> None:
    if change.moves:
        cell = cells.pop(_index(cells, change.cell_id))
        cells.insert(_place(cells, change.at), _holding_name(cell, with_ids))


def _with_state(cell: Cell, change: SetCell, with_ids: bool) -> Cell:
    """Return a cell after a `SetCell`. Notebooks do not store its `execution_state`."""
    metadata = {
        key: value
        for key, value in cell["metadata"].items()
        if key not in ("agent_exec", "trusted")
    }
    if change.agent_exec is not None:
        metadata["agent_exec"] = change.agent_exec
    if change.trusted:
        metadata["trusted"] = True
    changed = {**cell, "metadata": metadata}
    if cell["cell_type"] == "code":
        changed["execution_count"] = change.execution_count
    return _holding_name(changed, with_ids)


def _with_outputs(cell: Cell, change: SetOutputs) -> Cell:
    if cell["cell_type"] != "code":
        raise Moved(f"Cell {change.cell_id} is not a code cell.")
    return {**cell, "outputs": apply_output_changes(cell["outputs"], change.changes)}


def _update(cells: list[Cell], id: CellId, updated: Callable[[Cell], Cell]) -> None:
    index = _index(cells, id)
    cells[index] = updated(cells[index])


def _index(cells: Sequence[Cell], id: CellId) -> int:
    for index, cell in enumerate(cells):
        if id_of(cell) == id:
            return index
    raise Moved(f"Cell {id} is gone.")


def _place(cells: Sequence[Cell], at: Position) -> int:
    """Return the index at which to insert a cell."""
    order = order_of(cells) if at.follows else []
    for id in at.follows:
        if id in order:
            return order.index(id) + 1
    for index, cell in enumerate(cells):
        if id_of(cell) == at.after:
            return index + 1
        if id_of(cell) == at.before:
            return index
    return len(cells)


def as_it_is(id: CellId, cell: Cell) -> SetCell:
    """Return the change that a cell that does not run needs to stay as it is."""
    return SetCell(
        cell_id=id,
        agent_exec=cell["metadata"].get("agent_exec"),
        execution_count=cell.get("execution_count"),
        execution_state="idle",
        trusted=cell["metadata"].get("trusted") is True,
    )


def new_cell(id: CellId, cell_type: str, source: str) -> Cell:
    """Return an nbformat 4.5 cell that has only a source.

    nbformat raises ValidationError if the cell is invalid.
    """
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[cell_type]
    cell: Cell = make(source, id=id)  # type: ignore[no-untyped-call]
    return cell
