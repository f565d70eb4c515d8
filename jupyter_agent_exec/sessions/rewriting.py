"""Cells of finished executions, written once more from the record: late output, decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from ..errors import CellNotFound, DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..journal.notebook import cell as exported
from ..models import Document
from ..notebooks.applying import id_of, joined
from ..notebooks.changes import Change, Expected, Moved, Notebook, SetCell, SetOutputs
from ..notebooks.inert import inert
from ..notebooks.inert_copy import set_outputs
from ..notebooks.writer import Documents, shown
from ..records import ExecutionRecord
from ..types import CellId, Output

Decision: TypeAlias = Literal["accepted", "discarded"]


async def rewrite_late(documents: Documents, path: str, record: ExecutionRecord) -> Document | None:
    """Bring an inert copy of all outputs into a cell that still shows just this execution.

    Returns what became of it; None if the cell is a person's by now: decided on, edited, run again
    or gone.
    """
    document = record.document
    if document is None or document.cell_id is None or document.outputs in _DECIDED:
        return None
    try:
        _, notebook = await documents.read(path)
        cell = _found(notebook, document.cell_id)
        if cell is None or not _shows(cell, record) or joined(cell["source"]) != record.source:
            return None
        copy, held = await asyncio.to_thread(inert, record.outputs)
        what: Literal["inert", "held"] = "held" if held else "inert"
        expected = Expected(cells={document.cell_id: ("code", record.source)})
        changes = _changes(document.cell_id, record, what, copy, held)
        via = await documents.apply(path, changes, expected)
    except (Moved, NotebookNotFound, DocumentUnwritable):
        return None
    return replace(document, path=path, via=via, status="written", outputs=what, reason=None)


def decidable(notebook: Notebook, record: ExecutionRecord) -> CellId:
    """Return the cell whose outputs can be decided on.

    Raises
    ------
    CellNotFound
        There is none.
    DocumentChanged
        It shows something else by now.
    """
    id = None if record.document is None else record.document.cell_id
    cell = None if id is None else _found(notebook, id)
    if id is None or cell is None:
        raise CellNotFound(
            "The execution has no cell in the notebook, or it is gone.",
            execution_id=record.id,
            cell_ids=[id_of(cell) for cell in notebook.cells],
        )
    if not _shows(cell, record):
        raise DocumentChanged(
            "The cell was run again since; its outputs are not this execution's any more.",
            execution_id=record.id,
            cell_id=id,
        )
    return id


def decided(id: CellId, record: ExecutionRecord, what: Decision) -> list[Change]:
    """Return what brings the original outputs into a cell, or takes all outputs out of it."""
    return _changes(id, record, what, record.outputs if what == "accepted" else [])


_DECIDED = ("accepted", "discarded")


def _found(notebook: Notebook, id: CellId) -> dict[str, Any] | None:
    return next((cell for cell in notebook.cells if id_of(cell) == id), None)


def _shows(cell: dict[str, Any], record: ExecutionRecord) -> bool:
    """Tell whether nobody has run a cell since."""
    ours = cell.get("metadata", {}).get("agent_exec")
    return (
        cell["cell_type"] == "code"
        and isinstance(ours, dict)
        and ours.get("execution_id") == record.id
        and cell.get("execution_count") == record.execution_count
    )


def _changes(
    id: CellId,
    record: ExecutionRecord,
    what: Literal["inert", "held", "accepted", "discarded"],
    outputs: Sequence[Output],
    held: Sequence[str] = (),
) -> list[Change]:
    metadata = exported(replace(record, outputs=[]))["metadata"]["agent_exec"]
    told = SetCell(
        cell_id=id,
        agent_exec=shown(metadata, record.execution_count, what, held),
        execution_count=record.execution_count,
        execution_state="idle",
        trusted=True,
    )
    return [told, SetOutputs(cell_id=id, changes=set_outputs(outputs))]
