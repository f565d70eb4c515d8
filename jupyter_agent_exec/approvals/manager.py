"""Approvals: users approve, reject or pause what agents want to run, and set the policy."""

from __future__ import annotations

import asyncio
from functools import partial

from ..auth.scopes import Caller
from ..executions.approval_gate import Rules, already_decided
from ..executions.execution import LiveExecution
from ..journal.history import History
from ..models import ApprovalPolicy, Approve, Pause, Session, SetPolicy
from ..records import AgentsPaused, AgentsResumed, Entry, ExecutionRecord, PolicySet, timestamp
from ..sessions.activity import Activity
from ..sessions.manager import AgentSessions
from ..sessions.session import LiveSession
from ..types import TokenId
from .policy import Policy

END_WAIT = 5.0
"""Seconds for which the answer to a rejection waits until that is recorded, and again as long
until its cell is out of the notebook."""


class Approvals:
    """Lists what waits for approval, and carries out what users decide about it."""

    def __init__(
        self,
        sessions: AgentSessions,
        history: History,
        policy: Policy,
        rules: Rules,
        activity: Activity,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._policy = policy
        self._rules = rules
        self._activity = activity
        self._lock = asyncio.Lock()  # changes of the policy and the pause, one after the other

    # -- look --------------------------------------------------------------------------------------

    @property
    def policy(self) -> ApprovalPolicy:
        """What needs approval."""
        return self._policy.model()

    @property
    def paused(self) -> Pause | None:
        """The pause of all agents; None if they are not paused."""
        return self._rules.paused

    def asking(self, *, only: TokenId | None = None) -> list[ExecutionRecord]:
        """Return the executions that wait for approval, the longest waiting first.

        Parameters
        ----------
        only
            The agent token with which their sessions must have been opened; None is any, or none.
        """
        found = [
            session.execution_record(execution)
            for session in self._sessions.all_open()
            if only in (None, session.token_id)
            for execution in session.gate.awaiting_approval()
        ]
        return sorted(found, key=_asked_at)

    # -- decide ------------------------------------------------------------------------------------

    async def approve(self, id: str, request: Approve, caller: Caller) -> ExecutionRecord:
        """Approve an execution.

        Raises
        ------
        ExecutionNotFound, AlreadyDecided, ApprovalChanged, HistoryUnavailable
        """
        session, execution = await self._live(id)
        await session.gate.approve(execution, request, caller.by())
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

    async def grant(self, session_id: str, minutes: float, caller: Caller) -> Session:
        """Approve all that a session runs in the next minutes; 0 ends that.

        Raises
        ------
        SessionNotFound, SessionClosed, HistoryUnavailable
        """
        session = await self._sessions.live_session(session_id)
        await session.grant(minutes, caller.by())
        return session.record()

    async def set_policy(self, request: SetPolicy, caller: Caller) -> None:
        """Set what needs approval from now on.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
        """
        async with self._lock:
            wanted = self._policy.with_set(request)
            before = self._policy.modes
            entry = PolicySet(at=timestamp(), by=caller.by(), policy={**before, **wanted})
            if entry.policy == before:
                return
            await self._sessions.in_thread(partial(self._history.note, entry))
            await self._sessions.in_thread(partial(self._policy.keep, wanted))
        self._activity.publish("approvals", None)

    async def set_paused(self, paused: bool, caller: Caller) -> None:
        """Pause or resume all agents; what runs goes on."""
        async with self._lock:
            if paused == (self._rules.paused is not None):
                return
            by, at = caller.by(), timestamp()
            entry: Entry = AgentsPaused(at=at, by=by) if paused else AgentsResumed(at=at, by=by)
            if paused:
                self._rules.pause(by)
            else:
                self._rules.resume()
            self._activity.publish("approvals", None)
            sessions = self._sessions.all_open()
            await asyncio.gather(*(session.pause_changed(entry) for session in sessions))

    async def _live(self, id: str) -> tuple[LiveSession, LiveExecution]:
        found = self._sessions.watching(id)
        if found is None:
            record = await self._sessions.history.finished(id)
            raise already_decided(record.id, record.status, record.approval)
        return found


def _asked_at(record: ExecutionRecord) -> tuple[str, str]:
    return ("" if record.approval is None else record.approval.asked_at, record.id)
