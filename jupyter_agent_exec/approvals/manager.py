"""Approvals: which executions need approval, and users' decisions. Reviews: later verdicts."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast, get_args

import msgspec
from msgspec.structs import replace
from traitlets import TraitError

from ..auth.scopes import Caller
from ..code_rules.classifier import DEFAULT_ALLOWED
from ..errors import HistoryUnavailable, InvalidRequest, NotFinished
from ..executions.approval_gate import Rules, already_decided
from ..executions.execution import LiveExecution
from ..journal.history import History
from ..models import (
    ApprovalPolicy,
    Approve,
    Pause,
    Session,
    SetPolicy,
    SetReview,
    SinkStatus,
)
from ..records import (
    AgentsPaused,
    AgentsResumed,
    Entry,
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
    RuleKind,
    TargetKind,
    TokenId,
)

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

RULE_KINDS: Final[tuple[RuleKind, ...]] = get_args(RuleKind)

POLICY_FILE: Final = "approval-policy.json"


def checked_modes(name: str, modes: Mapping[str, Any]) -> Modes:
    """Return a trait's modes by what they decide about; TraitError if it is invalid."""
    for kind, mode in modes.items():
        if kind not in POLICY_KINDS:
            raise TraitError(f"{name}: {kind!r} is not a kind of target; {_or(POLICY_KINDS)}.")
        allowed = EDIT_MODES if kind == "edits" else APPROVAL_MODES
        if mode not in allowed:
            raise TraitError(f"{name}: {kind} cannot be {mode!r}; {_or(allowed)}.")
    return {kind: modes[kind] for kind in POLICY_KINDS if kind in modes}


class Policy:
    """The approval policy in force: for executions by the kind of their target, and for edits.

    Parameters
    ----------
    folder
        The history's folder.
    configured
        The operator's defaults, which users may change.
    forced
        The operator's modes that nobody can change.
    allow
        The kinds of code that the rules let through; users may change them.
    """

    def __init__(
        self,
        folder: Path,
        configured: Modes,
        forced: Modes,
        allow: Sequence[RuleKind] = DEFAULT_ALLOWED,
        *,
        log: logging.Logger,
    ) -> None:
        self._path = folder / POLICY_FILE
        self._configured = {**DEFAULT_MODES, **configured}
        self._forced = forced
        self._allow = allow
        self._set = _read(self._path, log)

    @property
    def modes(self) -> Modes:
        """The modes in force."""
        return {**self._configured, **_modes(self._set), **self._forced}

    @property
    def allow(self) -> list[RuleKind]:
        """The kinds of code that the rules let through, where the operator forces nothing else."""
        return list(self._allow if self._set.allow is None else self._set.allow)

    def mode(self, kind: TargetKind) -> ApprovalMode:
        """Return the mode of sessions with this kind of target."""
        return cast(ApprovalMode, self.modes[kind])

    def forced_mode(self, kind: TargetKind) -> ApprovalMode | None:
        """Return the mode that the operator forces for a kind of target; None if there is none."""
        return cast(ApprovalMode | None, self._forced.get(kind))

    def edit_mode(self, of_session: EditMode | None) -> EditMode:
        """Return what becomes of a session's edits.

        Parameters
        ----------
        of_session
            What its agent token says, or the user's own credential; None to follow the policy.
            It replaces the policy, but cannot apply what the operator forces to be proposed.
        """
        forced = cast(EditMode | None, self._forced.get("edits"))
        if "propose" in (forced, of_session):
            return "propose"
        return forced or of_session or cast(EditMode, self.modes["edits"])

    def allowed(self, kind: TargetKind) -> frozenset[RuleKind]:
        """Return the kinds of code that the rules let through with this kind of target.

        Where the operator forces the rules, users can only make them stricter.
        """
        allowed = frozenset(self.allow)
        return allowed & set(self._allow) if self._forced.get(kind) == "rules" else allowed

    def model(self) -> ApprovalPolicy:
        """Return the policy as a model."""
        forced = [kind for kind in POLICY_KINDS if kind in self._forced]
        modes: dict[str, Any] = {**self.modes}  # type: ignore[dict-item]
        return ApprovalPolicy(**modes, forced=forced, allow=self.allow)

    def with_set(self, request: SetPolicy) -> SetPolicy:
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
        allow = self._set.allow if request.allow is None else sorted(set(request.allow))
        return replace(self._set, **wanted, allow=allow)

    def keep(self, policy: SetPolicy) -> None:
        """Save the users' policy, then apply it. Blocks.

        Raises
        ------
        HistoryUnavailable
            The policy cannot be saved. It has not changed.
        """
        temporary = self._path.with_suffix(".new")
        try:
            with temporary.open("wb") as file:
                file.write(msgspec.json.encode(_kept(policy), order="sorted"))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise HistoryUnavailable(
                f"The policy cannot be saved ({error.strerror or error}). Nothing was changed."
            ) from error
        self._set = policy


def _modes(policy: SetPolicy) -> Modes:
    """Return the modes that a user has set."""
    return {kind: mode for kind in POLICY_KINDS if (mode := getattr(policy, kind)) is not None}


def _kept(policy: SetPolicy) -> dict[str, Any]:
    """Return what the file holds of a policy."""
    kept: dict[str, Any] = msgspec.to_builtins(policy)
    return {name: value for name, value in kept.items() if value is not None}


def _read(path: Path, log: logging.Logger) -> SetPolicy:
    """Return the users' policy; empty if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SetPolicy)
    except FileNotFoundError:
        return SetPolicy()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("What people set of the approval policy cannot be read (%s): %s", path, error)
        return SetPolicy()


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
        policy: Policy,
        rules: Rules,
        activity: Activity,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._policy = policy
        self._rules = rules
        self._activity = activity
        self._lock = asyncio.Lock()  # held while the policy or the pause changes

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
        """Approve all executions of a session for some minutes; 0 ends the approval.

        Raises
        ------
        SessionNotFound, SessionClosed, HistoryUnavailable
        """
        session = await self._sessions.live_session(session_id)
        await session.grant(minutes, caller.by())
        return session.record()

    async def set_policy(self, request: SetPolicy, caller: Caller) -> None:
        """Change the approval policy for new executions.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
        """
        async with self._lock:
            wanted = self._policy.with_set(request)
            before = self._policy.modes
            policy = {**before, **_modes(wanted)}
            is_same = wanted.allow is None or set(wanted.allow) == set(self._policy.allow)
            if policy == before and is_same:
                return
            allow = None if wanted.allow is None else tuple(wanted.allow)
            entry = PolicySet(at=timestamp(), by=caller.by(), policy=policy, allow=allow)
            await self._sessions.in_thread(partial(self._history.note, entry))
            await self._sessions.in_thread(partial(self._policy.keep, wanted))
        self._activity.publish("approvals", None)

    async def set_paused(self, paused: bool, caller: Caller) -> None:
        """Pause or resume all agents. Running executions continue."""
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
