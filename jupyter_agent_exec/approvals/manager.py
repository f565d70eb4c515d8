"""Approvals: which executions need approval, and users' decisions. Reviews: later verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..auth.scopes import Caller
from ..errors import NotFinished
from ..executions.approval_gate import already_decided
from ..executions.execution import LiveExecution
from ..executions.previews import PENDING
from ..executions.rules import Rules
from ..executions.shared_decisions import PauseEntry, StoredPolicy
from ..journal.history import History
from ..models import (
    ApprovalPolicy,
    Approve,
    Preview,
    Session,
    SetPolicy,
    SetReview,
)
from ..records import (
    AgentsPaused,
    AgentsResumed,
    ExecutionRecord,
    PolicySet,
    Reviewed,
    timestamp,
)
from ..sessions.activity import Activity
from ..sessions.manager import AgentSessions
from ..sessions.session import LiveSession
from ..sessions.session_history import SessionHistory
from ..types import (
    FINAL_STATUSES,
    TokenId,
)

END_WAIT = 5.0
"""Seconds that the response to a rejection waits until the rejection is recorded. It then waits up
to as long until the cell is removed from the notebook."""


class Approvals:
    """Lists the executions that wait for approval, and applies users' decisions."""

    def __init__(
        self,
        sessions: AgentSessions,
        history: History,
        rules: Rules,
        activity: Activity,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self.rules = rules
        self._activity = activity

    # -- read --------------------------------------------------------------------------------------

    @property
    def policy(self) -> ApprovalPolicy:
        """The current approval policy."""
        return self.rules.model()

    def asking(self, *, only: TokenId | None = None) -> list[ExecutionRecord]:
        """Return the executions that wait for approval, the longest waiting first.

        Parameters
        ----------
        only
            Return only executions of sessions that this agent token opened; None for all.
        """
        asking = [
            session.execution_record(execution)
            for session in self._open(only)
            for execution in session.gate.awaiting_approval()
        ]
        return sorted(asking, key=_asked_at)

    def pending(self, *, only: TokenId | None = None) -> list[ExecutionRecord]:
        """Return the executions that are queued or run, without outputs; `only` as in `asking`."""
        return [
            session.cells.with_document(execution.standing())
            for session in self._open(only)
            for execution in session.unfinished
            if execution.accepted.done() and not execution.awaits_approval
        ]

    def _open(self, only: TokenId | None) -> list[LiveSession]:
        return [each for each in self._sessions.history.all_open() if only in (None, each.token_id)]

    async def preview(self, id: str) -> Preview:
        """Return what a trial of an execution that waits for approval showed.

        Raises
        ------
        ExecutionNotFound, AlreadyDecided
        """
        _, execution = await self._live(id)
        if not execution.awaits_approval:
            raise already_decided(execution.id, execution.status, execution.approval)
        return execution.preview or PENDING

    # -- decide ------------------------------------------------------------------------------------

    async def approve(self, id: str, request: Approve, caller: Caller) -> ExecutionRecord:
        """Approve an execution.

        Raises
        ------
        ExecutionNotFound, AlreadyDecided, ApprovalChanged, HistoryUnavailable, CellNotFound,
        InvalidRequest, NotebookNotFound, DocumentUnwritable
            It was not approved. Its cell is gone, if it replaces the source of one.
        """
        session, execution = await self._live(id)
        place = await session.cells.current(execution)
        if await session.gate.approve(execution, request, caller.by(), place):
            for each in self._sessions.history.all_open():
                each.gate.follow(caller.by())
        self._grant_changed(self._granted(session))
        return session.execution_record(execution)

    async def reject(self, id: str, reason: str | None, caller: Caller) -> ExecutionRecord:
        """Reject an execution.

        Raises
        ------
        ExecutionNotFound, AlreadyDecided
        """
        session, execution = await self._live(id)
        await session.gate.reject(execution, reason, caller.by())
        await asyncio.wait({execution.finished}, timeout=END_WAIT)
        await session.cells.until_shown(execution, END_WAIT)
        return session.execution_record(execution)

    async def withdraw(self, session_id: str, caller: Caller) -> Session:
        """End what the user lets a session's agent do in its kernel without asking.

        Raises
        ------
        SessionNotFound, SessionClosed
        HistoryUnavailable
            The grant has ended all the same.
        """
        session = await self._sessions.history.live_session(session_id)
        granted = self._granted(session)
        try:
            await session.gate.withdraw(caller.by())
        finally:
            self._grant_changed(granted)
        return session.record()

    async def set_policy(self, request: SetPolicy, caller: Caller) -> None:
        """Change the approval policy for new executions.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
        """
        by = caller.by()

        def change(before: StoredPolicy) -> StoredPolicy:
            wanted = self.rules.with_set(request, before)
            if wanted != before:
                modes = self.rules.with_defaults(wanted)
                entry = PolicySet(at=timestamp(), by=by, policy=modes)
                self._history.note(entry)
            return wanted

        await self.rules.decisions.change_policy(change)

    async def set_paused(self, paused: bool, caller: Caller) -> None:
        """Pause or resume all agents, on all servers of the history. What runs continues.

        Raises
        ------
        HistoryUnavailable
            It cannot be saved. A pause holds on this server all the same; a resume changed nothing.
        """
        make = AgentsPaused if paused else AgentsResumed
        await self.rules.decisions.set_pause(make(at=timestamp(), by=caller.by()))

    def _granted(self, session: LiveSession) -> list[LiveSession]:
        """Return the open sessions in which the same grant holds as in one."""
        grant = session.gate.grant
        open_sessions = [] if grant is None else self._sessions.history.all_open()
        return [each for each in open_sessions if each.gate.grant is grant]

    def _grant_changed(self, sessions: Sequence[LiveSession]) -> None:
        for session in sessions:
            session.publish("session")

    async def changed(self, pause: PauseEntry | None) -> None:
        """Apply what a user decided, on this server or another.

        Parameters
        ----------
        pause
            The new pause, or its end; None if that has not changed.
        """
        self._activity.publish("approvals")
        if pause is not None:
            sessions = self._sessions.history.all_open()
            await asyncio.gather(*(session.pause_changed(pause) for session in sessions))

    async def _live(self, id: str) -> tuple[LiveSession, LiveExecution]:
        waiting = self._sessions.history.watching(id)
        if waiting is None:
            record = await self._sessions.history.finished(id)
            raise already_decided(record.id, record.status, record.approval)
        return waiting


def _asked_at(record: ExecutionRecord) -> tuple[str, str]:
    return ("" if record.approval is None else record.approval.asked_at, record.id)


class Reviews:
    """Records reviews of open and closed sessions."""

    def __init__(self, history: SessionHistory, activity: Activity) -> None:
        self._history = history
        self._activity = activity

    async def record(self, id: str, request: SetReview, caller: Caller) -> ExecutionRecord:
        """Record a review of an execution.

        Raises
        ------
        ExecutionNotFound, NotFinished, HistoryUnavailable
        """
        record = await self._history.execution(id)
        if record.status not in FINAL_STATUSES:
            raise NotFinished(
                f"The execution is {record.status}; review it when it has finished.",
                execution_id=record.id,
                status=record.status,
            )
        reviewed = Reviewed(
            at=timestamp(),
            by=caller.by(),
            execution_id=record.id,
            verdict=request.verdict,
            comment=request.comment or None,
        )
        await self._history.decide(record.session_id, [reviewed])
        record = await self._history.execution(id)
        live = self._history.open_session(record.session_id)
        if live is not None:
            live.reviewed(record)
        session = await self._history.session(record.session_id)
        self._activity.publish_execution(record, session.chain.length)
        return record
