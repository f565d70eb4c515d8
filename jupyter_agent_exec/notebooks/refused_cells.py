"""Cells of executions that people did not let run: taken out again, so that nobody runs them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from ..errors import DocumentUnwritable, NotebookNotFound
from ..models import Document
from ..records import ExecutionRecord
from ..types import CellId
from .applying import find_cell, joined
from .cell_writer import Documents, theirs
from .changes import DeleteCell, Expected, Moved

TRIES: Final = 3
"""How often to look again at a notebook that changes at this very moment."""

TAKEN_OUT: Final = "It was not let run, so its cell was taken out."
STAYS: Final = "It was not let run; a person has changed or run its cell, which is theirs now."
LEFT_ALONE: Final = "It was not run, so the notebook is as it was."


def was_refused(record: ExecutionRecord) -> bool:
    """Tell whether an execution has ended that asked and was not let run."""
    return record.approval is not None and record.approval.status in (
        "rejected",
        "expired",
        "withdrawn",
    )


def left_alone(path: str, id: CellId | None) -> Document:
    """Return what becomes of a cell of the person's that may not be changed.

    Parameters
    ----------
    id
        The cell, as long as it may still come to that; None when it will not.
    """
    return Document(
        path=path,
        cell_id=id,
        via=None,
        status="not_written" if id is None else "writing",
        outputs="inert",
        reason=LEFT_ALONE if id is None else None,
    )


async def taken_out(
    documents: Documents, document: Document, id: CellId, sources: Collection[str]
) -> Document:
    """Take a cell out that nobody has touched; return what became of it.

    Parameters
    ----------
    sources
        That the cell was given; with another it is a person's.
    """
    gone = replace(document, cell_id=None, status="discarded", reason=TAKEN_OUT)
    try:
        for _ in range(TRIES):
            _, notebook = await documents.read(document.path)
            cell = find_cell(notebook.cells, id)
            if cell is None:
                return gone
            source, count = joined(cell["source"]), cell.get("execution_count")
            expected = Expected(cells={id: (cell["cell_type"], source)}, counts={id: count})
            untouched = source in sources and count is None
            change = DeleteCell(cell_id=id) if untouched else theirs(id, cell)
            try:
                via = await documents.apply(document.path, [change], expected)
            except Moved:
                continue
            return replace(gone, via=via, reason=TAKEN_OUT if untouched else STAYS)
    except (NotebookNotFound, DocumentUnwritable) as error:
        return replace(document, status="not_written", reason=error.message)
    return replace(gone, reason=STAYS)
