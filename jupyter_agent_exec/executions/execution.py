"""An execution from its acceptance until it is recorded as finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ..journal.blobs import TextSpill
from ..journal.fold import unfinished
from ..journal.reader import HeldOutputs
from ..journal.session_journal import SessionJournal, without_secrets
from ..kernels.execute_request import ExecuteRequest, InputRequest
from ..kernels.kernel import Kernel
from ..kernels.kernel_queue import Requester, Turn
from ..kernels.trials.trial import Trial
from ..models import (
    Approval,
    ExecutionKernel,
    Input,
    NotebookTarget,
    OutputChange,
    Placement,
    Preview,
    Session,
    StepOf,
    WaitingFor,
    derive,
)
from ..records import Accepted, ExecutionRecord, Payload, Rejected
from ..tasks import call_later_apart, settle
from ..text.redaction import Redactor
from ..types import ApprovalMode, ExecutionId, Output, SessionId, Status
from .rules import Rules
from .spec import ExecutionSpec
from .state import Ending, LiveState


class QueueTime:
    """A timer for an execution's queue timeout; it can be paused.

    Parameters
    ----------
    seconds
        How long the execution may wait for its turn.
    elapsed
        Called when this time is over.
    """

    def __init__(self, seconds: float, elapsed: Callable[[], None]) -> None:
        self._left: float | None = seconds
        self._elapsed = elapsed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def run(self, counts: bool) -> None:
        """Start or pause the timer."""
        if counts and self._timer is None and self._left is not None:
            self._timer = call_later_apart(self._left, self._elapsed)
        elif not counts and self._timer is not None:
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Stop the timer; it cannot start again."""
        self.run(False)
        self._left = None


class OutputChanges(list[OutputChange]):
    """Output changes; one list can be sent to several clients."""


@dataclass(eq=False, slots=True, kw_only=True)
class LiveExecution:
    """An execution that has no final status on disk yet.

    Use it on the event loop. The kernel's drain thread reads its state when the run has ended.
    """

    spec: ExecutionSpec
    id: ExecutionId
    seq: int
    session: Session
    """Its session as it was opened; not updated."""
    journal: SessionJournal
    rules: Rules
    mode: ApprovalMode
    """The approval that it needs, by the policy at its acceptance."""
    edits_cell: bool
    """Whether it is a proposed edit of the cell that it runs. Then it needs its own approval."""
    accepted_at: str
    step: StepOf | None = None
    """Its position among the steps of its request."""
    state: LiveState = field(init=False)
    """Changed by `become` on the event loop; any thread may read it."""
    preview: Preview | None = None
    """What a trial of it showed; None if nobody was asked."""
    decision: Rejected | None = None
    """A rejection to write together with its end."""
    decision_payloads: list[Payload] = field(default_factory=list)
    """What the decision names of the preview."""
    queue_time: QueueTime | None = None
    kernel: ExecutionKernel | None = None
    started_at: str | None = None
    held_by: Kernel | None = None
    """The kernel that it was sent to."""
    run: ExecuteRequest | None = None
    trial: Trial | None = None
    """Runs it, if it is a trial."""
    request: InputRequest | None = None
    """The input that its code waits for."""
    spill: TextSpill | None = None
    """Stores the complete text if the outputs are capped."""
    ahead: Callable[[], WaitingFor | None] | None = None
    """Returns what it waits for; None when it no longer waits."""
    published_waiting_for: WaitingFor | None = None
    """The `waiting_for` that the observers saw last."""
    accepted: asyncio.Future[None] = field(init=False)
    """Done when the acceptance is on disk; HistoryUnavailable if it could not be written."""
    decided: asyncio.Future[None] = field(init=False)
    """Done when a user has approved it; replaced for each approval request."""
    withdrawn: asyncio.Future[None] = field(init=False)
    """Done when it is cancelled while it waits for its turn."""
    input_requested: asyncio.Future[None] = field(init=False)
    """Done when its code waits for input; replaced each time."""
    begun: asyncio.Future[None] = field(init=False)
    """Done when the kernel has started it."""
    parted: asyncio.Future[None] = field(init=False)
    """Done when the session no longer holds the kernel that it was sent to."""
    finished: asyncio.Future[ExecutionRecord] = field(init=False)
    """Done when its final status is on disk."""
    ended: asyncio.Future[None] = field(init=False)
    """Done when it has finished, or with the error that prevents this."""
    later_steps: Sequence[LiveExecution] = ()
    """The steps that do not run if it fails."""
    left_behind: bool = False
    """Whether it was recorded as finished while it is still in the kernel's own queue."""
    turn: Turn | None = None
    """Its turn on the kernel."""
    timer: asyncio.TimerHandle | None = None
    """Interrupts it after its timeout."""
    watchers: set[asyncio.Event] = field(default_factory=set)
    _held: WeakValueDictionary[ExecutionId, HeldOutputs] = field(
        init=False, default_factory=WeakValueDictionary
    )
    _changes: WeakValueDictionary[tuple[int, int], OutputChanges] = field(
        init=False, default_factory=WeakValueDictionary
    )

    _shown_source: tuple[str, str, int] | None = field(init=False, default=None)
    _acceptance: tuple[Accepted, list[Payload]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.state = LiveState(source=self.spec.source)
        self.accepted, self.withdrawn = loop.create_future(), loop.create_future()
        self.begun, self.parted = loop.create_future(), loop.create_future()
        self.finished, self.decided = loop.create_future(), loop.create_future()
        self.input_requested, self.ended = loop.create_future(), loop.create_future()

    @property
    def session_id(self) -> SessionId:
        """The id of its session."""
        return self.session.id

    @property
    def source(self) -> str:
        """The source to run: the one in the request, or the one that a user approved instead."""
        return self.state.source

    @property
    def shown_source(self) -> tuple[str, int]:
        """The source as it is recorded and shown, and how many secrets were replaced in it."""
        shown, source = self._shown_source, self.source
        if shown is None or shown[0] != source:
            shown = self._shown_source = (source, *self.journal.redactor.text(source))
        return shown[1:]

    @property
    def status(self) -> Status:
        """Its current status."""
        return self.state.status

    @property
    def approval(self) -> Approval | None:
        """The state of its approval, if it needs one."""
        return self.state.approval

    @property
    def input(self) -> Input | None:
        """The input that its code waits for."""
        return self.state.input

    @property
    def refused(self) -> bool:
        """Whether its acceptance could not be recorded; then the execution does not exist."""
        return self.accepted.done() and self.accepted.exception() is not None

    def cannot_be_interrupted(self) -> bool:
        """Return whether it has finished, or the session has released its kernel."""
        return self.finished.done() or self.parted.done()

    @property
    def asker(self) -> Requester:
        """The owner of its turn on a kernel."""
        return Requester(self.session.agent.name, self.id)

    @property
    def is_paused(self) -> bool:
        """Whether it has not been sent yet, and all agents are paused."""
        return self.run is None and self.rules.paused is not None

    @property
    def is_proposed(self) -> bool:
        """Whether nothing of it may be in a notebook yet.

        Until it is sent, a user may still reject it, it may need another approval in a new kernel,
        or it may end without having run. Agents may also be paused.
        """
        is_sent = self.state.phase not in ("waiting", "dispatching")
        return not is_sent and (self.mode != "none" or self.is_paused)

    @property
    def awaits_approval(self) -> bool:
        """Whether it waits for a user's approval."""
        return self.status == "awaiting_approval"

    @property
    def is_watched(self) -> bool:
        """Whether anything has to be notified at once when its outputs change."""
        return bool(self.watchers) or self.spec.place is not None

    @property
    def is_behind(self) -> bool:
        """Whether it waits in the kernel's own queue, behind other clients' requests."""
        return self.run is not None and self.run.is_behind and not self.run.has_begun

    @property
    def waiting_for(self) -> WaitingFor | None:
        """What it waits for; None if it does not wait."""
        if self.finished.done():
            return None
        if self.awaits_approval:
            since = None if self.approval is None else self.approval.asked_at
            return WaitingFor(who="approval", agent=None, execution_id=None, since=since)
        pausing = self.rules.pausing if self.run is None else None
        return pausing or (None if self.ahead is None else self.ahead())

    def become(self, state: LiveState) -> None:
        """Take another state, unless it has finished."""
        if self.state.phase == "finished":
            return
        self.state = state
        if state.is_withdrawn:
            settle(self.withdrawn)
        if state.approval is not None and state.approval.status == "approved":
            settle(self.decided)

    def withdraw(self, status: Status, reason: str) -> None:
        """End it, unless it is already being sent to the kernel."""
        self.become(self.state.withdrawn(Ending(status, reason)))

    def set_input(self, request: InputRequest | None, input: Input | None) -> None:
        """Set the input that its code waits for; None if the code continues."""
        self.request = request
        self.become(self.state.waits_for(input))
        if request is not None:
            settle(self.input_requested)
            self.input_requested = asyncio.get_running_loop().create_future()

    def changes(self, version: int) -> tuple[int, OutputChanges]:
        """Return the version of its outputs, and how they changed since `version`.

        Callers with the same `version` share one object, so that its text is in memory once.
        """
        if self.started_at is None or self.run is None or self.held_by is None:
            return version, OutputChanges()
        now, changes = self.held_by.connection.requests.changes(self.run, version)
        return now, self._changes.setdefault((version, now), OutputChanges(changes))

    def outputs(self) -> list[Output]:
        """Return its outputs so far."""
        if self.started_at is None or self.run is None or self.held_by is None:
            return []
        outputs = HeldOutputs(self.held_by.connection.requests.outputs(self.run))
        return outputs.in_one_copy(self.id, self._held)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """Provide an event that is set whenever the execution or its outputs change."""
        event = asyncio.Event()
        self.watchers.add(event)
        if self.run is not None:
            self.run.is_watched = True
        try:
            yield event
        finally:
            self.watchers.discard(event)

    def wake(self) -> None:
        """Set the event of each watcher."""
        for event in self.watchers:
            event.set()

    @property
    def evaluated(self) -> Mapping[str, str]:
        """The expressions to evaluate; empty if it needed approval.

        The user who approved it saw only the source, not the expressions.
        """
        return self.spec.values if self.approval is None else {}

    def acceptance(self) -> tuple[Accepted, list[Payload]]:
        """Return the journal entry of its acceptance, and the payloads that it names."""
        if self._acceptance is None:
            self._acceptance = self._new_acceptance()
        return self._acceptance

    def _new_acceptance(self) -> tuple[Accepted, list[Payload]]:
        spec = self.spec
        source = Payload.of(self.shown_source[0].encode(), is_redacted=True)
        values = Payload.of(msgspec.json.encode(spec.values)) if spec.values else None
        placement: Placement | Literal["end", "none"] | None = spec.placement
        if isinstance(placement, Placement):  # not the hash: the source could be guessed from it
            placement = replace(placement, source_sha256=None)
        if spec.init or spec.trial or not isinstance(self.session.target, NotebookTarget):
            placement = None
        body = None if spec.body_sha256 is None else Payload.unkept(spec.body_sha256.encode())
        entry = derive(
            Accepted,
            spec,
            at=self.accepted_at,
            execution_id=self.id,
            seq=self.seq,
            source=source.digest,
            body_sha256=None if body is None else body.digest,
            placement=placement,
            values=None if values is None else values.digest,
            step=self.step,
        )
        payloads = [each for each in (source, values, body) if each is not None]
        return without_secrets(self.journal.redactor, entry), payloads

    def standing(self) -> ExecutionRecord:
        """Return its record as of now, without outputs."""
        if self.finished.done():  # only this record has all fields that a final status needs
            return replace(self.finished.result(), outputs=[])
        return replace(self.record([]), waiting_for=self.waiting_for)

    def record(self, outputs: list[Output]) -> ExecutionRecord:
        """Return its record so far, with these outputs; can be called from any thread."""
        state, journal = self.state, self.journal
        accepted, _ = self.acceptance()
        source, redacted = self.shown_source
        approval = state.approval
        record = unfinished(
            accepted,
            self.session,
            status=state.status,
            source=source,
            kernel=self.kernel,
            started_at=self.started_at,
            chain=journal.file.signed_head,
        )
        return replace(
            record,
            outputs=outputs,
            redacted=redacted,
            interrupt_ignored=state.interrupt_ignored,
            input=state.input if state.status == "awaiting_input" else None,
            approval=None if approval is None else _shown(approval, journal.redactor),
        )


def _shown(approval: Approval, redactor: Redactor) -> Approval:
    """Return an approval without secrets."""
    texts = {name: getattr(approval, name) for name in ("asked_source", "before", "reason")}
    return replace(
        approval,
        **{name: text and redactor.text(text)[0] for name, text in texts.items()},
        also=[redactor.struct(each) for each in approval.also],
    )


async def until_finished(
    executions: Collection[LiveExecution], wait: float, seen_at: str | None = None
) -> None:
    """Wait until all executions have finished, or the code of one waits for input.

    Parameters
    ----------
    wait
        Maximum seconds to wait.
    seen_at
        The `asked_at` of the input request that the caller has seen already.
    """
    waits_for_input = any(e.input is not None and e.input.asked_at != seen_at for e in executions)
    if not wait or waits_for_input:
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    requests = [execution.input_requested for execution in executions]
    for execution in executions:
        if not execution.finished.done():
            left = max(0, until - loop.time())
            ends: set[asyncio.Future[Any]] = {execution.finished, *requests}
            await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not execution.finished.done():
                return
