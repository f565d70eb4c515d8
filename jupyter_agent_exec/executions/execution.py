"""An execution from its acceptance until it is recorded as finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ..journal.reader import HeldOutputs
from ..journal.spill import TextSpill
from ..kernels.execute_request import Ended, InputRequest, Run
from ..kernels.kernel_queue import Turn
from ..models import (
    Agent,
    Approval,
    Chain,
    ExecutionKernel,
    Input,
    Omitted,
    OutputChange,
    Placement,
    StepOf,
    TokenRef,
    WaitingFor,
)
from ..records import Accepted, By, ExecutionRecord, Payload, Rejected
from ..tasks import first_of, settle
from ..types import ApprovalMode, Digest, ExecutionId, Output, SessionId, Status
from .observer import Place
from .permission import QueueTime

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel

INTERRUPTED_BY_SOMEBODY = "Somebody interrupted the kernel, most likely a person in JupyterLab."
NOT_RUN = "The kernel ran nothing of it, since a cell that somebody had queued before it failed."


class OutputChanges(list[OutputChange]):
    """Changes of outputs that several followers may be sent."""


@dataclass(eq=False, slots=True, kw_only=True)
class LiveExecution:
    """An execution that has no final status on disk yet.

    Lives on the event loop; the drain's thread reads `ending` and `interrupt_ignored` when the run
    has ended.
    """

    id: ExecutionId
    session_id: SessionId
    seq: int
    source: str
    init: bool
    agent: Agent
    username: str
    by: By
    timeout: float | None
    queue_timeout: float | None
    max_output_bytes: int
    idempotency_key: str | None
    body_sha256: Digest | None
    placement: Placement | Literal["end", "none"] | None
    """Where its cell goes; None if the session's target is not a notebook."""
    place: Place | None
    """Where that is in the notebook; None for no cell."""
    accepted_at: str
    head: Callable[[], Chain]
    """Tells where the session's journal ends."""
    mode: ApprovalMode
    """What it must ask for, as the policy was when it was accepted."""
    permitted: Callable[[LiveExecution], bool]
    """Tells whether people let it run in the kernel as it is."""
    pausing: Callable[[], WaitingFor | None]
    """Tells whether all agents wait."""
    expressions: Mapping[str, str] = field(default_factory=dict)
    """To evaluate after it, by the names under which their values are told."""
    token: TokenRef | None = None
    """With which its session was opened."""
    step: StepOf | None = None
    """Which one it is of those that were asked for at once."""
    revises: ExecutionId | None = None
    before: str | None = None
    """The source that it is a new version of."""
    approval: Approval | None = None
    """What became of its asking, if it had to."""
    approved_life: int | None = None
    """The life of the kernel in which it may run."""
    asked_source: str | None = None
    """What the agent asked for, once a person has approved something."""
    decision: Rejected | None = None
    """What is written together with its end."""
    queue_time: QueueTime | None = None
    status: Status = "queued"
    kernel: ExecutionKernel | None = None
    started_at: str | None = None
    nested: bool = False
    """Whether the cell that the kernel is at waits for it."""
    subshell: str | None = None
    """Where it runs if it is nested."""
    held_by: Kernel | None = None
    """The kernel in which it runs."""
    run: Run | None = None
    request: InputRequest | None = None
    """What its code asks for, and nobody has given yet."""
    input: Input | None = None
    """The same, as it is told."""
    spill: TextSpill | None = None
    """Takes the whole text if the outputs are capped."""
    ending: tuple[Status, str] | None = None
    """Status and reason that somebody gave it: who asked for an interrupt, or took it back."""
    interrupt_ignored: bool = False
    ahead: Callable[[], WaitingFor | None] | None = None
    """Tells what it waits for, while it waits."""
    told_waiting_for: WaitingFor | None = None
    """What its watchers were told last."""
    accepted: asyncio.Future[None] = field(init=False)
    """Done when the acceptance is on disk; HistoryUnavailable if it could not be written."""
    decided: asyncio.Future[None] = field(init=False)
    """Done when a person has let it run; another each time that it asks."""
    given_up: asyncio.Future[None] = field(init=False)
    """Done when somebody takes it back while it waits for its turn."""
    asked: asyncio.Future[None] = field(init=False)
    """Done when its code asks for input; another each time."""
    begun: asyncio.Future[None] = field(init=False)
    """Done when the kernel took it up."""
    parted: asyncio.Future[None] = field(init=False)
    """Done when the session no longer holds the kernel that it was sent to."""
    failed: asyncio.Future[Exception] = field(init=False)
    """Done, with what was raised, when something of ours failed that should have ended it."""
    finished: asyncio.Future[ExecutionRecord] = field(init=False)
    """Done when its final status is on disk."""
    left_behind: bool = False
    """Whether it finished while it stood in the kernel's own queue, where it still is."""
    turn: Turn | None = None
    """On the kernel."""
    shown_by: Callable[[], None] | None = None
    """Shows it in a notebook."""
    watchers: set[asyncio.Event] = field(default_factory=set)
    _held: WeakValueDictionary[ExecutionId, HeldOutputs] = field(
        init=False, default_factory=WeakValueDictionary
    )
    _changes: WeakValueDictionary[tuple[int, int], OutputChanges] = field(
        init=False, default_factory=WeakValueDictionary
    )

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.accepted, self.given_up = loop.create_future(), loop.create_future()
        self.begun, self.parted = loop.create_future(), loop.create_future()
        self.finished, self.decided = loop.create_future(), loop.create_future()
        self.asked, self.failed = loop.create_future(), loop.create_future()

    @property
    def refused(self) -> bool:
        """Whether its acceptance could not be recorded, so that it never was."""
        return self.accepted.done() and self.accepted.exception() is not None

    @property
    def may_run(self) -> bool:
        """Whether people let it run."""
        return self.run is not None or self.permitted(self)

    @property
    def is_paused(self) -> bool:
        """Whether it was not sent yet, and waits since all agents are paused."""
        return self.run is None and self.pausing() is not None

    @property
    def asks(self) -> bool:
        """Whether it waits for a person to let it run."""
        return self.status == "awaiting_approval"

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to know as soon as its outputs change."""
        return bool(self.watchers) or self.place is not None

    @property
    def is_behind(self) -> bool:
        """Whether it stands in the kernel's own queue, behind what somebody else runs."""
        return self.run is not None and self.run.is_behind and not self.run.has_begun

    @property
    def waiting_for(self) -> WaitingFor | None:
        """Behind whom it waits; None if it does not."""
        if self.finished.done():
            return None
        if self.asks:
            since = None if self.approval is None else self.approval.asked_at
            return WaitingFor(who="approval", agent=None, execution_id=None, since=since)
        pausing = self.pausing() if self.run is None else None
        return pausing or (None if self.ahead is None else self.ahead())

    def asks_for(self, request: InputRequest | None, told: Input | None) -> None:
        """Take note of what its code asks for; None that it goes on."""
        self.request, self.input = request, told
        self.status = "running" if request is None else "awaiting_input"
        if request is not None:
            settle(self.asked)
            self.asked = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        """Take note that something of ours failed that should have ended it."""
        if not self.failed.done():
            self.failed.set_result(error)

    async def unless_failed(self, done: asyncio.Future[Any]) -> None:
        """Wait for something, and raise what it raised, or what has failed instead."""
        await first_of(done, self.failed)
        if not done.done():
            raise self.failed.result()
        done.result()

    def changes(self, version: int) -> tuple[int, OutputChanges]:
        """Return the version of its outputs, and how they changed since `version`.

        Who asks the same while another still holds the answer gets that, not a copy of its texts.
        """
        if self.started_at is None or self.run is None or self.held_by is None:
            return version, OutputChanges()
        now, changes = self.held_by.connection.changes(self.run, version)
        return now, self._changes.setdefault((version, now), OutputChanges(changes))

    def outputs(self) -> list[Output]:
        """Return its outputs so far."""
        if self.started_at is None or self.run is None or self.held_by is None:
            return []
        outputs = HeldOutputs(self.held_by.connection.outputs(self.run))
        return outputs.in_one_copy(self.id, self._held)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever it, or its outputs, changed."""
        event = asyncio.Event()
        self.watchers.add(event)
        if self.run is not None:
            self.run.changed = self.tell
        try:
            yield event
        finally:
            self.watchers.discard(event)

    def tell(self) -> None:
        """Tell that it changed to whoever shows it or watches."""
        if self.shown_by is not None and not self.finished.done():
            self.shown_by()
        self.wake()

    def wake(self) -> None:
        """Wake whoever watches."""
        for event in self.watchers:
            event.set()

    @property
    def evaluated(self) -> Mapping[str, str]:
        """Those of its expressions that may be evaluated: none if it had to ask.

        Who approved it was shown the source, and approved nothing else.
        """
        return self.expressions if self.approval is None else {}

    def acceptance(self) -> tuple[Accepted, list[Payload]]:
        """Return the journal entry of its acceptance, and the payloads that it names."""
        source = Payload.of(self.source.encode())
        values = Payload.of(msgspec.json.encode(self.expressions)) if self.expressions else None
        entry = Accepted(
            at=self.accepted_at,
            by=self.by,
            execution_id=self.id,
            seq=self.seq,
            source=source.digest,
            timeout=self.timeout,
            queue_timeout=self.queue_timeout,
            max_output_bytes=self.max_output_bytes,
            init=self.init,
            idempotency_key=self.idempotency_key,
            body_sha256=self.body_sha256,
            placement=self.placement,
            revises=self.revises,
            values=None if values is None else values.digest,
            step=self.step,
        )
        return entry, [source] if values is None else [source, values]

    def verdict(self, ended: Ended) -> tuple[Status, str | None]:
        """Return the final status of a run that ended, and the reason to tell.

        A timeout that was passed stays one, also when the code swallowed the interrupt and came to
        an end of its own. An interrupt that came too late to change anything is not told.
        """
        if self.ending is not None and not (
            self.ending[0] == "interrupted" and ended.status == "ok"
        ):
            return self.ending
        if ended.aborted:
            return "cancelled", NOT_RUN
        owned = self.held_by is None or self.held_by.owned
        if not owned and ended.error is not None and ended.error.ename == "KeyboardInterrupt":
            return "interrupted", INTERRUPTED_BY_SOMEBODY
        return "kernel_died" if ended.status == "abandoned" else ended.status, ended.reason

    def standing(self) -> ExecutionRecord:
        """Return what is known of it now, but for its outputs."""
        if self.finished.done():  # else it would have a final status without what belongs to that
            return replace(self.finished.result(), outputs=[])
        return replace(self.record([]), waiting_for=self.waiting_for)

    def record(self, outputs: list[Output]) -> ExecutionRecord:
        """Return what is known of it so far; from any thread."""
        return ExecutionRecord(
            id=self.id,
            session_id=self.session_id,
            seq=self.seq,
            init=self.init,
            status=self.status,
            reason=None,
            source=self.source,
            agent=self.agent,
            username=self.username,
            token=self.token,
            timeout=self.timeout,
            kernel=self.kernel,
            execution_count=None,
            outputs=outputs,
            error=None,
            values=None,
            accepted_at=self.accepted_at,
            started_at=self.started_at,
            finished_at=None,
            duration=None,
            outputs_complete=True,
            omitted=Omitted(),
            interrupt_ignored=self.interrupt_ignored,
            waiting_for=None,
            document=None,
            input=self.input if self.status == "awaiting_input" else None,
            step=self.step,
            approval=self.approval,
            revises=self.revises,
            chain=self.head(),
        )
