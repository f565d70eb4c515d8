"""Cells of a dead server's session that are not known to have reached their notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from ..models import NotebookTarget, Placement
from ..records import (
    Accepted,
    CellDiscarded,
    CellWritten,
    Closed,
    NotebookMoved,
    Opened,
    Recovered,
)
from ..types import ExecutionId, Via
from .reading import lines


class UnwrittenCells(NamedTuple):
    """The cells that a session's journal says nothing of."""

    path: str
    """Contents path of the notebook."""
    placements: dict[ExecutionId, Placement | Literal["end"]]
    """Where the executions' cells go, in the order in which they were accepted."""
    via: Via | None
    """How the notebook was reached last; None if no cell was written."""
    died_after: str
    """When the dead server wrote its last entry."""


def unwritten_cells(journal: Path) -> UnwrittenCells | None:
    """Read a journal; None if its server did not die, or there are no such cells.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    path: str | None = None
    placements: dict[ExecutionId, Placement | Literal["end"]] = {}
    via: Via | None = None
    died_after, has_died = "", False
    for line in lines(journal):
        entry = line.entry
        if isinstance(entry, Opened) and isinstance(entry.target, NotebookTarget):
            path = entry.target.path
        elif isinstance(entry, NotebookMoved):
            path = entry.path
        elif isinstance(entry, Accepted):
            if entry.placement is not None and entry.placement != "none":
                placements[entry.execution_id] = entry.placement
        elif isinstance(entry, (CellWritten, CellDiscarded)):
            placements.pop(entry.execution_id, None)
            via = entry.document.via if isinstance(entry, CellWritten) else via
        elif isinstance(entry, Recovered):
            has_died = True
        elif isinstance(entry, Closed) and entry.reason != "server_died":
            return None
        if not has_died:
            died_after = entry.at
    if path is None or not has_died or not placements:
        return None
    return UnwrittenCells(path.strip("/"), placements, via, died_after)
