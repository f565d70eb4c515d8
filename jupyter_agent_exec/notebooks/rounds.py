"""Takes back what an agent's session changed in its notebook, and makes it again.

Kept proposals, edits made at once and the cells of executions are taken back alike: the newest
first, each as far as its cell is as the agent left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..auth.scopes import Caller
from ..journal.proposals import RecordedEdit, RecordedProposal
from ..journal.query import moment
from ..models import CellLeft, DecideEdits, RoundUndone, UndoRound, derive
from ..records import EditDecision, EditsDecided
from ..records import RoundUndone as RoundUndoneEntry
from ..types import CellId, ExecutionId, ProposedEditId, SessionId
from .changes import Cell, Notebook, find_cell
from .edit_decisions import EditDecisions
from .edits import CellContent, EditPlan, content_of
from .proposals import Proposals
from .proposed_edits import DoesNotFit, Step, undoing


async def undo_round(
    proposals: Proposals, session_id: str, request: UndoRound, caller: Caller
) -> RoundUndone:
    """Take back what a session changed in its notebook, as far as its cells are as it left them.

    Raises
    ------
    SessionNotFound, InvalidRequest, NotebookNotFound, DocumentUnwritable, DocumentChanged,
    HistoryUnavailable
        Nothing was taken back.
    """
    since = "" if request.since is None else moment(request.since, "since")[0]
    return await _Round(proposals, caller, "undone", since).make_all(session_id)


async def redo_round(proposals: Proposals, session_id: str, caller: Caller) -> RoundUndone:
    """Make again what was taken back last; raises as `undo_round`, and Paused."""
    proposals.check_not_paused("Making an agent's changes again")
    return await _Round(proposals, caller, "kept").make_all(session_id)


class _Round(EditDecisions):
    """A user's request to take back what a session changed, or to make it again.

    Parameters
    ----------
    since
        The moment from which on it is taken back, as the record has it; empty for all.
    """

    def __init__(
        self,
        proposals: Proposals,
        caller: Caller,
        what: Literal["undone", "kept"],
        since: str = "",
    ) -> None:
        super().__init__(proposals, DecideEdits(), caller, what)
        self._since = since
        self._ids_in: dict[CellId, list[ProposedEditId]] = {}
        """What was taken back in each cell, to be made again at once."""
        self._begun_with: dict[CellId, RecordedEdit] = {}
        """The first change in each cell that a request has begun to take back."""
        self._left: dict[CellId, str] = {}
        self._without_outputs: set[CellId] = set()

    async def make_all(self, session_id: str) -> RoundUndone:
        """Decide, and return what became of it."""
        await self.decide(session_id)
        return RoundUndone(
            path=self._path,
            changes=len(self._decisions),
            cell_ids=list(self._cells),
            without_outputs=list(self._without_outputs),
            left=self._cells_left(),
        )

    async def _wanted(
        self, session_id: SessionId, recorded: Sequence[RecordedProposal]
    ) -> list[RecordedEdit]:
        changes = await self._proposals.changes(session_id)
        if self._what == "kept":
            undone = changes.undone()
            self._ids_in = {edit.cell_id: ids for edit, ids in undone}
            wanted = [edit for edit, _ in undone]
        else:
            made = reversed(changes.made())
            wanted = [edit for edit in made if (edit.decided_at or "") >= self._since]
        self._begun_with = {edit.cell_id: edit for edit in wanted if edit.begun}
        return wanted

    async def _plan(self, wanted: Sequence[RecordedEdit], notebook: Notebook) -> EditPlan:
        self._left, self._without_outputs = {}, set()
        return await super()._plan(wanted, notebook)

    def _step(self, edit: RecordedEdit, notebook: Notebook) -> Step:
        if edit.cell_id in self._left:
            raise DoesNotFit(self._left[edit.cell_id])
        try:
            step = undoing(edit, notebook)
        except DoesNotFit:
            if not self._is_done(edit, notebook):
                raise
            step = Step([], None)
        if self._what == "kept" and not step.changes and not edit.begun:
            raise DoesNotFit("The record of what was there is lost.")
        if step.result is None:
            self._without_outputs.discard(edit.cell_id)
        elif edit.execution_id is not None:
            self._without_outputs.add(edit.cell_id)
        return step

    def _is_done(self, edit: RecordedEdit, notebook: Notebook) -> bool:
        """Return whether all was taken back in a cell before the server died."""
        first = self._begun_with.get(edit.cell_id)
        if first is None or first.kept is None or not edit.begun:
            return False
        cell, before = find_cell(notebook.cells, edit.cell_id), first.kept.before
        if cell is None or before is None:
            return cell is before
        return content_of(cell) == content_of(before)

    def _decisions_of(self, edit: RecordedEdit) -> list[EditDecision]:
        ids = self._ids_in.get(edit.cell_id, [edit.id])
        return [EditDecision(id=id, status=self._what) for id in ids]

    def _busy(self, edit: RecordedEdit, execution_id: ExecutionId) -> None:
        self._left.setdefault(edit.cell_id, f"Execution {execution_id} waits or runs in it.")

    def _unfit(self, edit: RecordedEdit, reason: str) -> None:
        self._left[edit.cell_id] = reason

    def _part(self, cell: Cell) -> CellContent:
        count = {"execution_count": cell.get("execution_count")}
        return {**content_of(cell), **count}  # type: ignore[typeddict-item]

    def _entry(self, entry: EditsDecided) -> RoundUndoneEntry:
        left = tuple(self._cells_left())
        return derive(RoundUndoneEntry, entry, since=self._since or None, left=left)

    def _cells_left(self) -> list[CellLeft]:
        return [CellLeft(cell_id=id, reason=reason) for id, reason in self._left.items()]
