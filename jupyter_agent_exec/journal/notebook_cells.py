"""What a session's journal says of cells of its notebook: discarded, or not known to be there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

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
from ..types import CellId, ExecutionId, Via
from .blobs import BlobStore
from .lines import lines


class DiscardedCells(NamedTuple):
    """What a journal says of cells that were discarded; some may have been restored since."""

    last: dict[CellId, CellDiscarded]
    """By cell, how it was discarded last."""
    cells: dict[ExecutionId, dict[str, Any]]
    """The cells that were asked for, as they were; without those whose payload is gone."""


def discarded_cells(
    path: Path, blobs: BlobStore, wanted: Collection[ExecutionId]
) -> DiscardedCells:
    """Read a journal; return the cells of `wanted` executions, and where all others stood.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    last: dict[CellId, CellDiscarded] = {}
    kept: dict[ExecutionId, tuple[CellDiscarded, str | None]] = {}
    for line in lines(path):
        entry = line.entry
        if isinstance(entry, CellDiscarded):
            last[entry.cell_id] = entry
            if entry.execution_id in wanted:
                kept[entry.execution_id] = entry, line.payloads.get(entry.cell)
    cells: dict[ExecutionId, dict[str, Any]] = {}
    for id, (entry, text) in kept.items():
        data = text if text is not None else blobs.find(entry.cell)
        if data is not None:
            cells[id] = msgspec.json.decode(data)
    return DiscardedCells(last, cells)


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
