"""What people decide before agents' code runs: approve, reject, grant, pause, and the policy."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypeVar

from ..auth.scopes import Caller
from ..executions.approval_gate import Rules, already_decided
from ..executions.execution import LiveExecution
from ..journal.history import History
from ..models import ApprovalPolicy, Approve, Pause, Session, SetPolicy
from ..records import AgentsPaused, AgentsResumed, Entry, ExecutionRecord, PolicySet, timestamp
from ..sessions.activity import Publish
from ..sessions.manager import AgentSessions
from ..sessions.session import LiveSession
from ..types import TokenId
from .policy import Policy

T = TypeVar("T")

END_WAIT = 5.0
"""Seconds for which the answer to a rejection waits until that is recorded, and again as long
until its cell is out of the notebook."""


class Approvals:
    """Takes what people decide about what agents are about to do."""

    def __init__(
        self,
        sessions: AgentSessions,
        history: History,
        policy: Policy,
        rules: Rules,
        publish: Publish,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._policy = policy
        self._rules = rules
        self._publish = publish
        self._lock = asyncio.Lock()  # changes of the policy and the pause, one after the other

    # -- look --------------------------------------------------------------------------------------

    @property
    def policy(self) -> ApprovalPolicy:
        """What agents must ask for."""
        return self._policy.model()

    @property
    def paused(self) -> Pause | None:
        """Who has paused all agents, if somebody has."""
        return self._rules.paused

    def asking(self, *, only: TokenId | None = None) -> list[ExecutionRecord]:
        """Return the executions that ask, the longest waiting first.

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

    async def approve(self, id: str, asked: Approve, caller: Caller) -> ExecutionRecord:
        """Let an execution run.

        Raises
        ------
        ExecutionNotFound, AlreadyDecided, ApprovalChanged, HistoryUnavailable
        """
        session, execution = await self._live(id)
        await session.gate.approve(execution, asked, caller.by())
        return session.execution_record(execution)

    async def reject(self, id: str, reason: str | None, caller: Caller) -> ExecutionRecord:
        """Do not let an execution run.

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
        """Let all that a session asks for run for so long; 0 ends that.

        Raises
        ------
        SessionNotFound, SessionClosed, HistoryUnavailable
        """
        session = await self._sessions.live_session(session_id)
        await session.grant(minutes, caller.by())
        return session.record()

    async def set_policy(self, asked: SetPolicy, caller: Caller) -> None:
        """Say what agents must ask for from now on.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
        """
        async with self._lock:
            wanted = self._policy.with_set(asked)
            before = self._policy.modes
            entry = PolicySet(at=timestamp(), by=caller.by(), policy={**before, **wanted})
            if entry.policy == before:
                return
            await self._sessions.in_thread(partial(self._history.note, entry))
            await self._sessions.in_thread(partial(self._policy.keep, wanted))
        self._publish("approvals", None)

    async def set_paused(self, paused: bool, caller: Caller) -> None:
        """Send nothing more of any agent to a kernel, or go on; what runs goes on."""
        async with self._lock:
            if paused == (self._rules.paused is not None):
                return
            by, at = caller.by(), timestamp()
            entry: Entry = AgentsPaused(at=at, by=by) if paused else AgentsResumed(at=at, by=by)
            if paused:
                self._rules.pause(by)
            else:
                self._rules.resume()
            self._publish("approvals", None)
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
