"""The proposed edits of a session, and what became of them, made from its journal's entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..records import By, EditsDecided, EditsDeciding, EditsProposed
from ..types import CellId, Digest, EditStatus, ProposalId, ProposedEditId
from .blobs import BlobStore
from .lines import Line, lines

_NO_STATE: Final[dict[str, Any]] = {"order": [], "cells": {}}


class KeptEdit(Struct, frozen=True, kw_only=True):
    """What keeping an edit changed."""

    before: dict[str, Any] | None
    """The complete cell before; None for a new cell."""
    after: dict[str, Any] | None
    """Type and source of the cell after; None for a deleted cell."""
    order: list[CellId]
    """Ids of all cells before."""


class RecordedEdit(Struct, frozen=True, kw_only=True):
    """A proposed edit of one cell."""

    id: ProposedEditId
    cell_id: CellId
    moved: bool
    cleared: bool
    before: dict[str, Any] | None
    """Type and source when it was proposed; None for a new cell."""
    after: dict[str, Any] | None
    """Type and source as proposed; None for a deleted cell."""
    order: list[CellId]
    """Ids of all cells as proposed."""
    status: EditStatus = "open"
    reason: str | None = None
    begun: bool = False
    """Whether a decision was begun, and its result is not recorded."""
    kept: KeptEdit | None = None
    edited: bool = False
    """Whether the user kept it with another source than was proposed."""
    decided_by: By | None = None
    decided_at: str | None = None


class RecordedProposal(Struct, frozen=True, kw_only=True):
    """The edits that an agent proposed in one request."""

    id: ProposalId
    path: str
    purpose: str | None
    proposed_at: str
    edits: tuple[RecordedEdit, ...]


class SessionProposals:
    """The proposals of one session. Read from its journal, again and again as it grows.

    Parameters
    ----------
    journal
        Path of the session's journal.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._blobs = BlobStore(journal.parent / "blobs")
        self._read_bytes = 0
        self._edits: dict[ProposedEditId, RecordedEdit] = {}
        self._proposals: list[EditsProposed] = []

    def read(self) -> list[RecordedProposal]:
        """Read what is new in the journal, and return all proposals, the oldest first. Blocks.

        Raises
        ------
        OSError
            It cannot be read.
        """
        for line in lines(self._journal, self._read_bytes):
            self._add(line)
            self._read_bytes = line.at.offset + line.at.length
        return [
            RecordedProposal(
                id=entry.proposal_id,
                path=entry.path,
                purpose=entry.purpose,
                proposed_at=entry.at,
                edits=tuple(self._edits[cell.id] for cell in entry.cells),
            )
            for entry in self._proposals
        ]

    def _add(self, line: Line) -> None:
        entry = line.entry
        if isinstance(entry, EditsProposed):
            self._propose(entry, line)
        elif isinstance(entry, EditsDeciding):
            for id in self._edits.keys() & set(entry.ids):
                self._edits[id] = replace(self._edits[id], begun=True)
        elif isinstance(entry, EditsDecided):
            self._decide(entry, line)

    def _propose(self, entry: EditsProposed, line: Line) -> None:
        before, after = self._state(entry.before, line), self._state(entry.after, line)
        for id in self._edits.keys() & set(entry.replaces):
            self._edits[id] = replace(self._edits[id], status="replaced")
        for cell in entry.cells:
            self._edits[cell.id] = RecordedEdit(
                id=cell.id,
                cell_id=cell.cell_id,
                moved=cell.moved,
                cleared=cell.cleared,
                before=before["cells"].get(cell.cell_id),
                after=after["cells"].get(cell.cell_id),
                order=after["order"],
            )
        self._proposals.append(entry)

    def _decide(self, entry: EditsDecided, line: Line) -> None:
        before, after = self._state(entry.before, line), self._state(entry.after, line)
        for decision in entry.decisions:
            edit = self._edits.get(decision.id)
            if edit is None:
                continue
            kept = None
            if decision.status == "kept":
                kept = KeptEdit(
                    before=before["cells"].get(edit.cell_id),
                    after=after["cells"].get(edit.cell_id),
                    order=before["order"],
                )
            self._edits[decision.id] = replace(
                edit,
                status=decision.status,
                reason=decision.reason,
                begun=False,
                kept=kept,
                edited=decision.edited,
                decided_by=None if decision.status == "open" else entry.by,
                decided_at=None if decision.status == "open" else entry.at,
            )

    def _state(self, digest: Digest | None, line: Line) -> dict[str, Any]:
        """Return the notebook that an entry names; an empty one if it is lost."""
        data = None if digest is None else self._blobs.read(line, digest)
        return _NO_STATE if data is None else msgspec.json.decode(data)
