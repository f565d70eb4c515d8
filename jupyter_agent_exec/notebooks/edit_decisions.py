"""Users' decisions about proposed edits: keep, reject, and undo what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import CellBusy, InvalidRequest
from ..journal.proposals import RecordedEdit, RecordedProposal
from ..models import DecideEdits, KeepEdits, ProposalList, RejectEdits, Session
from ..records import EditDecision, EditsDecided, EditsDeciding, Payload, timestamp
from ..types import CellId, ExecutionId, SessionId, Via
from .changes import Cell, Change, Notebook, order_of
from .edits import CellContent, EditPlan, as_json, complete, content_of, plan_of, state_of
from .proposals import Proposals, entry_of
from .proposed_edits import DoesNotFit, Step, edited, keeping, undoing


async def keep_edits(
    proposals: Proposals, session_id: str, request: KeepEdits, caller: Caller
) -> ProposalList:
    """Keep a session's proposed edits: those that fit. The others become obsolete.

    Edits of a cell in which an execution waits or runs stay open, unless just one is asked for.

    Raises
    ------
    SessionNotFound, InvalidRequest, Paused, CellBusy, NotebookNotFound, DocumentUnwritable,
    DocumentChanged, HistoryUnavailable
        Nothing was kept.
    """
    proposals.check_not_paused("Keeping an agent's edits")
    if request.source is not None and len(request.ids or ()) != 1:
        raise InvalidRequest("source: only with the id of one edit.", field="source")
    edited = None if request.source is None else request
    decisions = EditDecisions(proposals, request, caller, "kept", edited=edited)
    return await decisions.make(session_id)


async def reject_edits(
    proposals: Proposals, session_id: str, request: RejectEdits, caller: Caller
) -> ProposalList:
    """Reject a session's proposed edits. The notebook is not changed.

    Raises
    ------
    SessionNotFound, InvalidRequest, NotebookNotFound, HistoryUnavailable
        Nothing was rejected.
    """
    decisions = EditDecisions(proposals, request, caller, "rejected", reason=request.reason or None)
    return await decisions.make(session_id)


async def undo_edits(
    proposals: Proposals, session_id: str, request: DecideEdits, caller: Caller
) -> ProposalList:
    """Undo the decisions about edits that were kept or rejected: they are open again.

    Those that were kept are taken out of the notebook. An edit stays kept if its cell is not as
    the agent left it.

    Raises
    ------
    SessionNotFound, InvalidRequest, CellBusy, NotebookNotFound, DocumentUnwritable,
    DocumentChanged, HistoryUnavailable
        Nothing was undone.
    """
    return await EditDecisions(proposals, request, caller, "open").make(session_id)


class EditDecisions:
    """One request of a user about edits.

    Parameters
    ----------
    edited
        What the user has made of the one edit; None if they keep what was proposed.
    reason
        Why they reject edits.
    """

    def __init__(
        self,
        proposals: Proposals,
        request: DecideEdits,
        caller: Caller,
        what: Literal["kept", "rejected", "undone", "open"],
        *,
        edited: KeepEdits | None = None,
        reason: str | None = None,
    ) -> None:
        self._proposals = proposals
        self._ids = request.ids
        self._edited = edited
        self._reason = reason
        self._by = caller.by()
        self._what = what
        self._decisions: list[EditDecision] = []
        self._cells: set[CellId] = set()
        self._notebook: Notebook | None = None
        self._begun = False
        self._path = ""

    async def make(self, session_id: str) -> ProposalList:
        """Decide, and return the session's proposals."""
        session = await self.decide(session_id)
        return ProposalList(proposals=await self._proposals.told(session, decided=True))

    async def decide(self, session_id: str) -> Session:
        """Decide, and return the session."""
        own = self._proposals
        session = await own.session(session_id)
        self._path = session.path or ""
        async with own.lock(session.id):
            recorded = await own.recorded(session.id)
            wanted = await self._wanted(session.id, recorded)
            changing = [edit for edit in wanted if self._changes_notebook(edit)]
            others = [edit for edit in wanted if not self._changes_notebook(edit)]
            via: Via | None = None
            planned: EditPlan | None = None
            if changing:
                await own.writer.flush(self._path)
                via, planned = await own.notebooks.change(
                    self._path,
                    partial(self._plan, changing),
                    partial(self._about_to, session.id),
                )
            self._decisions += [each for edit in others for each in self._decisions_of(edit)]
            await self._record(session.id, recorded, via, planned)
            own.writer.settle(self._path, via)
        return session

    def _changes_notebook(self, edit: RecordedEdit) -> bool:
        return "kept" in (self._what, edit.status)

    async def _wanted(
        self, session_id: SessionId, recorded: Sequence[RecordedProposal]
    ) -> list[RecordedEdit]:
        """Return the edits to decide about, in the order in which to make them."""
        edits = {edit.id: edit for each in recorded for edit in each.edits}
        wanted = edits.keys() if self._ids is None else set(self._ids)
        unknown = next((id for id in wanted if id not in edits), None)
        if unknown is not None:
            raise InvalidRequest(
                f"ids: the session has no proposed edit {unknown!r}.", field="ids", id=unknown
            )
        is_undo = self._what == "open"
        may = ("kept", "rejected") if is_undo else ("open",)
        chosen = [edit for id, edit in edits.items() if id in wanted and edit.status in may]
        return chosen[::-1] if is_undo else chosen

    async def _plan(self, wanted: Sequence[RecordedEdit], notebook: Notebook) -> EditPlan:
        """Return the plan for the edits that fit the notebook."""
        self._decisions, self._cells, self._notebook = [], set(), notebook
        busy = self._proposals.writer.busy(self._path)
        made: list[Change] = []
        touched: list[CellId] = []
        counts: list[CellId] = []
        now = notebook
        for edit in wanted:
            if edit.cell_id in busy:
                self._busy(edit, busy[edit.cell_id])
                continue
            try:
                step = self._step(replace(edit, begun=edit.begun or self._begun), now)
            except DoesNotFit as error:
                self._unfit(edit, str(error))
                continue
            made += step.changes
            now = now.after(step.changes)
            if step.changes:
                touched.append(edit.cell_id)
            if edit.cleared or step.result is None or edit.execution_id is not None:
                counts.append(edit.cell_id)
            self._cells.add(edit.cell_id)
            self._decisions += self._decisions_of(edit)
        there = {id for id in order_of(notebook.cells) if id in counts}
        return plan_of(notebook, made, touched, counts=there)

    def _step(self, edit: RecordedEdit, notebook: Notebook) -> Step:
        if self._what != "kept":
            return undoing(edit, notebook)
        if self._edited is not None:
            edit = edited(edit, self._edited, notebook)
        return keeping(edit, notebook)

    def _decisions_of(self, edit: RecordedEdit) -> list[EditDecision]:
        is_edited = self._edited is not None
        return [EditDecision(id=edit.id, status=self._what, reason=self._reason, edited=is_edited)]

    def _busy(self, edit: RecordedEdit, execution_id: ExecutionId) -> None:
        """Leave an edit as it is whose cell is in use; raise CellBusy if just one is asked for."""
        if self._ids is not None and len(self._ids) == 1:
            raise _busy(edit.cell_id, execution_id)

    def _unfit(self, edit: RecordedEdit, reason: str) -> None:
        if self._what == "kept":
            self._decisions.append(EditDecision(id=edit.id, status="obsolete", reason=reason))

    async def _about_to(self, id: SessionId, planned: EditPlan) -> None:
        if planned.changes and not self._begun:
            ids = tuple(decision.id for decision in self._decisions)
            entry = EditsDeciding(at=timestamp(), by=self._by, path=self._path, ids=ids)
            await self._proposals.write(id, entry)
            self._begun = True

    async def _record(
        self,
        id: SessionId,
        recorded: Sequence[RecordedProposal],
        via: Via | None,
        planned: EditPlan | None,
    ) -> None:
        if not self._decisions:
            return
        payloads: list[Payload] = []
        if planned is not None and self._notebook is not None:
            final = self._notebook.after(planned.changes)
            payloads = [
                Payload.of(as_json(state_of(self._notebook.cells, self._cells, complete))),
                Payload.of(as_json(state_of(final.cells, self._cells, self._part))),
            ]
        entry = replace(
            self._entry(entry_of(recorded, self._path, self._by, self._decisions)),
            via=via if planned is not None and planned.changes else None,
            before=payloads[0].digest if payloads else None,
            after=payloads[1].digest if payloads else None,
        )
        await self._proposals.write(id, entry, payloads)

    def _part(self, cell: Cell) -> CellContent:
        """Return what is recorded of a cell as it is then."""
        return content_of(cell)

    def _entry(self, entry: EditsDecided) -> EditsDecided:
        """Return the entry to record, as it has to be for this request."""
        return entry


def _busy(cell_id: CellId, execution_id: ExecutionId) -> CellBusy:
    return CellBusy(
        f"Execution {execution_id} waits or runs in cell {cell_id!r}; nothing was changed. "
        "Decide when it has finished, or cancel it.",
        cell_id=cell_id,
        execution_id=execution_id,
    )
