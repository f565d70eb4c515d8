"""Changes to the cells of finished executions: late outputs, and outputs that a user accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ..errors import CellNotFound, DocumentChanged
from ..models import Document
from ..records import ExecutionRecord
from ..text.inert import inert, set_outputs
from ..text.redaction import may_be
from ..types import Output
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
    shows,
)
from .documents import Notebooks


async def show_finished(
    documents: Notebooks, path: str, record: ExecutionRecord, *, unedited: bool
) -> Document:
    """Write the outputs of a finished execution into its cell; return the state of the cell.

    They are the original ones, if the user accepted them, or else an inert copy.

    Parameters
    ----------
    unedited
        Whether the cell must still have the source that ran.

    Raises
    ------
    CellNotFound, DocumentChanged
        The cell is gone, was run again, or was edited.
    NotebookNotFound, DocumentUnwritable
    """
    assert record.document is not None
    what: Shown = "accepted"
    outputs: Sequence[Output] = record.outputs
    held: Collection[str] = ()
    if record.document.outputs != "accepted":
        outputs, held = await asyncio.to_thread(inert, record.outputs)
        what = "held" if held else "inert"
    state = CellState.of(record)

    def plan(notebook: Notebook, _: NotebookHandle) -> tuple[list[Change], Expected]:
        cell = cell_shown(notebook, record)
        id, source = id_of(cell), joined(cell["source"])
        if unedited and not may_be(source, record.source):
            raise DocumentChanged("The cell was edited since.")
        steps = SetOutputs(cell_id=id, changes=set_outputs(outputs))
        shown = state.shown_in(id, what, sorted(held))
        return [shown, steps], Expected(cells={id: ("code", source)})

    handle = await documents.revise(path, plan)
    return replace(record.document, path=path, via=handle.via, outputs=what, reason=None)


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
    if not shows(cell, record.id, record.execution_count):
        raise DocumentChanged(
            "The cell was run again since; its outputs are not this execution's any more.",
            execution_id=record.id,
            cell_id=id,
        )
    return cell
