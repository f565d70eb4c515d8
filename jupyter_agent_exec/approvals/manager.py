"""Approvals: which executions need approval, and users' decisions. Reviews: later verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, get_args

from msgspec.structs import replace
from traitlets import TraitError

from ..auth.scopes import Caller
from ..errors import InvalidRequest, NotFinished
from ..executions.approval_gate import Rules, already_decided
from ..executions.execution import LiveExecution
from ..executions.previews import PENDING
from ..journal.history import History
from ..models import (
    ApprovalPolicy,
    Approve,
    Pause,
    Preview,
    Session,
    SetPolicy,
    SetReview,
    SinkStatus,
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
    ApprovalMode,
    EditMode,
    ExecutionId,
    PolicyKind,
    TargetKind,
    TokenId,
)
from .shared_decisions import NO_RULES, PauseEntry, SharedDecisions, StoredPolicy

Modes = dict[PolicyKind, ApprovalMode | EditMode]

POLICY_KINDS: Final[tuple[PolicyKind, ...]] = get_args(PolicyKind)
APPROVAL_MODES: Final[tuple[ApprovalMode, ...]] = get_args(ApprovalMode)
EDIT_MODES: Final[tuple[EditMode, ...]] = get_args(EditMode)
DEFAULT_MODES: Final[Modes] = {
    "scratch": "none",
    "notebook": "first",
    "kernel": "first",
    "edits": "propose",
}


def checked_modes(name: str, modes: Mapping[str, Any]) -> Modes:
    """Return a trait's modes by what they decide about; TraitError if it is invalid."""
    for kind, mode in modes.items():
        if kind not in POLICY_KINDS:
            raise TraitError(f"{name}: {kind!r} is not a kind of target; {_or(POLICY_KINDS)}.")
        allowed = EDIT_MODES if kind == "edits" else APPROVAL_MODES
        if mode == "rules":
            raise TraitError(f"{name}: {kind} cannot be 'rules' any more. {NO_RULES}")
        if mode not in allowed:
            raise TraitError(f"{name}: {kind} cannot be {mode!r}; {_or(allowed)}.")
    return {kind: modes[kind] for kind in POLICY_KINDS if kind in modes}


class Policy:
    """The approval policy in force: for executions by the kind of their target, and for edits.

    Parameters
    ----------
    decisions
        What users have set.
    configured
        The operator's defaults, which users may change.
    forced
        The operator's modes that nobody can change.
    """

    def __init__(
        self,
        decisions: SharedDecisions,
        configured: Modes,
        forced: Modes,
    ) -> None:
        self._decisions = decisions
        self._configured = {**DEFAULT_MODES, **configured}
        self._forced = forced

    @property
    def _set(self) -> StoredPolicy:
        return self._decisions.policy

    @property
    def modes(self) -> Modes:
        """The modes in force."""
        return self.with_defaults(self._set)

    @property
    def paused(self) -> Pause | None:
        """The pause of all agents; None if they are not paused."""
        return self._decisions.paused

    async def refresh(self) -> None:
        """Read what users decided on other servers of the history."""
        await self._decisions.refresh()

    def mode(self, kind: TargetKind) -> ApprovalMode:
        """Return the mode of sessions with this kind of target."""
        return cast(ApprovalMode, self.modes[kind])

    def forced_mode(self, kind: TargetKind) -> ApprovalMode | None:
        """Return the mode that the operator forces for a kind of target; None if there is none."""
        return cast("ApprovalMode | None", self._forced.get(kind))

    def edit_mode(self, of_session: EditMode | None) -> EditMode:
        """Return what becomes of a session's edits.

        Parameters
        ----------
        of_session
            What its agent token says, or the user's own credential; None to follow the policy.
            It replaces the policy, but cannot apply what the operator forces to be proposed.
        """
        forced = cast("EditMode | None", self._forced.get("edits"))
        if "propose" in (forced, of_session):
            return "propose"
        return forced or of_session or cast(EditMode, self.modes["edits"])

    def model(self) -> ApprovalPolicy:
        """Return the policy as a model."""
        forced = [kind for kind in POLICY_KINDS if kind in self._forced]
        modes: dict[str, Any] = {**self.modes}  # type: ignore[dict-item]
        return ApprovalPolicy(**modes, forced=forced)

    def with_set(self, request: SetPolicy, before: StoredPolicy) -> StoredPolicy:
        """Return the users' policy with the changes of a request.

        Raises
        ------
        InvalidRequest
            The configuration forces another mode. The error names the field.
        """
        wanted = _modes(request)
        for kind, mode in wanted.items():
            forced = self._forced.get(kind, mode)
            if mode != forced:
                raise InvalidRequest(
                    f"{kind}: the server's configuration forces {forced!r}.",
                    field=kind,
                    allowed=[forced],
                )
        return replace(before, **wanted)

    def with_defaults(self, stored: StoredPolicy) -> Modes:
        """Return the modes in force if this is what users have set."""
        return {**self._configured, **_modes(stored), **self._forced}


def _modes(policy: SetPolicy | StoredPolicy) -> Modes:
    """Return the modes that a user has set."""
    return {kind: mode for kind in POLICY_KINDS if (mode := getattr(policy, kind)) is not None}


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


END_WAIT = 5.0
"""Seconds that the response to a rejection waits until the rejection is recorded. It then waits up
to as long until the cell is removed from the notebook."""


class Approvals:
    """Lists the executions that wait for approval, and applies users' decisions."""

    def __init__(
        self,
        sessions: AgentSessions,
        history: History,
        decisions: SharedDecisions,
        policy: Policy,
        rules: Rules,
        activity: Activity,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._decisions = decisions
        self._policy = policy
        self._rules = rules
        self._activity = activity
        decisions.changed = self._changed

    # -- read --------------------------------------------------------------------------------------

    @property
    def policy(self) -> ApprovalPolicy:
        """The current approval policy."""
        return self._policy.model()

    @property
    def paused(self) -> Pause | None:
        """The pause of all agents; None if they are not paused."""
        return self._rules.paused

    @property
    def failing_sinks(self) -> list[SinkStatus]:
        """The sinks that cannot be reached, or that stop all code now."""
        return self._history.followers.failing()

    def asking(self, *, only: TokenId | None = None) -> list[ExecutionRecord]:
        """Return the executions that wait for approval, the longest waiting first.

        Parameters
        ----------
        only
            Return only executions of sessions that this agent token opened; None for all.
        """
        asking = [
            session.execution_record(execution)
            for session in self._sessions.all_open()
            if only in (None, session.token_id)
            for execution in session.gate.awaiting_approval()
        ]
        return sorted(asking, key=_asked_at)

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
        await session.gate.approve(execution, request, caller.by(), place)
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
        session = await self._sessions.live_session(session_id)
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
            wanted = self._policy.with_set(request, before)
            if wanted != before:
                modes = self._policy.with_defaults(wanted)
                entry = PolicySet(at=timestamp(), by=by, policy=modes)
                self._history.note(entry)
            return wanted

        await self._decisions.change_policy(change)

    async def set_paused(self, paused: bool, caller: Caller) -> None:
        """Pause or resume all agents, on all servers of the history. What runs continues.

        Raises
        ------
        HistoryUnavailable
            It cannot be saved. A pause holds on this server all the same; a resume changed nothing.
        """
        make = AgentsPaused if paused else AgentsResumed
        await self._decisions.set_pause(make(at=timestamp(), by=caller.by()))

    def _granted(self, session: LiveSession) -> list[LiveSession]:
        """Return the open sessions in which the same grant holds as in one."""
        grant = session.gate.grant
        open_sessions = [] if grant is None else self._sessions.all_open()
        return [each for each in open_sessions if each.gate.grant is grant]

    def _grant_changed(self, sessions: Sequence[LiveSession]) -> None:
        for session in sessions:
            self._activity.publish("session", session)

    async def _changed(self, pause: PauseEntry | None) -> None:
        """Apply what a user decided, on this server or another.

        Parameters
        ----------
        pause
            The new pause, or its end; None if that has not changed.
        """
        self._activity.publish("approvals", None)
        if pause is not None:
            self._rules.pause_changed()
            sessions = self._sessions.all_open()
            await asyncio.gather(*(session.pause_changed(pause) for session in sessions))

    async def _live(self, id: str) -> tuple[LiveSession, LiveExecution]:
        waiting = self._sessions.watching(id)
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

    async def of_execution(self, id: str, request: SetReview, caller: Caller) -> ExecutionRecord:
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
        session = await self._history.session(record.session_id)
        await self._record(session, request, caller, execution_id=record.id)
        record = await self._history.execution(id)
        session = await self._history.session(record.session_id)
        self._activity.publish(
            "execution", session, record.id, status=record.status, seq=record.seq
        )
        return record

    async def of_session(self, id: str, request: SetReview, caller: Caller) -> Session:
        """Record a review of a session's executions so far.

        It covers the executions before the first one that still waits or runs.

        Raises
        ------
        SessionNotFound, HistoryUnavailable
        """
        session = await self._history.session(id)
        up_to = await self._history.finished_up_to(id)
        await self._record(session, request, caller, up_to=up_to)
        session = await self._history.session(id)
        self._activity.publish("session", session, status=session.status)
        return session

    async def _record(
        self,
        session: Session,
        request: SetReview,
        caller: Caller,
        *,
        execution_id: ExecutionId | None = None,
        up_to: int = 0,
    ) -> None:
        entry = Reviewed(
            at=timestamp(),
            by=caller.by(),
            execution_id=execution_id,
            verdict=request.verdict,
            comment=request.comment or None,
            up_to=up_to,
        )
        await self._history.decide(session.id, [entry])
