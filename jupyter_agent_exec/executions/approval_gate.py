"""Holds executions while agents are paused, and until the user approves them.

In the mode `rules`, it lets code through that the rules know as harmless (`code_rules`). They are a
convenience, not a guard.

Executions wait (`wait_until_allowed`). Requests that cannot wait are refused at once (`check`):
edits of the notebook, uploads, deletions, completion, answers to input, and restarts. An approval
is valid for one incarnation of the session's kernel. Each new kernel needs new approvals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, cast

import msgspec

from ..errors import AlreadyDecided, ApprovalChanged, ApprovalRequired, InvalidRequest, Paused
from ..models import Approval, ApprovalReason, Approve, Pause, Target, WaitingFor
from ..records import (
    ApprovalAsked,
    ApprovalGranted,
    Approved,
    By,
    Entry,
    Payload,
    Rejected,
    digest_of,
    timestamp,
)
from ..redaction import marks_in
from ..tasks import Tasks, first_of, settle
from ..types import ApprovalMode, EditMode, ExecutionId, RuleKind, Status, TargetKind
from .execution import LiveExecution, LiveExecutions
from .incarnations import Incarnations
from .recorder import Recorder
from .session_code_rules import SessionCodeRules
from .state import ApprovalExpired, ApprovalGiven, ApprovalRefused, ApprovalRequested


def strictest(first: ApprovalMode, second: ApprovalMode) -> ApprovalMode:
    """Return the mildest mode that asks whenever one of two modes asks.

    `first` and `rules` let different code through, so only `always` is as strict as both.
    """
    if "none" in (first, second) or first == second:
        return second if first == "none" else first
    return "always"


_HOW_TO_GET_IT: Final[Mapping[ApprovalMode, str]] = {
    "none": "",
    "first": "Run code first: once the user approves it, this is let through until the kernel "
    "restarts.",
    "rules": "The rules decide about code that is run, and about nothing else. Ask the user to "
    "approve everything for some minutes: this is let through for as long as they say.",
    "always": "Run code, and ask the user to choose 'Approve all…' when they approve it: this is "
    "let through for as long as they say.",
}
"""How an agent can get permission, by approval mode."""


REDACTED: Final = (
    "source: it has [redacted: …] where a secret was replaced, so it is not what the agent wrote. "
    "Approve the code as it is, or take that part out."
)


class Policy(Protocol):
    """The approval policy."""

    def mode(self, kind: TargetKind) -> ApprovalMode:
        """Return the approval that sessions with this kind of target need."""

    def edit_mode(self, of_session: EditMode | None) -> EditMode:
        """Return what becomes of a session's edits; `of_session` as in `Permit.edits`."""

    def forced_mode(self, kind: TargetKind) -> ApprovalMode | None:
        """Return the approval that the operator forces for this kind of target, if any."""

    def allowed(self, kind: TargetKind) -> Collection[RuleKind]:
        """Return the kinds of code that the rules let through with this kind of target."""


class Permit(Protocol):
    """Whether a session may run code.

    Its agent token may be revoked or expire, or may no longer cover the notebook.
    """

    @property
    def approval(self) -> ApprovalMode | None:
        """The approval that the token demands; None to follow the policy."""

    @property
    def edits(self) -> EditMode | None:
        """What becomes of its edits of the notebook; None to follow the policy."""

    def refusal(self, path: str | None) -> str | None:
        """Return why the session may send nothing more to its kernel; None if it may.

        Parameters
        ----------
        path
            Current contents path of the session's notebook; None if its target is not a notebook.
        """

    async def look(self) -> None:
        """Load the current state from Jupyter and other servers; `refusal` answers from it."""


class Unlimited:
    """The permit of a session that a user opened with their own credential: it allows all."""

    approval: ApprovalMode | None = None
    edits: EditMode | None = "apply"

    def refusal(self, path: str | None) -> str | None:
        """Return None."""

    async def look(self) -> None:
        """Do nothing."""


class Rules:
    """The approval policy, the approval timeout, and the pause of all agents.

    Parameters
    ----------
    approval_timeout
        Seconds after which an execution that awaits approval is rejected.
    """

    def __init__(self, policy: Policy, approval_timeout: float) -> None:
        self.policy = policy
        self.approval_timeout = approval_timeout
        self.paused: Pause | None = None
        self._resumed: asyncio.Future[None] | None = None

    def mode(self, target: Target, of_token: ApprovalMode | None) -> ApprovalMode:
        """Return the approval that a session with this target needs.

        Parameters
        ----------
        of_token
            The approval that the session's agent token demands; None if it demands none. It
            replaces the policy, but cannot demand less than the operator forces.
        """
        kind = cast(TargetKind, target.__struct_config__.tag)
        if of_token is None:
            return self.policy.mode(kind)
        return strictest(of_token, self.policy.forced_mode(kind) or "none")

    def allowed(self, target: Target) -> frozenset[RuleKind]:
        """Return the kinds of code that the rules let through in a session with this target.

        The variables of a scratch kernel are the agent's own.
        """
        kind = cast(TargetKind, target.__struct_config__.tag)
        own: tuple[RuleKind, ...] = ("variables",) if kind == "scratch" else ()
        return frozenset((*self.policy.allowed(kind), *own))

    @property
    def pausing(self) -> WaitingFor | None:
        """What executions wait for while agents are paused."""
        if self.paused is None:
            return None
        return WaitingFor(who="pause", agent=None, execution_id=None, since=self.paused.at)

    def check_not_paused(self, what: str) -> None:
        """Raise Paused while all agents are paused.

        Parameters
        ----------
        what
            What the agent is about to do. It begins the error message.
        """
        pausing = self.pausing
        if pausing is not None:
            raise Paused(
                f"{what} has to wait: the user has paused all agents. Try again when they go on.",
                waiting_for=msgspec.to_builtins(pausing),
            )

    def pause(self, by: By) -> None:
        """Pause all agents: nothing more is sent to kernels."""
        self.paused = Pause(by=by.named, at=timestamp())
        self._resumed = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """Let all agents continue."""
        self.paused = None
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def until_resumed(self) -> asyncio.Future[None]:
        """Return a future that is done when paused agents continue."""
        assert self._resumed is not None
        return self._resumed


class ApprovalGate:
    """Lets the executions of one session run, or asks a user to approve them.

    Parameters
    ----------
    permit
        Whether the session may run code at all.
    tasks
        The tasks of the session.
    """

    def __init__(
        self,
        executions: LiveExecutions,
        rules: Rules,
        permit: Permit,
        incarnations: Incarnations,
        recorder: Recorder,
        tasks: Tasks,
    ) -> None:
        self._session = executions.session
        self._executions = executions
        self._rules = rules
        self._permit = permit
        self._incarnations = incarnations
        self._recorder = recorder
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()  # serializes decisions
        self._code_rules = SessionCodeRules(self._session, incarnations)
        self._reading = asyncio.Lock()  # keeps the order of executions that the rules read
        self._approved_incarnation: int | None = None  # the last with an approved execution
        self._approved_restores: dict[ExecutionId, int] = {}  # by the first execution of each
        self._granted_until: datetime | None = None
        self.init_waits = asyncio.Event()
        """Set while an init source waits for a user's decision."""

    @property
    def mode(self) -> ApprovalMode:
        """The approval that new executions need."""
        return self._rules.mode(self._session.target, self._permit.approval)

    @property
    def edit_mode(self) -> EditMode:
        """What becomes of the session's edits of its notebook."""
        return self._rules.policy.edit_mode(self._permit.edits)

    @property
    def is_free(self) -> bool:
        """Whether code that is submitted now runs without a user's approval."""
        mode = self.mode
        follows = mode == "first" and self._approved_incarnation == self._incarnation
        return mode == "none" or follows or self._is_granted

    def check(self, what: str, *, is_code: bool) -> None:
        """Raise if a request that cannot wait is not allowed now.

        Parameters
        ----------
        what
            What the agent is about to do. It begins the error message.
        is_code
            Whether the request runs code, or writes something that can be run as code later.

        Raises
        ------
        Paused
            The user has paused all agents.
        ApprovalRequired
            The session's code needs approval, and the user has not approved any yet.
        SinkBehind
            A strict sink is too far behind.
        """
        self._rules.check_not_paused(what)
        self._executions.journal.check_sinks()
        if is_code and not self.is_free:
            raise ApprovalRequired(
                f"{what} needs the user's approval in this session. {_HOW_TO_GET_IT[self.mode]}",
                session_id=self._session.id,
                approval=self.mode,
            )

    @property
    def approved_until(self) -> str | None:
        """When the user's blanket approval ends; None if there is none."""
        until = self._granted_until
        return timestamp(until) if until is not None and self._is_granted else None

    @property
    def pausing(self) -> WaitingFor | None:
        """What executions wait for while agents are paused."""
        return self._rules.pausing

    @property
    def time_counts(self) -> bool:
        """Whether waiting time counts: agents are not paused, and nothing awaits approval."""
        return self._rules.paused is None and not self._executions.needs_decision

    def awaiting_approval(self) -> Iterator[LiveExecution]:
        """Yield the executions that await approval now."""
        for execution in self._executions:
            if (
                execution.awaits_approval
                and execution.accepted.done()
                and not execution.withdrawn.done()
            ):
                yield execution

    @property
    def behind(self) -> int:
        """How many executions wait for the approval of another."""
        if not self._executions.needs_decision:
            return 0
        waiting = (each for each in self._executions if each.run is None)
        return sum(1 for each in waiting if not each.awaits_approval and not self.may_run(each))

    def may_run(self, execution: LiveExecution) -> bool:
        """Return whether an execution needs no approval, or has it for this incarnation."""
        if execution.mode == "none" or execution.reasons == ():
            return True
        lives = [execution.state.approved_incarnation]
        if _asks_once(execution):
            lives.append(self._approved_incarnation)
        if _is_restored(execution):
            lives.append(self._approved_restores.get(_first(execution)))
        return self._incarnation in lives or self._is_granted

    def is_allowed(self, execution: LiveExecution) -> bool:
        """Return whether an execution may be sent now: it may run, and agents are not paused."""
        return self._rules.paused is None and self.may_run(execution)

    async def wait_until_allowed(
        self, execution: LiveExecution, *gone: asyncio.Future[None]
    ) -> bool:
        """Wait until an execution may be sent; return False if it is withdrawn instead.

        The wait does not start a kernel.

        Parameters
        ----------
        gone
            Futures that end the wait when one is done, because the execution is obsolete.
        """
        while not execution.withdrawn.done() and not any(future.done() for future in gone):
            if self.is_allowed(execution):
                return True
            if execution.spec.init:
                self.init_waits.set()
            if not self.may_run(execution):
                await self._until_decided(execution, *gone)
            else:
                await first_of(self._rules.until_resumed(), execution.withdrawn, *gone)
        return False

    # -- accept ------------------------------------------------------------------------------------

    async def accept(self, *executions: LiveExecution) -> None:
        """Record executions as accepted, and request approval for those that need it now.

        All of it is one write. In mode `first`, executions behind one that awaits approval wait
        for that decision.
        """
        if any(execution.mode == "rules" for execution in executions):
            async with self._reading:
                for execution in executions:
                    if execution.mode == "rules":
                        allowed = self._rules.allowed(self._session.target)
                        execution.reasons = await self._code_rules.read(execution, allowed)
        asking = [execution for execution in executions if self._asks_now(execution)]
        if not asking:
            await self._accept(executions)
            return
        async with self._lock:
            await self._accept(executions, asking)

    async def _accept(
        self, executions: Sequence[LiveExecution], asking: Sequence[LiveExecution] = ()
    ) -> None:
        entries: list[Entry] = []
        payloads: list[Payload] = []
        for execution in executions:
            accepted, named = execution.acceptance()
            entries.append(accepted)
            payloads += named
            if execution in asking:
                question, more = self._ask(execution)
                entries.append(question)
                payloads += more
        await self._recorder.write_all(entries, payloads)
        for execution in executions:
            self._executions.accepted(execution)
        for execution in asking:
            self._executions.approval_changed(execution)

    # -- decide ------------------------------------------------------------------------------------

    async def approve(self, execution: LiveExecution, decision: Approve, by: By) -> None:
        """Approve an execution.

        Raises
        ------
        AlreadyDecided, ApprovalChanged, HistoryUnavailable
            The execution was not approved.
        """
        async with self._lock:
            _check_awaits_approval(execution)
            shown, redacted = execution.shown_source
            sha256 = digest_of(shown.encode())
            if decision.source_sha256 != sha256:
                raise ApprovalChanged(
                    "source_sha256: another source asks for approval; look at it again.",
                    field="source_sha256",
                    source_sha256=sha256,
                )
            await self._incarnations.confirmed()
            approval = _check_awaits_approval(execution)
            if approval.incarnation != self._incarnation:
                await self._ask_again(execution)
                raise ApprovalChanged(
                    "The kernel has changed since approval was requested. It is requested again.",
                    incarnation=self._incarnation,
                )
            source = decision.source
            if source is None or source == shown:
                source = execution.source
            elif redacted and marks_in(source):
                raise InvalidRequest(REDACTED, field="source")
            if _is_restored(execution):
                self._approved_restores[_first(execution)] = approval.incarnation
            await self._approve([(execution, source)], by)
            self._approved_incarnation = approval.incarnation

    async def reject(self, execution: LiveExecution, reason: str | None, by: By) -> None:
        """Reject an execution; AlreadyDecided if it does not await approval."""
        async with self._lock:
            _check_awaits_approval(execution)
            entry = Rejected(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
            execution.decision = entry  # written together with the execution's end
            execution.apply(ApprovalRefused(entry.at, by.named, reason))

    async def grant(self, minutes: float, by: By) -> None:
        """Approve all executions, waiting and new, for some minutes; 0 ends this.

        Raises
        ------
        HistoryUnavailable
            Nothing changed.
        """
        async with self._lock:
            until = datetime.now(UTC) + timedelta(minutes=minutes) if minutes else None
            entry = ApprovalGranted(
                at=timestamp(), by=by, until=None if until is None else timestamp(until)
            )
            waiting = (
                [] if until is None else [(each, each.source) for each in self.awaiting_approval()]
            )
            await self._approve(waiting, by, entry)
            self._granted_until = until

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _incarnation(self) -> int:
        """The number of the current incarnation; of the next one if there is no kernel."""
        return self._incarnations.number + (self._incarnations.current is None)

    @property
    def _is_granted(self) -> bool:
        until = self._granted_until
        return until is not None and datetime.now(UTC) < until

    def _asks_now(self, execution: LiveExecution) -> bool:
        if self.may_run(execution):
            return False
        before = (other for other in self._executions if other.seq < execution.seq)
        return not _follows(execution) or all(map(self.may_run, before))

    def _ask(self, execution: LiveExecution) -> tuple[ApprovalAsked, list[Payload]]:
        """Make an execution await approval; return the entry and payloads to record."""
        now, kernel = datetime.now(UTC), self._incarnations.current
        timeout = self._rules.approval_timeout
        revised = execution.spec.before
        before = None if revised is None else Payload.of(revised.encode())
        source = Payload.of(execution.source.encode())
        entry = ApprovalAsked(
            at=timestamp(now),
            by=execution.spec.by,
            execution_id=execution.id,
            source=source.digest,
            kernel_id=None if kernel is None else kernel.id,
            incarnation=self._incarnation,
            expires_at=timestamp(now + timedelta(seconds=timeout)),
            before=None if before is None else before.digest,
            reasons=(*self._also_lets_run(execution), *(execution.reasons or ())),
        )
        approval = Approval(
            status="asked",
            asked_at=entry.at,
            expires_at=entry.expires_at,
            kernel_id=entry.kernel_id,
            incarnation=entry.incarnation,
            before=revised,
            reasons=[*self._also_lets_run(execution, with_source=True), *(execution.reasons or ())],
        )
        execution.apply(ApprovalRequested(approval))
        execution.decided = self._loop.create_future()
        expiry = self._loop.call_later(timeout, self._expired, execution, approval)
        for future in (execution.decided, execution.withdrawn):
            future.add_done_callback(lambda _: expiry.cancel())
        return entry, [source] if before is None else [source, before]

    def _also_lets_run(
        self, execution: LiveExecution, *, with_source: bool = False
    ) -> Iterator[ApprovalReason]:
        """Yield what else an approval lets run: the cells behind in the same restore.

        An entry has no sources, because nothing of an entry can be erased.
        """
        if not _is_restored(execution):
            return
        for each in self._executions:
            if each.seq > execution.seq and _first(each) == _first(execution):
                source = f": {each.source.strip()}" if with_source else ""
                text = f"begins a restore, and the approval also lets {each.id} run{source}"
                yield ApprovalReason(line=1, kind="restore", text=text)

    async def _until_decided(self, execution: LiveExecution, *gone: asyncio.Future[None]) -> None:
        """Ask the user for approval, unless that has happened, and wait for the decision."""
        if not execution.awaits_approval and not execution.spec.init:
            begun = asyncio.ensure_future(self._incarnations.begun())
            await first_of(begun, execution.withdrawn)  # an init source may await approval first
            begun.cancel()
            if execution.withdrawn.done() or self.may_run(execution):
                return
        if not execution.awaits_approval:
            async with self._lock:
                if execution.withdrawn.done():
                    return
                await self._ask_again(execution)
        await first_of(execution.decided, execution.withdrawn, *gone)

    async def _ask_again(self, execution: LiveExecution) -> None:
        settle(execution.decided)
        entry, payloads = self._ask(execution)
        await self._recorder.write_all([entry], payloads)
        self._executions.approval_changed(execution)

    async def _approve(
        self, approved: Sequence[tuple[LiveExecution, str]], by: By, *more: Entry
    ) -> None:
        """Record executions as approved, each with its approved source, and let them run."""
        at, entries, payloads = timestamp(), list(more), []
        for execution, source in approved:
            payload = Payload.of(source.encode())
            payloads.append(payload)
            entries.append(Approved(at=at, by=by, execution_id=execution.id, source=payload.digest))
        await self._recorder.write_all(entries, payloads)
        for execution, source in approved:
            self._code_rules.approved(execution)
            execution.apply(ApprovalGiven(source, at, by.named))
            self._executions.approval_changed(execution)

    def _expired(self, execution: LiveExecution, approval: Approval) -> None:
        self._tasks.start(self._expire(execution, approval), f"expiry of {execution.id}")

    async def _expire(self, execution: LiveExecution, approval: Approval) -> None:
        async with self._lock:  # a user may be deciding at this moment
            execution.apply(ApprovalExpired(approval, self._rules.approval_timeout))


def _follows(execution: LiveExecution) -> bool:
    """Return whether another execution's approval covers this one; never for init sources."""
    return _asks_once(execution) or _is_restored(execution)


def _asks_once(execution: LiveExecution) -> bool:
    """Return whether one approval covers all executions in a kernel."""
    return execution.mode == "first" and not execution.spec.init


def _is_restored(execution: LiveExecution) -> bool:
    return execution.spec.restores is not None


def _first(execution: LiveExecution) -> ExecutionId:
    """Return the first execution of the same request."""
    return execution.id if execution.step is None else execution.step.first


def _check_awaits_approval(execution: LiveExecution) -> Approval:
    """Return the approval that an execution awaits; raise AlreadyDecided if there is none."""
    if execution.approval is None or not execution.awaits_approval or execution.withdrawn.done():
        raise already_decided(execution.id, execution.status, execution.approval)
    return execution.approval


def already_decided(id: ExecutionId, status: Status, approval: Approval | None) -> AlreadyDecided:
    """Return the error for a decision about an execution that does not await approval."""
    if approval is None:
        return AlreadyDecided(
            "The execution does not ask for approval.", execution_id=id, status=status
        )
    who = "" if approval.decided_by is None else f" by {approval.decided_by}"
    return AlreadyDecided(
        f"The execution does not ask any more: it was {approval.status}{who}.",
        execution_id=id,
        status=status,
        approval=approval.status,
        decided_by=approval.decided_by,
        decided_at=approval.decided_at,
    )
