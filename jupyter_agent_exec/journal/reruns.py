"""What journals have about re-runs: how they compare, and which files a session had."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ..models import Rerun, RerunCell, RerunDifference, Session
from ..records import CellRerun, FileDeleted, FileUnchanged, FileUploaded, RerunBegun
from ..types import Digest
from .blobs import BlobStore
from .lines import Line, lines

AGENT_NAME: Final = "re-run"
"""Who runs code again, as its session says."""

DIFFERENCES: Final = msgspec.json.Decoder(list[RerunDifference])


def recorded_rerun(session: Session, journal: Path) -> Rerun | None:
    """Return the comparison in a session's journal; None if the session repeats nothing.

    Raises
    ------
    OSError
        The journal cannot be read.
    """
    blobs = BlobStore(journal.parent / "blobs")
    begun: RerunBegun | None = None
    cells = []
    for line in lines(journal, 0):
        if isinstance(line.entry, RerunBegun):
            begun = line.entry
        elif isinstance(line.entry, CellRerun):
            cells.append(_cell(line.entry, line, blobs))
    if begun is None:
        return None
    finished = len(cells) == begun.cells
    return Rerun(
        session_id=session.id,
        of=begun.of,
        status="finished" if finished else "running" if session.status == "open" else "ended",
        cells=cells,
        total=begun.cells,
        inputs=list(begun.inputs),
    )


def uploaded_files(journal: Path) -> dict[str, Digest]:
    """Return the digests of the files that a session had got in the end, by path.

    Raises
    ------
    OSError
        The journal cannot be read.
    """
    files: dict[str, Digest] = {}
    before = dict(files)
    for line in lines(journal, 0):
        entry = line.entry
        if isinstance(entry, (FileUploaded, FileDeleted)):
            before = dict(files)
        if isinstance(entry, FileUploaded):
            files[entry.path] = entry.sha256
        elif isinstance(entry, FileDeleted):
            files.pop(entry.path, None)
        elif isinstance(entry, FileUnchanged):
            files = before
    return dict(sorted(files.items()))


def _cell(entry: CellRerun, line: Line, blobs: BlobStore) -> RerunCell:
    said = None if entry.differences is None else blobs.read(line, entry.differences)
    return RerunCell(
        cell_id=entry.cell_id,
        verdict=entry.verdict,
        of=entry.of,
        execution_id=entry.execution_id,
        reason=entry.reason,
        differences=[] if said is None else DIFFERENCES.decode(said),
    )
