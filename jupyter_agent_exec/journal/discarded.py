"""Cells that people took out of notebooks, as a session's journal keeps them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..records import CellDiscarded
from ..types import CellId, ExecutionId
from .blobs import BlobStore
from .reading import lines


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
