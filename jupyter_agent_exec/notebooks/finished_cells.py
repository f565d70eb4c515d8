"""Changes to the cells of finished executions: late outputs, and outputs that a user accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..errors import CellNotFound, DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..models import Document
from ..records import ExecutionRecord
from ..text.inert import inert, set_outputs
from ..text.redaction import may_be
from ..types import CellId, Output
from .cell_writer import CellState, Shown
from .changes import (
    Cell,
    Change,
    Expected,
    Notebook,
    NotebookHandle,
    SetOutputs,
    find_cell,
    id_of,
    joined,
)
from .documents import Notebooks


class FinishedCell(NamedTuple):
    """The outputs that the cell of a finished execution should show."""

    record: ExecutionRecord
    what: Shown
    outputs: Sequence[Output]
    held: Sequence[str] = ()

    def changes(self, id: CellId) -> list[Change]:
        """Return the changes that make a cell show the outputs."""
        state = CellState.of(self.record).shown_in(id, self.what, self.held)
        return [state, SetOutputs(cell_id=id, changes=set_outputs(self.outputs))]

    def changes_of(self, cell: Cell) -> tuple[list[Change], Expected]:
        """Return the changes of a cell, expecting that nobody has edited it."""
        id = id_of(cell)
        return self.changes(id), Expected(cells={id: ("code", joined(cell["source"]))})


async def finished_cell(record: ExecutionRecord) -> FinishedCell:
    """Return the outputs that a cell should show by the record.

    They are the original ones, if the user accepted them, or else an inert copy.
    """
    if record.document is not None and record.document.outputs == "accepted":
        return FinishedCell(record, "accepted", record.outputs)
    copy, held = await asyncio.to_thread(inert, record.outputs)
    return FinishedCell(record, "held" if held else "inert", copy, sorted(held))


async def show_late_outputs(
    documents: Notebooks, path: str, record: ExecutionRecord
) -> Document | None:
    """Write an inert copy of all outputs into a cell, unless someone has changed the cell.

    Returns the state of the cell. None if a user accepted its outputs, or if it was edited, run
    again or deleted.
    """
    document = record.document
    if document is None or document.outputs == "accepted":
        return None
    late = await finished_cell(record)

    def plan(notebook: Notebook, _: NotebookHandle) -> tuple[list[Change], Expected]:
        cell = cell_shown(notebook, record)
        if not may_be(joined(cell["source"]), record.source):
            raise DocumentChanged("The cell was edited since.")
        return late.changes_of(cell)

    try:
        handle = await documents.revise(path, plan)
    except (CellNotFound, DocumentChanged, NotebookNotFound, DocumentUnwritable):
        return None
    return replace(document, path=path, via=handle.via, outputs=late.what, reason=None)


def cell_shown(notebook: Notebook, record: ExecutionRecord) -> Cell:
    """Return the cell that shows an execution.

    Raises
    ------
    CellNotFound
        The cell does not exist.
    DocumentChanged
        The cell does not show this execution any more.
    """
    id = None if record.document is None else record.document.cell_id
    cell = None if id is None else find_cell(notebook.cells, id)
    if cell is None:
        raise CellNotFound(
            "The execution has no cell in the notebook, or it is gone.",
            execution_id=record.id,
            cell_ids=[id_of(cell) for cell in notebook.cells],
        )
    if not _shows_still(cell, record):
        raise DocumentChanged(
            "The cell was run again since; its outputs are not this execution's any more.",
            execution_id=record.id,
            cell_id=id,
        )
    return cell


def _shows_still(cell: Cell, record: ExecutionRecord) -> bool:
    """Return whether a cell still shows this execution and was not run again."""
    ours = cell.get("metadata", {}).get("agent_exec")
    return (
        cell["cell_type"] == "code"
        and isinstance(ours, dict)
        and ours.get("execution_id") == record.id
        and cell.get("execution_count") == record.execution_count
    )
