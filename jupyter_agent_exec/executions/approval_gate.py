"""Holds executions while agents are paused, and until the user approves them.

Executions wait (`wait_until_allowed`). Requests that cannot wait are refused at once (`check`):
edits of the notebook, uploads, deletions, answers to input, and restarts. An approval is valid for
one incarnation of the session's kernel. Each new kernel needs new approvals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from ..errors import AlreadyDecided, ApprovalChanged, ApprovalRequired, InvalidRequest
from ..models import AlsoApproved, Approval, Approve
from ..records import (
    ApprovalAsked,
    Approved,
    By,
    Entry,
    GrantWithdrawn,
    Payload,
    Rejected,
    digest_of,
    timestamp,
)
from ..tasks import call_later_apart, first_of, settle
from ..text.redaction import marks_in
from ..types import ApprovalMode, EditMode, ExecutionId, NextApproval, Status
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .previews import Previews, shown_payload
from .recorder import Recorder
from .rules import Grant, Permit, SessionGrants
from .session_kernels import SessionKernels
from .spec import ExecutionSpec, Place

_HOW_TO_GET_IT: Final[Mapping[ApprovalMode, str]] = {
    "none": "",
    "first": "Run code first: once the user approves it, this is let through until the kernel "
    "restarts.",
    "always": "Run code, and ask the user to choose 'Approve and let it run…' when they approve "
    "it: this is let through for as long as they say.",
}
"""How an agent can get permission, by approval mode."""


REDACTED: Final = (
    "source: it has [redacted: …] where a secret was replaced, so it is not what the agent wrote. "
    "Approve the code as it is, or take that part out."
)


class ApprovalGate:
    """Lets the executions of one session run, or asks a user to approve them.

    Parameters
    ----------
    permit
        Whether the session may run code at all.
    """

    def __init__(
        self,
        executions: LiveExecutions,
        kernels: SessionKernels,
        recorder: Recorder,
        permit: Permit,
    ) -> None:
        self._session = executions.session
        self._executions = executions
        self._rules = executions.server.rules
        self._permit = permit
        self._kernels = kernels
        self._recorder = recorder
        self._tasks = executions.tasks
        self._previews = Previews(executions, kernels)
        self._loop = executions.loop
        self._lock = asyncio.Lock()  # serializes decisions
        self._approved_restores: dict[ExecutionId, int] = {}  # by the first execution of each
        self._init_is_rejected = False
        self._grants = SessionGrants(self._rules.grants, self._session)
        self.init_waits = asyncio.Event()
        """Set while an init source waits for a user's decision."""

    @property
    def mode(self) -> ApprovalMode:
        """The approval that new executions need."""
        return self._rules.mode(self._session.target, self._permit.approval)

    def mode_of(self, spec: ExecutionSpec) -> ApprovalMode:
        """Return the approval that an execution needs: none for a trial, which changes nothing."""
        if spec.trial:
            return "none"
        asks_again = spec.init and self._init_is_rejected and self.mode != "none"
        return "always" if self.proposes(spec) or asks_again else self.mode

    @property
    def edit_mode(self) -> EditMode:
        """What becomes of the session's edits of its notebook."""
        return self._rules.edit_mode(self._permit.edits)

    def proposes(self, spec: ExecutionSpec) -> bool:
        """Return whether an execution edits a cell in a session that proposes edits."""
        edits = spec.place is not None and spec.place.edits
        return edits and self.edit_mode == "propose"

    @property
    def next_approval(self) -> NextApproval:
        """What happens to code that is submitted now."""
        if self._rules.paused is not None:
            return "paused"
        mode = self.mode
        if mode == "none":
            return "not_asked"
        if self._grant_in(mode) is not None:
            return "granted"
        return "asks_first" if mode == "first" else "asks_always"

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
        if is_code and self.mode != "none" and self.grant is None:
            raise ApprovalRequired(
                f"{what} needs the user's approval in this session. {_HOW_TO_GET_IT[self.mode]}",
                session_id=self._session.id,
                approval=self.mode,
            )

    @property
    def grant(self) -> Grant | None:
        """The user's leave that lets the session's code run; None if none is needed, or given."""
        return None if self.mode == "none" else self._grant_in(self.mode)

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
        if execution.mode == "none":
            return True
        lives = [execution.state.approved_incarnation]
        if execution.edits_cell:
            return self._incarnation in lives
        if self._grant_in(execution.mode) is not None:
            return True
        if _is_restored(execution):
            lives.append(self._approved_restores.get(_first(execution)))
        return self._incarnation in lives

    def is_allowed(self, execution: LiveExecution) -> bool:
        """Return whether an execution may be sent now: it may run, and agents are not paused.

        Refresh the shared decisions first, if it has waited.
        """
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
                await first_of(
                    self._rules.decisions.until_pause_changes(), execution.withdrawn, *gone
                )
        return False

    # -- accept ------------------------------------------------------------------------------------

    async def accept(self, *executions: LiveExecution) -> None:
        """Record executions as accepted, and request approval for those that need it now.

        All of it is one write. In mode `first`, executions behind one that awaits approval wait
        for that decision.
        """
        asking = [execution for execution in executions if self._asks_now(execution)]
        entries: list[Entry] = []
        payloads: list[Payload] = []
        async with self._lock if asking else nullcontext():
            for execution in executions:
                accepted, named = execution.acceptance()
                entries.append(accepted)
                payloads += named
                if execution in asking:
                    question, more = self._ask(execution)
                    entries.append(question)
                    payloads += more
            await self._recorder.write(entries, payloads)
            for execution in executions:
                self._executions.accepted(execution)
            for execution in asking:
                self._executions.approval_changed(execution)

    # -- decide ------------------------------------------------------------------------------------

    async def approve(
        self, execution: LiveExecution, decision: Approve, by: By, place: Place | None = None
    ) -> bool:
        """Approve an execution, and let the agent run more if the decision or its mode says so.

        Return whether it does: then the agent's other sessions `follow`.

        Parameters
        ----------
        place
            The place of the cell whose source it replaces, as the notebook is now.

        Raises
        ------
        AlreadyDecided, ApprovalChanged, HistoryUnavailable
            The execution was not approved.
        """
        async with self._lock:
            _check_awaits_approval(execution)
            if decision.once and decision.grant is not None:
                raise InvalidRequest("once: not together with a grant.", field="once")
            shown, redacted = execution.shown_source
            sha256 = digest_of(shown.encode())
            if decision.source_sha256 != sha256:
                raise ApprovalChanged(
                    "source_sha256: another source asks for approval; look at it again.",
                    field="source_sha256",
                    source_sha256=sha256,
                )
            if place is not None and place.replaces not in (None, execution.spec.before):
                execution.spec = replace(execution.spec, place=place, before=place.replaces)
                await self._ask_again(execution)
                raise ApprovalChanged(
                    "The cell was edited since approval was requested. It is requested again, for "
                    "the cell as it is now."
                )
            await self._kernels.confirmed()
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
            grant = self._grant_for(execution, decision, by)
            more = [] if grant is None else [grant.entry(approval, by)]
            await self._approve([(execution, source)], by, *more)
            if grant is not None:
                self._grants.put(approval.incarnation, grant)
                self._grant_in(execution.mode)
        return grant is not None

    def _grant_for(self, execution: LiveExecution, decision: Approve, by: By) -> Grant | None:
        """Return the leave that comes with an approval; in mode `first` each gives one.

        Not one for this execution only.
        """
        if decision.grant is not None:
            return Grant.of(decision.grant, by)
        if decision.once or execution.mode != "first" or self._grant_in("first") is not None:
            return None
        return Grant.of("restart", by, of_first=True)

    def follow(self, by: By) -> None:
        """Approve what asks here and need not ask any more, as the agent was given leave."""
        if any(map(self.may_run, self.awaiting_approval())):
            self._tasks.start(self._follow(by), f"approval in {self._session.id}")

    async def _follow(self, by: By) -> None:
        async with self._lock:
            asking = [each for each in self.awaiting_approval() if self.may_run(each)]
            if asking:
                await self._approve([(each, each.source) for each in asking], by)

    async def reject(self, execution: LiveExecution, reason: str | None, by: By) -> None:
        """Reject an execution; AlreadyDecided if it does not await approval."""
        async with self._lock:
            _check_awaits_approval(execution)
            shown = execution.decision_payloads = shown_payload(execution.preview)
            preview = shown[0].digest if shown else None
            entry = Rejected(
                at=timestamp(), by=by, execution_id=execution.id, reason=reason, preview=preview
            )
            execution.decision = entry  # written together with the execution's end
            self._init_is_rejected |= execution.spec.init
            execution.become(execution.state.refused(entry))

    async def withdraw(self, by: By) -> None:
        """End the grant of the session's agent. What it has not sent yet asks again.

        Raises
        ------
        HistoryUnavailable
            The grant has ended all the same.
        """
        async with self._lock:
            if self._grants.remove(self._kernels.current):
                await self._recorder.write([GrantWithdrawn(at=timestamp(), by=by)])

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _incarnation(self) -> int:
        """The number of the current incarnation; of the next one if there is no kernel."""
        return self._kernels.number + (self._kernels.current is None)

    def _grant_in(self, mode: ApprovalMode) -> Grant | None:
        """Return the grant that lets code of the session run in a mode; None if there is none."""
        grant = self._grants.get(self._kernels.current, self._incarnation)
        return grant if grant is not None and grant.holds(mode) else None

    def _asks_now(self, execution: LiveExecution) -> bool:
        if self.may_run(execution):
            return False
        before = (other for other in self._executions if other.seq < execution.seq)
        return not _follows(execution) or all(map(self.may_run, before))

    def _ask(self, execution: LiveExecution) -> tuple[ApprovalAsked, list[Payload]]:
        """Make an execution await approval; return the entry and payloads to record."""
        now, kernel = datetime.now(UTC), self._kernels.current
        timeout = self._rules.approval_timeout
        revised = execution.spec.before
        before = None if revised is None else Payload.of(revised.encode())
        source = Payload.of(execution.source.encode())
        also = list(self._also_approved(execution))
        entry = ApprovalAsked(
            at=timestamp(now),
            by=execution.spec.by,
            execution_id=execution.id,
            source=source.digest,
            kernel_id=None if kernel is None else kernel.id,
            incarnation=self._incarnation,
            expires_at=timestamp(now + timedelta(seconds=timeout)),
            before=None if before is None else before.digest,
            edits_cell=execution.edits_cell,
            also=tuple(each.id for each in also),
        )
        approval = entry.approval(
            revised, [AlsoApproved(execution_id=each.id, source=each.source) for each in also]
        )
        execution.become(execution.state.asked(approval))
        execution.decided = self._loop.create_future()
        expiry = call_later_apart(timeout, self._expired, execution, approval)
        for future in (execution.decided, execution.withdrawn):
            future.add_done_callback(lambda _: expiry.cancel(), context=Context())
        return entry, [source] if before is None else [source, before]

    def _also_approved(self, execution: LiveExecution) -> Iterator[LiveExecution]:
        """Yield what else an approval lets run: the executions behind in the same restore."""
        if not _is_restored(execution):
            return
        for each in self._executions:
            if each.seq > execution.seq and _first(each) == _first(execution):
                yield each

    async def _until_decided(self, execution: LiveExecution, *gone: asyncio.Future[None]) -> None:
        """Ask the user for approval, unless that has happened, and wait for the decision."""
        if not execution.awaits_approval and not execution.spec.init:
            begun = asyncio.ensure_future(self._kernels.begun())
            await first_of(begun, execution.withdrawn)  # an init source may await approval first
            begun.cancel()
            if execution.withdrawn.done() or self.may_run(execution):
                return
        if not execution.awaits_approval:
            async with self._lock:
                if execution.withdrawn.done():
                    return
                await self._ask_again(execution)
        over: asyncio.Future[None] = self._loop.create_future()
        self._tasks.start(self._previews.show(execution, over), f"preview of {execution.id}")
        try:
            await first_of(execution.decided, execution.withdrawn, *gone)
        finally:
            settle(over)

    async def _ask_again(self, execution: LiveExecution) -> None:
        settle(execution.decided)
        entry, payloads = self._ask(execution)
        await self._recorder.write([entry], payloads)
        self._executions.approval_changed(execution)

    async def _approve(
        self, approved: Sequence[tuple[LiveExecution, str]], by: By, *more: Entry
    ) -> None:
        """Record executions as approved, each with its approved source, and let them run."""
        at, payloads, given = timestamp(), [], []
        for execution, source in approved:
            payload = Payload.of(source.encode())
            tried = execution.preview if source == execution.source else None
            shown = shown_payload(tried)
            preview = shown[0].digest if shown else None
            payloads += [payload, *shown]
            entry = Approved(
                at=at, by=by, execution_id=execution.id, source=payload.digest, preview=preview
            )
            given.append((execution, source, entry))
        await self._recorder.write([*more, *(entry for _, _, entry in given)], payloads)
        for execution, source, entry in given:
            execution.become(execution.state.approved(source, entry))
            self._executions.approval_changed(execution)

    def _expired(self, execution: LiveExecution, approval: Approval) -> None:
        self._tasks.start(self._expire(execution, approval), f"expiry of {execution.id}")

    async def _expire(self, execution: LiveExecution, approval: Approval) -> None:
        async with self._lock:  # a user may be deciding at this moment
            execution.become(execution.state.expired(approval, self._rules.approval_timeout))


def _follows(execution: LiveExecution) -> bool:
    """Return whether an execution waits for the decision about another one before it."""
    return (execution.mode == "first" and not execution.spec.init) or _is_restored(execution)


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
