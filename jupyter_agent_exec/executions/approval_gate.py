"""The gate of one session: the user's pause and approval, which all that its agent does passes.

An execution waits here (`until_it_goes`). What cannot wait is refused at once (`check`): edits of
the notebook, uploads and deletions, completion, answers to input, restarts. An approval is for one
life of the session's kernel: in another life, all has to be approved anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from msgspec.structs import replace

from ..errors import AlreadyDecided, ApprovalChanged, ApprovalRequired
from ..models import Approval, Approve, Session, WaitingFor
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
from ..tasks import Tasks, first_of, settle
from ..types import ApprovalMode, ExecutionId, Status
from .execution import LiveExecution
from .incarnations import Incarnations
from .permission import Permit, Rules

_HOW_TO_GET_IT: Final[Mapping[ApprovalMode, str]] = {
    "none": "",
    "first": "Run code first: once the user approves it, this is let through until the kernel "
    "restarts.",
    "always": "Run code, and ask the user to choose 'Approve all…' when they approve it: this is "
    "let through for as long as they say.",
}
"""What an agent can do to have something let through, by what the user wants to approve."""


class GiveUp(Protocol):
    """Ends an execution that was not sent yet."""

    def __call__(self, execution: LiveExecution, status: Status, reason: str) -> None:
        """End it."""


class Write(Protocol):
    """Writes entries about what is to happen, all or none."""

    async def __call__(self, entries: Sequence[Entry], payloads: Sequence[Payload] = ()) -> None:
        """Write them; HistoryUnavailable if that cannot be."""


class Asking:
    """Asks for permission for the executions of one session, and takes what people decide.

    Parameters
    ----------
    live
        The session's executions that are not finished, in order.
    changed
        Called when an execution asks, or asks no more.
    tasks
        Of the session.
    """

    def __init__(
        self,
        session: Session,
        rules: Rules,
        permit: Permit,
        incarnations: Incarnations,
        *,
        live: Mapping[ExecutionId, LiveExecution],
        write: Write,
        give_up: GiveUp,
        changed: Callable[[LiveExecution], None],
        tasks: Tasks,
    ) -> None:
        self._session = session
        self._rules = rules
        self._permit = permit
        self._incarnations = incarnations
        self._live = live
        self._write = write
        self._give_up = give_up
        self._changed = changed
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()  # decisions, one after the other
        self._approved_life: int | None = None  # in which one was approved
        self._granted_until: datetime | None = None
        self.init_held = asyncio.Event()
        """Set while the init source waits for what a person decides."""

    @property
    def mode(self) -> ApprovalMode:
        """What executions that are accepted now must ask for."""
        return self._rules.mode(self._session.target, self._permit.approval)

    @property
    def is_free(self) -> bool:
        """Whether what would be asked for now would run in the kernel without a person's word."""
        mode = self.mode
        follows = mode == "first" and self._approved_life == self._life
        return mode == "none" or follows or self._is_granted

    def check(self, what: str, *, is_code: bool) -> None:
        """Let something through that cannot wait as an execution does.

        Parameters
        ----------
        what
            What the agent is about to do, as the beginning of a sentence.
        is_code
            Whether it runs code, or can become code that somebody runs.

        Raises
        ------
        Paused
            The user has paused all agents.
        ApprovalRequired
            The user has to approve code of this session, and has not approved any yet.
        """
        self._rules.check_not_paused(what)
        if is_code and not self.is_free:
            raise ApprovalRequired(
                f"{what} needs the user's approval in this session. {_HOW_TO_GET_IT[self.mode]}",
                session_id=self._session.id,
                approval=self.mode,
            )

    @property
    def approved_until(self) -> str | None:
        """Until when everything runs without asking; None if it does not."""
        until = self._granted_until
        return timestamp(until) if until is not None and self._is_granted else None

    @property
    def pausing(self) -> WaitingFor | None:
        """What everything waits for while agents are paused."""
        return self._rules.pausing

    @property
    def time_counts(self) -> bool:
        """Whether what waits in the session, waits for its turn rather than for people."""
        return self._rules.paused is None and not any(each.asks for each in self._live.values())

    def asking(self) -> Iterator[LiveExecution]:
        """Yield the executions that ask now."""
        for execution in self._live.values():
            if execution.asks and execution.accepted.done() and not execution.given_up.done():
                yield execution

    def may_run(self, execution: LiveExecution) -> bool:
        """Tell whether an execution may run in the kernel as it is now."""
        if execution.mode == "none":
            return True
        lives = [execution.approved_life]
        if _follows(execution):
            lives.append(self._approved_life)
        return self._life in lives or self._is_granted

    def goes(self, execution: LiveExecution) -> bool:
        """Tell whether people let an execution run now."""
        return self._rules.paused is None and self.may_run(execution)

    async def until_it_goes(self, execution: LiveExecution, *gone: asyncio.Future[None]) -> bool:
        """Wait until people let an execution run; False if it is given up instead.

        No kernel is started meanwhile.

        Parameters
        ----------
        gone
            Done when nobody needs it any more.
        """
        while not execution.given_up.done() and not any(future.done() for future in gone):
            if self.goes(execution):
                return True
            if execution.init:
                self.init_held.set()
            if not self.may_run(execution):
                await self._until_decided(execution, *gone)
            else:
                await first_of(self._rules.until_resumed(), execution.given_up, *gone)
        return False

    # -- ask ---------------------------------------------------------------------------------------

    async def accept(self, *executions: LiveExecution) -> None:
        """Have acceptances on disk, in one write with the asking of those that ask at once.

        With `first`, what comes after one that asks waits for what becomes of that.
        """
        asking = [execution for execution in executions if self._asks_at_once(execution)]
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
                asked, more = self._ask(execution)
                entries.append(asked)
                payloads += more
        await self._write(entries, payloads)

    def withdraw(self, execution: LiveExecution) -> None:
        """Take note that an execution is given up, whatever it asks."""
        if execution.approval is not None and execution.approval.status == "asked":
            execution.approval = replace(execution.approval, status="withdrawn")

    # -- decide ------------------------------------------------------------------------------------

    async def approve(self, execution: LiveExecution, asked: Approve, by: By) -> None:
        """Let an execution run.

        Raises
        ------
        AlreadyDecided, ApprovalChanged, HistoryUnavailable
            It was not approved by this.
        """
        async with self._lock:
            _check_asks(execution)
            sha256 = digest_of(execution.source.encode())
            if asked.source_sha256 != sha256:
                raise ApprovalChanged(
                    "source_sha256: another source asks for approval; look at it again.",
                    field="source_sha256",
                    source_sha256=sha256,
                )
            await self._incarnations.confirmed()
            approval = _check_asks(execution)
            if approval.incarnation != self._life:
                await self._ask_again(execution)
                raise ApprovalChanged(
                    "The kernel is another one since this asked; it asks anew.",
                    incarnation=self._life,
                )
            source = execution.source if asked.source is None else asked.source
            await self._approve([(execution, source)], by)
            self._approved_life = approval.incarnation

    async def reject(self, execution: LiveExecution, reason: str | None, by: By) -> None:
        """Do not let an execution run; AlreadyDecided if it does not ask."""
        async with self._lock:
            approval = _check_asks(execution)
            entry = Rejected(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
            execution.decision = entry  # written in one with its end
            execution.approval = replace(
                approval,
                status="rejected",
                decided_at=entry.at,
                decided_by=by.named,
                reason=reason,
            )
            said = f"says: {reason}" if reason else "gave no reason; ask before you try it again."
            why = f"It was not run: {by.named} rejected it and {said}"
            self._give_up(execution, "rejected", why)

    async def grant(self, minutes: float, by: By) -> None:
        """Let everything run for so long, and what asks already; 0 ends that.

        Raises
        ------
        HistoryUnavailable
            It is as it was.
        """
        async with self._lock:
            until = datetime.now(UTC) + timedelta(minutes=minutes) if minutes else None
            entry = ApprovalGranted(
                at=timestamp(), by=by, until=None if until is None else timestamp(until)
            )
            waiting = [] if until is None else [(each, each.source) for each in self.asking()]
            await self._approve(waiting, by, entry)
            self._granted_until = until

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _life(self) -> int:
        """The life of the kernel that is there, or else of the next."""
        return self._incarnations.number + (self._incarnations.current is None)

    @property
    def _is_granted(self) -> bool:
        until = self._granted_until
        return until is not None and datetime.now(UTC) < until

    def _asks_at_once(self, execution: LiveExecution) -> bool:
        if self.may_run(execution):
            return False
        before = (other for other in self._live.values() if other.seq < execution.seq)
        return not _follows(execution) or all(map(self.may_run, before))

    def _ask(self, execution: LiveExecution) -> tuple[ApprovalAsked, list[Payload]]:
        """Have an execution ask; return what is to be written of it."""
        now, kernel = datetime.now(UTC), self._incarnations.current
        timeout = self._rules.approval_timeout
        before = None if execution.before is None else Payload.of(execution.before.encode())
        source = Payload.of(execution.source.encode())
        entry = ApprovalAsked(
            at=timestamp(now),
            by=execution.by,
            execution_id=execution.id,
            source=source.digest,
            kernel_id=None if kernel is None else kernel.id,
            incarnation=self._life,
            expires_at=timestamp(now + timedelta(seconds=timeout)),
            before=None if before is None else before.digest,
        )
        approval = Approval(
            status="withdrawn" if execution.given_up.done() else "asked",
            asked_at=entry.at,
            expires_at=entry.expires_at,
            kernel_id=entry.kernel_id,
            incarnation=entry.incarnation,
            before=execution.before,
        )
        execution.approval, execution.status = approval, "awaiting_approval"
        execution.decided = self._loop.create_future()
        expiry = self._loop.call_later(timeout, self._expired, execution, approval)
        for future in (execution.decided, execution.given_up):
            future.add_done_callback(lambda _: expiry.cancel())
        return entry, [source] if before is None else [source, before]

    async def _until_decided(self, execution: LiveExecution, *gone: asyncio.Future[None]) -> None:
        """Ask for permission, unless it is being asked for, and wait for the decision."""
        if not execution.asks and not execution.init:
            begun = asyncio.ensure_future(self._incarnations.begun())
            await first_of(begun, execution.given_up)  # its init source may be asking
            begun.cancel()
            if execution.given_up.done() or self.may_run(execution):
                return
        if not execution.asks:
            async with self._lock:
                if execution.given_up.done():
                    return
                await self._ask_again(execution)
        await first_of(execution.decided, execution.given_up, *gone)

    async def _ask_again(self, execution: LiveExecution) -> None:
        settle(execution.decided)
        entry, payloads = self._ask(execution)
        await self._write([entry], payloads)
        self._changed(execution)

    async def _approve(
        self, approved: Sequence[tuple[LiveExecution, str]], by: By, *more: Entry
    ) -> None:
        """Have it on disk that executions may run, each with a source, and let them."""
        at, entries, payloads = timestamp(), list(more), []
        for execution, source in approved:
            payload = Payload.of(source.encode())
            payloads.append(payload)
            entries.append(Approved(at=at, by=by, execution_id=execution.id, source=payload.digest))
        await self._write(entries, payloads)
        for execution, source in approved:
            approval = execution.approval
            if approval is None or approval.status != "asked":
                continue  # it was taken back meanwhile
            execution.asked_source = execution.asked_source or execution.source
            execution.approval = replace(
                approval,
                status="approved",
                decided_at=at,
                decided_by=by.named,
                asked_source=None if execution.asked_source == source else execution.asked_source,
            )
            execution.source, execution.approved_life = source, approval.incarnation
            execution.status = "queued"
            settle(execution.decided)
            self._changed(execution)

    def _expired(self, execution: LiveExecution, approval: Approval) -> None:
        self._tasks.start(self._expire(execution, approval), f"expiry of {execution.id}")

    async def _expire(self, execution: LiveExecution, approval: Approval) -> None:
        async with self._lock:  # somebody may be deciding at this moment
            if execution.approval is approval and not execution.given_up.done():
                execution.approval = replace(approval, status="expired")
                reason = f"Nobody decided within {self._rules.approval_timeout:g} seconds."
                self._give_up(execution, "rejected", f"{reason} It was not run.")


def _follows(execution: LiveExecution) -> bool:
    """Tell whether it may run once another was approved; an init source runs in every life."""
    return execution.mode == "first" and not execution.init


def _check_asks(execution: LiveExecution) -> Approval:
    """Return what an execution asks; AlreadyDecided if it does not."""
    if execution.approval is None or not execution.asks or execution.given_up.done():
        raise already_decided(execution.id, execution.status, execution.approval)
    return execution.approval


def already_decided(id: ExecutionId, status: Status, approval: Approval | None) -> AlreadyDecided:
    """Return the refusal of a decision about an execution that does not ask."""
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
