"""Agents' proposed edits of notebooks: proposes, lists, keeps and rejects them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal
from weakref import WeakValueDictionary

from msgspec.structs import replace
from ulid import ULID

from ..auth.scopes import Caller
from ..errors import CellBusy, DocumentUnwritable, InvalidRequest, NotebookNotFound
from ..executions.execution import LiveExecution
from ..executions.rules import Rules
from ..journal.history import History
from ..journal.proposals import RecordedEdit, RecordedProposal, SessionChanges
from ..models import (
    DecidedEdit,
    DecideEdits,
    EditNotebook,
    KeepEdits,
    Proposal,
    ProposalList,
    RejectEdits,
    Session,
    derive,
)
from ..records import (
    By,
    EditDecision,
    EditsDecided,
    EditsDeciding,
    EditsProposed,
    NotebookMoved,
    Payload,
    RoundUndone,
    timestamp,
)
from ..sessions.activity import Activity
from ..sessions.notebook_kernels import path_after_move
from ..sessions.session import SOMEBODY, LiveSession
from ..sessions.session_history import SessionHistory
from ..types import CellId, ExecutionId, ProposalId, SessionId, TokenId, Via
from .changes import Cell, Change, Notebook, order_of
from .documents import EditPlanner, Notebooks, check_hash
from .edits import (
    CellContent,
    EditPlan,
    as_json,
    as_told_edits,
    complete,
    content_of,
    plan_of,
    state_of,
)
from .execution_cells import NotebookWriter
from .placements import CellPlace
from .proposed_edits import (
    DoesNotFit,
    Step,
    cells_to_decide,
    edited,
    keeping,
    proposed_order,
    shown_edit,
    undoing,
    with_edits,
)


class Proposals:
    """The proposed edits of all sessions, also of closed ones.

    Parameters
    ----------
    root_dir
        The server's root folder. With another one, the same path is another notebook.
    """

    def __init__(
        self,
        notebooks: Notebooks,
        sessions: SessionHistory,
        history: History,
        writer: NotebookWriter,
        rules: Rules,
        activity: Activity,
        *,
        root_dir: str,
    ) -> None:
        self._root_dir = root_dir
        self._notebooks = notebooks
        self._sessions = sessions
        self._history = history
        self._writer = writer
        self._rules = rules
        self._activity = activity
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()

    # -- propose -----------------------------------------------------------------------------------

    async def propose(
        self,
        session: LiveSession,
        path: str,
        request: EditNotebook,
        caller: Caller,
        check: Callable[[EditPlan], None],
    ) -> tuple[Via, EditPlan, ProposalId]:
        """Propose edits of a session's notebook, and return how it was read and what is planned.

        They are planned as if the user had kept the session's open edits.

        Parameters
        ----------
        check
            Raises an error if the edits may not be proposed now.

        Raises
        ------
        InvalidRequest, CellNotFound, DocumentChanged, NotebookNotFound, DocumentUnwritable,
        HistoryUnavailable
            Nothing was proposed.
        """
        async with self._lock(session.id):
            handle, base = await self._notebooks.read(path)
            open_edits = _open(await self._recorded(session.id))
            proposed = with_edits(base, open_edits)
            check_hash(request.hash, base, proposed)
            planned = await EditPlanner(request.edits).plan(proposed)
            check(planned)
            id = ProposalId(f"p_{ULID()}")
            cells, replaced = cells_to_decide(id, base, proposed, planned, open_edits)
            final = proposed.after(planned.changes)
            touched = {cell.cell_id for cell in cells}
            payloads = [
                Payload.of(as_told_edits(request.edits)),
                Payload.of(as_json(state_of(base.cells, touched))),
                Payload.of(as_json(state_of(final.cells, touched))),
            ]
            self._check_recordable(payloads)
            edits, before, after = (payload.digest for payload in payloads)
            entry = EditsProposed(
                at=timestamp(),
                by=caller.by(),
                proposal_id=id,
                path=path,
                purpose=request.purpose,
                edits=edits,
                before=before,
                after=after,
                cells=tuple(cells),
                replaces=tuple(replaced),
                open=len(open_edits) - len(replaced) + len(cells),
            )
            await self._write(session.id, entry, payloads)
        return handle.via, planned, id

    async def replace(self, execution: LiveExecution) -> None:
        """Replace a session's open edit by an execution that proposes another source of the cell.

        An edit that only moves the cell, or clears its outputs, stays open.
        """
        assert isinstance(execution.spec.place, CellPlace)
        cell_id, session_id = execution.spec.place.cell_id, execution.session_id
        async with self._lock(session_id):
            recorded = await self._recorded(session_id)
            replaced = tuple(
                EditDecision(id=edit.id, status="replaced")
                for edit in _open(recorded)
                if edit.cell_id == cell_id and edit.before != edit.after
            )
            if replaced:
                path = recorded[-1].path
                await self._write(
                    session_id, _entry_of(recorded, path, execution.spec.by, replaced)
                )

    async def proposed(self, session_id: str, path: str, notebook: Notebook) -> Notebook:
        """Return a notebook as it would be with the open edits of a session.

        Raises
        ------
        SessionNotFound, InvalidRequest
        """
        session = await self._sessions.outline(session_id)
        if session.path != path:
            raise InvalidRequest(
                f"proposed_by: the session's notebook is {session.path!r}, not {path!r}.",
                field="proposed_by",
                path=session.path,
            )
        return with_edits(notebook, _open(await self._recorded(session.id)))

    # -- list --------------------------------------------------------------------------------------

    async def listed(
        self,
        *,
        session_id: str | None,
        path: str | None,
        decided: bool,
        only: TokenId | None,
    ) -> ProposalList:
        """Return proposals, the oldest first.

        Parameters
        ----------
        session_id, path
            Return only those of a session, or of a notebook; None for all.
        decided
            Whether to return edits that are decided too. Needs a session.
        only
            The agent token that opened their sessions; None for any.
        """
        if session_id is not None:
            sessions = [await self._sessions.outline(session_id)]
        else:
            sessions = await self.sessions(only)
        proposals: list[Proposal] = []
        for session in sessions:
            if path is None or session.path == path.strip("/"):
                proposals += await self._told(session, decided=decided)
        return ProposalList(proposals=sorted(proposals, key=lambda proposal: proposal.proposed_at))

    async def sessions(self, only: TokenId | None) -> list[Session]:
        """Return the sessions with open edits, the oldest first.

        Parameters
        ----------
        only
            The agent token that opened them; None for any.
        """
        found = [self._current(session) for session in await self._with_open_edits()]
        return [
            session
            for session in found
            if only is None or (session.token is not None and session.token.id == only)
        ]

    async def _told(self, session: Session, *, decided: bool) -> list[Proposal]:
        recorded = await self._recorded(session.id)
        if not any(decided or edit.status == "open" for each in recorded for edit in each.edits):
            return []
        try:
            await self._check_is_ours(session)
            _, notebook = await self._notebooks.read(session.path or "")
        except (NotebookNotFound, DocumentUnwritable) as error:
            notebook, why = None, error.message
        else:
            why = ""
        order = proposed_order(notebook, _open(recorded))
        proposals = [
            Proposal(
                id=each.id,
                session_id=session.id,
                path=session.path or each.path,
                agent=session.agent,
                username=session.username,
                purpose=each.purpose,
                proposed_at=each.proposed_at,
                edits=[
                    shown_edit(edit, notebook, order, why)
                    for edit in each.edits
                    if decided or edit.status == "open"
                ],
            )
            for each in recorded
        ]
        return [proposal for proposal in proposals if proposal.edits]

    # -- decide ------------------------------------------------------------------------------------

    async def keep(self, session_id: str, request: KeepEdits, caller: Caller) -> ProposalList:
        """Keep a session's proposed edits: those that fit. The others become obsolete.

        Edits of a cell in which an execution waits or runs stay open, unless just one is asked for.

        Raises
        ------
        SessionNotFound, InvalidRequest, Paused, CellBusy, NotebookNotFound, DocumentUnwritable,
        DocumentChanged, HistoryUnavailable
            Nothing was kept.
        """
        self.check_not_paused("Keeping an agent's edits")
        if request.source is not None and len(request.ids or ()) != 1:
            raise InvalidRequest("source: only with the id of one edit.", field="source")
        edited = None if request.source is None else request
        return await EditDecisions(self, request, caller, "kept", edited=edited).make(session_id)

    async def reject(self, session_id: str, request: RejectEdits, caller: Caller) -> ProposalList:
        """Reject a session's proposed edits. The notebook is not changed.

        Raises
        ------
        SessionNotFound, InvalidRequest, NotebookNotFound, HistoryUnavailable
            Nothing was rejected.
        """
        decision = EditDecisions(self, request, caller, "rejected", reason=request.reason or None)
        return await decision.make(session_id)

    async def undo(self, session_id: str, request: DecideEdits, caller: Caller) -> ProposalList:
        """Undo the decisions about edits that were kept or rejected: they are open again.

        Those that were kept are taken out of the notebook. An edit stays kept if its cell is not as
        the agent left it.

        Raises
        ------
        SessionNotFound, InvalidRequest, CellBusy, NotebookNotFound, DocumentUnwritable,
        DocumentChanged, HistoryUnavailable
            Nothing was undone.
        """
        return await EditDecisions(self, request, caller, "open").make(session_id)

    def check_not_paused(self, what: str) -> None:
        """Raise Paused if agents are paused."""
        self._rules.check_not_paused(what)

    async def changes(self, id: SessionId) -> SessionChanges:
        """Return what a session changed in its notebook."""
        return await self._sessions.read(partial(self._history.changes, id))

    async def moved(self, before: str, path: str) -> None:
        """Follow a notebook, or a folder, that was moved after the sessions on it were closed."""
        await self._sessions.indexed()
        for session in await self._with_open_edits():
            if session.path is None or self._sessions.open_session(session.id) is not None:
                continue
            after = path_after_move(session.path, before, path)
            if after != session.path:
                entry = NotebookMoved(at=timestamp(), by=SOMEBODY, path=after, before=session.path)
                await self._sessions.decide(session.id, [entry])
                length = session.chain.length
                self._activity.publish("proposals", session.id, length=length)

    # -- helpers -----------------------------------------------------------------------------------

    def _check_recordable(self, payloads: Sequence[Payload]) -> None:
        """Raise InvalidRequest if the record would lack what is needed to decide about an edit."""
        texts = (each.data.decode() for each in payloads if each.data is not None)
        if any(self._history.redactor.text(text)[1] for text in texts):
            raise InvalidRequest(
                "edits: a cell that they change has a secret, such as a token, before or after "
                "them. Secrets are not recorded, so this cannot be proposed. Take it out of the "
                "code, or ask the user to make the edit.",
                field="edits",
            )

    def _lock(self, id: SessionId) -> asyncio.Lock:
        return self._locks.setdefault(id, asyncio.Lock())

    async def _with_open_edits(self) -> list[Session]:
        sessions = await self._sessions.read(self._history.sessions_with_proposals)
        return [session for session in sessions if await self._is_ours(session)]

    async def _is_ours(self, session: Session) -> bool:
        """Return whether a session's notebook is below this server's root folder."""
        if self._sessions.open_session(session.id) is not None:
            return True
        is_below = partial(self._history.is_below, session.id, self._root_dir)
        return await self._sessions.read(is_below)

    async def _check_is_ours(self, session: Session) -> None:
        """Raise NotebookNotFound if a session's notebook belongs to another server."""
        if not await self._is_ours(session):
            raise NotebookNotFound(
                "The session's notebook is in the folder of another server.", path=session.path
            )

    def _current(self, session: Session) -> Session:
        live = self._sessions.open_session(session.id)
        return session if live is None else live.record()

    async def _recorded(self, id: SessionId) -> list[RecordedProposal]:
        return await self._sessions.read(partial(self._history.proposals, id))

    async def _write(
        self,
        id: SessionId,
        entry: EditsProposed | EditsDeciding | EditsDecided,
        payloads: Sequence[Payload] = (),
    ) -> None:
        """Record an entry; raise HistoryUnavailable if it cannot be."""
        await self._sessions.decide(id, [entry], payloads)
        if isinstance(entry, EditsDeciding):
            return
        live = self._sessions.open_session(id)
        if live is not None:
            live.proposed = entry.open
            if isinstance(entry, EditsDecided):
                decided = {edit.id: edit for edit in live.decided_edits}
                decided |= {edit.id: edit for edit in await self._decided(id, entry)}
                live.decided_edits = list(decided.values())
            live.publish("proposals")
        else:
            length = (await self._sessions.outline(id)).chain.length
            self._activity.publish("proposals", id, length=length)

    async def _decided(self, id: SessionId, entry: EditsDecided) -> Iterable[DecidedEdit]:
        if isinstance(entry, RoundUndone):
            cells = (await self.changes(id)).cells()
        else:
            recorded = await self._recorded(id)
            cells = {edit.id: edit.cell_id for each in recorded for edit in each.edits}
        return [
            derive(DecidedEdit, decision, cell_id=cells[decision.id])
            for decision in entry.decisions
        ]


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
        return ProposalList(proposals=await self._proposals._told(session, decided=True))

    async def decide(self, session_id: str) -> Session:
        """Decide, and return the session."""
        own = self._proposals
        session = await own._sessions.outline(session_id)
        await own._check_is_ours(session)
        self._path = session.path or ""
        async with own._lock(session.id):
            recorded = await own._recorded(session.id)
            wanted = await self._wanted(session.id, recorded)
            changing = [edit for edit in wanted if self._changes_notebook(edit)]
            others = [edit for edit in wanted if not self._changes_notebook(edit)]
            via: Via | None = None
            planned: EditPlan | None = None
            if changing:
                await own._writer.flush(self._path)
                via, planned = await own._notebooks.change(
                    self._path,
                    partial(self._plan, changing),
                    partial(self._about_to, session.id),
                )
            self._decisions += [each for edit in others for each in self._decisions_of(edit)]
            await self._record(session.id, recorded, via, planned)
            own._writer.settle(self._path, via)
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
        busy = self._proposals._writer.busy(self._path)
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
            await self._proposals._write(id, entry)
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
            self._entry(_entry_of(recorded, self._path, self._by, self._decisions)),
            via=via if planned is not None and planned.changes else None,
            before=payloads[0].digest if payloads else None,
            after=payloads[1].digest if payloads else None,
        )
        await self._proposals._write(id, entry, payloads)

    def _part(self, cell: Cell) -> CellContent:
        """Return what is recorded of a cell as it is then."""
        return content_of(cell)

    def _entry(self, entry: EditsDecided) -> EditsDecided:
        """Return the entry to record, as it has to be for this request."""
        return entry


def _open(recorded: Iterable[RecordedProposal]) -> list[RecordedEdit]:
    """Return the open edits, in the order in which they are made."""
    return [edit for each in recorded for edit in each.edits if edit.status == "open"]


def _entry_of(
    recorded: Iterable[RecordedProposal], path: str, by: By, decisions: Sequence[EditDecision]
) -> EditsDecided:
    """Return the entry of decisions that do not change the notebook."""
    left = {edit.id for edit in _open(recorded)} - {decision.id for decision in decisions}
    again = sum(decision.status == "open" for decision in decisions)
    return EditsDecided(
        at=timestamp(),
        by=by,
        path=path,
        decisions=tuple(decisions),
        open=len(left) + again,
    )


def _busy(cell_id: CellId, execution_id: ExecutionId) -> CellBusy:
    return CellBusy(
        f"Execution {execution_id} waits or runs in cell {cell_id!r}; nothing was changed. "
        "Decide when it has finished, or cancel it.",
        cell_id=cell_id,
        execution_id=execution_id,
    )
