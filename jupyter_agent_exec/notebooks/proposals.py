"""Agents' proposed edits of notebooks: proposes, lists and records them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from weakref import WeakValueDictionary

from ulid import ULID

from ..auth.scopes import Caller
from ..errors import DocumentUnwritable, InvalidRequest, NotebookNotFound
from ..executions.execution import LiveExecution
from ..executions.rules import Rules
from ..journal.history import History
from ..journal.proposals import RecordedEdit, RecordedProposal, SessionChanges
from ..models import (
    DecidedEdit,
    EditNotebook,
    Proposal,
    ProposalList,
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
from ..types import ProposalId, SessionId, TokenId, Via
from .changes import Notebook
from .documents import EditPlanner, Notebooks, check_hash
from .edits import (
    EditPlan,
    as_json,
    as_told_edits,
    state_of,
)
from .execution_cells import NotebookWriter
from .placements import CellPlace
from .proposed_edits import (
    cells_to_decide,
    proposed_order,
    shown_edit,
    with_edits,
)


class Proposals:
    """The proposed edits of all sessions, also of closed ones."""

    def __init__(
        self,
        notebooks: Notebooks,
        sessions: SessionHistory,
        history: History,
        writer: NotebookWriter,
        rules: Rules,
        activity: Activity,
    ) -> None:
        self.notebooks = notebooks
        self._sessions = sessions
        self._history = history
        self.writer = writer
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
        async with self.lock(session.id):
            handle, base = await self.notebooks.read(path)
            open_edits = _open(await self.recorded(session.id))
            proposed = await asyncio.to_thread(with_edits, base, open_edits)
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
            await self.write(session.id, entry, payloads)
        return handle.via, planned, id

    async def replace(self, execution: LiveExecution) -> None:
        """Replace a session's open edit by an execution that proposes another source of the cell.

        An edit that only moves the cell, or clears its outputs, stays open.
        """
        assert isinstance(execution.spec.place, CellPlace)
        cell_id, session_id = execution.spec.place.cell_id, execution.session_id
        async with self.lock(session_id):
            recorded = await self.recorded(session_id)
            replaced = tuple(
                EditDecision(id=edit.id, status="replaced")
                for edit in _open(recorded)
                if edit.cell_id == cell_id and edit.before != edit.after
            )
            if replaced:
                path = recorded[-1].path
                await self.write(session_id, entry_of(recorded, path, execution.spec.by, replaced))

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
        edits = _open(await self.recorded(session.id))
        return await asyncio.to_thread(with_edits, notebook, edits)

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
                proposals += await self.told(session, decided=decided)
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

    async def told(self, session: Session, *, decided: bool) -> list[Proposal]:
        """Return a session's proposals, with their open edits, or all that they ever had."""
        recorded = await self.recorded(session.id)
        if not any(decided or edit.status == "open" for each in recorded for edit in each.edits):
            return []
        try:
            await self._check_is_ours(session)
            _, notebook = await self.notebooks.read(session.path or "")
        except (NotebookNotFound, DocumentUnwritable) as error:
            notebook, why = None, error.message
        else:
            why = ""
        return await asyncio.to_thread(_shown, session, recorded, notebook, why, decided)

    # -- for those who decide ----------------------------------------------------------------------

    async def session(self, id: str) -> Session:
        """Return a session whose edits can be decided about.

        Raises
        ------
        SessionNotFound, NotebookNotFound
        """
        session = await self._sessions.outline(id)
        await self._check_is_ours(session)
        return session

    def lock(self, id: SessionId) -> asyncio.Lock:
        """Return what each holds who decides about a session's edits, or proposes some."""
        return self._locks.setdefault(id, asyncio.Lock())

    async def recorded(self, id: SessionId) -> list[RecordedProposal]:
        """Return a session's proposals as the record has them."""
        return await self._sessions.read(partial(self._history.proposals, id))

    async def write(
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

    async def _with_open_edits(self) -> list[Session]:
        sessions = await self._sessions.read(self._history.sessions_with_proposals)
        return [session for session in sessions if await self._is_ours(session)]

    async def _is_ours(self, session: Session) -> bool:
        """Return whether a session's notebook is below this server's root folder."""
        if self._sessions.open_session(session.id) is not None:
            return True
        return await self._sessions.read(self._history.is_below, session.id)

    async def _check_is_ours(self, session: Session) -> None:
        """Raise NotebookNotFound if a session's notebook belongs to another server."""
        if not await self._is_ours(session):
            raise NotebookNotFound(
                "The session's notebook is in the folder of another server.", path=session.path
            )

    def _current(self, session: Session) -> Session:
        live = self._sessions.open_session(session.id)
        return session if live is None else live.record()

    async def _decided(self, id: SessionId, entry: EditsDecided) -> Iterable[DecidedEdit]:
        if isinstance(entry, RoundUndone):
            cells = (await self.changes(id)).cells()
        else:
            recorded = await self.recorded(id)
            cells = {edit.id: edit.cell_id for each in recorded for edit in each.edits}
        return [
            derive(DecidedEdit, decision, cell_id=cells[decision.id])
            for decision in entry.decisions
        ]


def _shown(
    session: Session,
    recorded: Sequence[RecordedProposal],
    notebook: Notebook | None,
    why: str,
    decided: bool,
) -> list[Proposal]:
    """Return a session's proposals as they are shown; the arguments are those of `shown_edit`."""
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


def _open(recorded: Iterable[RecordedProposal]) -> list[RecordedEdit]:
    """Return the open edits, in the order in which they are made."""
    return [edit for each in recorded for edit in each.edits if edit.status == "open"]


def entry_of(
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
