"""What a session changed in its notebook, or proposed, made from its journal's entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..records import (
    Accepted,
    Approved,
    By,
    CellWritten,
    Dispatched,
    EditsDecided,
    EditsDeciding,
    EditsProposed,
    Finished,
    NotebookEdited,
    RoundUndone,
)
from ..types import CellId, Digest, EditStatus, ExecutionId, ProposalId, ProposedEditId
from .blobs import BlobStore
from .lines import Line, lines

_NO_STATE: Final[dict[str, Any]] = {"order": [], "cells": {}}


class KeptEdit(Struct, frozen=True, kw_only=True):
    """What an edit changed in the notebook."""

    before: dict[str, Any] | None
    """The complete cell before, or, if its outputs stayed, its type and source; None for a new
    cell."""
    after: dict[str, Any] | None
    """Type and source of the cell after, with its execution count if that has to be the same still;
    None for a deleted cell."""
    order: list[CellId]
    """Ids of all cells before."""


class RecordedEdit(Struct, frozen=True, kw_only=True):
    """An edit of one cell: one that was proposed, one made at once, or the run of the cell."""

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
    """When a user decided; when it was made, if nobody had to."""
    execution_id: ExecutionId | None = None
    """The execution that ran in the cell; None if none did."""
    execution_count: int | None = None


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
            if "undone" in (edit.status, decision.status):
                kept = edit.kept
            elif decision.status == "kept":
                kept = _change(edit.cell_id, before, after)
                del self._edits[decision.id]  # they are in the order in which they were made
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


class SessionChanges(SessionProposals):
    """All that a session changed in its notebook. Read from its journal once."""

    def __init__(self, journal: Path) -> None:
        super().__init__(journal)
        self._undone: tuple[RoundUndone, Line] | None = None
        self.read()

    def made(self) -> list[RecordedEdit]:
        """Return what was changed and not taken back, in the order in which it was."""
        return [edit for edit in self._edits.values() if edit.status == "kept"]

    def undone(self) -> list[tuple[RecordedEdit, list[ProposedEditId]]]:
        """Return the last undo of a round, as an edit of each cell, and what it took back there.

        Empty if it was made again.
        """
        if self._undone is None:
            return []
        entry, line = self._undone
        before, after = self._state(entry.before, line), self._state(entry.after, line)
        undone: dict[CellId, list[RecordedEdit]] = {}
        for edit in (self._edits[each.id] for each in entry.decisions if each.id in self._edits):
            undone.setdefault(edit.cell_id, []).append(edit)
        return [
            (
                replace(
                    edits[0],
                    status="kept",
                    moved=any(edit.moved for edit in edits),
                    cleared=any(edit.cleared or edit.execution_id is not None for edit in edits),
                    kept=_change(cell_id, before, after),
                    execution_id=None,
                ),
                [edit.id for edit in edits],
            )
            for cell_id, edits in undone.items()
        ]

    def cells(self) -> dict[ProposedEditId, CellId]:
        """Return the cell of each change, made or not."""
        return {edit.id: edit.cell_id for edit in self._edits.values()}

    def _add(self, line: Line) -> None:
        super()._add(line)
        entry = line.entry
        if isinstance(entry, NotebookEdited):
            self._edited(entry, line)
        elif isinstance(entry, RoundUndone):
            is_undo = any(each.status == "undone" for each in entry.decisions)
            self._undone = (entry, line) if is_undo else None
        elif isinstance(entry, Accepted | Approved):
            self._ran(entry, line)
        elif isinstance(entry, Dispatched | Finished | CellWritten):
            edit = self._edits.get(ProposedEditId(entry.execution_id))
            if edit is not None:
                self._follow(edit, entry, line)

    def _edited(self, entry: NotebookEdited, line: Line) -> None:
        before, after = self._state(entry.before, line), self._state(entry.after, line)
        for cell_id in dict.fromkeys([*after["cells"], *before["cells"]]):
            change = _change(cell_id, before, after)
            id = ProposedEditId(f"{entry.n}.{cell_id}")
            self._edits[id] = RecordedEdit(
                id=id,
                cell_id=cell_id,
                moved=cell_id in entry.moved,
                cleared=cell_id in entry.cleared,
                before=change.before,
                after=change.after,
                order=after["order"],
                status="kept",
                kept=change,
                decided_at=entry.at,
            )

    def _ran(self, entry: Accepted | Approved, line: Line) -> None:
        """Note an execution, which may come into a cell."""
        id = ProposedEditId(entry.execution_id)
        self._edits[id] = RecordedEdit(
            id=id,
            cell_id=CellId(entry.execution_id),
            moved=False,
            cleared=False,
            before=None,
            after={"cell_type": "code", "source": self._blobs.text(line, entry.source) or ""},
            order=[],
            decided_at=entry.at,
            execution_id=entry.execution_id,
        )

    def _follow(
        self, edit: RecordedEdit, entry: Dispatched | Finished | CellWritten, line: Line
    ) -> None:
        """Note what became of an execution."""
        if isinstance(entry, Dispatched):
            del self._edits[edit.id]
            edit = replace(edit, decided_at=entry.at)
        elif isinstance(entry, Finished):
            edit = replace(edit, execution_count=entry.execution_count)
        elif edit.status != "undone":  # it was not taken back before
            edit = self._written(edit, entry, line)
        self._edits[edit.id] = edit

    def _written(self, edit: RecordedEdit, entry: CellWritten, line: Line) -> RecordedEdit:
        """Return an execution's edit with the cell into which it came, and what was there."""
        cell_id = entry.document.cell_id
        if cell_id is None:
            return replace(edit, status="open")
        kept = edit.kept
        if cell_id == edit.cell_id and kept is None:  # it is a new cell, named for the execution
            kept = KeptEdit(before=None, after=edit.after, order=[])
        elif entry.before is not None:
            before = self._blobs.text(line, entry.before)
            if before is not None:
                kept = KeptEdit(before=msgspec.json.decode(before), after=edit.after, order=[])
        return replace(edit, cell_id=cell_id, status="kept", kept=kept)


def _change(cell_id: CellId, before: dict[str, Any], after: dict[str, Any]) -> KeptEdit:
    """Return how two states of a notebook differ in a cell."""
    return KeptEdit(
        before=before["cells"].get(cell_id),
        after=after["cells"].get(cell_id),
        order=before["order"],
    )
