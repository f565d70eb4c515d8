"""The state of an execution, as a pure state machine.

`transition` takes a state and an event, and returns the next state and the effects that the caller
has to perform. It does no I/O, and uses no clock, event loop, journal, or kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..kernels.execute_request import ExecuteOutcome
from ..models import Approval, Input
from ..records import By
from ..types import Digest, Status, is_made_up

Phase: TypeAlias = Literal["waiting", "dispatching", "sent", "begun", "finished"]
"""The phase of an execution.

- `waiting`: it waits for approval or for its turn.
- `dispatching`: its dispatch is being recorded and sent.
- `sent`: it is in the kernel's own queue.
- `begun`: the kernel has started it.
- `finished`: its final status is on disk.
"""

InterruptReason: TypeAlias = Literal["asked", "cancelled", "timed_out", "closing"]

INTERRUPTED_BY_SOMEBODY: Final = (
    "Somebody interrupted the kernel, most likely a person in JupyterLab."
)
INTERRUPTED_TO_END: Final = "A user restarted the kernel or shut it down. Its variables are gone."
CELL_BEFORE_FAILED: Final = (
    "The kernel ran nothing of it, since a cell that somebody had queued before it failed."
)


MAY_HANG: Final = (
    "A copy of a kernel has one of its threads, so code that waits for another hangs in a trial: "
    "run such code itself, with trial=false."
)


class Ending(NamedTuple):
    """How an execution is going to end."""

    status: Status
    reason: str


NOT_RUN: Final = Ending(
    "cancelled",
    "It was not run: something failed in the server that should not have; its log says what.",
)
BROKEN_OFF: Final = Ending(
    "lost",
    "Something failed in the server that should not have, and its end is not known; the server's "
    "log says what. Look what it did before you run it again.",
)


class LiveState(Struct, frozen=True, kw_only=True):
    """The parts of an execution that can change until it is recorded as finished."""

    source: str
    """The source to run: the one in the request, or the one that a user approved instead."""
    phase: Phase = "waiting"
    status: Status = "queued"
    approval: Approval | None = None
    """The state of its approval, if it needs one."""
    approved_incarnation: int | None = None
    """The incarnation of the kernel for which it was approved."""
    requested_source: str | None = None
    """The source of the request, once a user has approved something."""
    input: Input | None = None
    """The input that its code waits for."""
    ending: Ending | None = None
    """How it is going to end: somebody interrupted or cancelled it, or its kernel is gone."""
    is_withdrawn: bool = False
    """Whether it must not be sent any more."""
    interrupt_ignored: bool = False


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A user has to approve it."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """A user approved it, with a source that may differ from the request's."""

    source: str
    at: str
    by: str
    preview: Digest | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRefused:
    """A user rejected it."""

    at: str
    by: str
    reason: str | None
    preview: Digest | None = None


@dataclass(frozen=True, slots=True)
class ApprovalExpired:
    """Nobody decided in time about the approval that was requested."""

    approval: Approval
    timeout: float


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """It was cancelled or refused; this ends it unless it is already being sent."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class DispatchStarted:
    """Its dispatch is being recorded and sent."""


@dataclass(frozen=True, slots=True)
class DispatchFailed:
    """Its dispatch could not be recorded, so it was not sent."""


@dataclass(frozen=True, slots=True)
class Sent:
    """It was sent to the kernel; a kernel that only the session uses starts it at once."""

    starts: bool


@dataclass(frozen=True, slots=True)
class Started:
    """The kernel has started it."""


@dataclass(frozen=True, slots=True)
class InputRequested:
    """Its code waits for input; None if the code continues."""

    input: Input | None


@dataclass(frozen=True, slots=True)
class InterruptRequested:
    """Somebody interrupts it."""

    ending: Ending
    reason: InterruptReason
    by: By


@dataclass(frozen=True, slots=True)
class RunTimeElapsed:
    """Its timeout is over."""

    timeout: float
    by: By
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class QueueTimeElapsed:
    """Its queue timeout is over."""

    timeout: float
    by: By


@dataclass(frozen=True, slots=True)
class GraceElapsed:
    """It still runs after its kernel was interrupted and the grace period is over."""

    replace_kernel: bool
    """Whether to replace the kernel: the session owns it, and its limits demand it."""


@dataclass(frozen=True, slots=True)
class KernelEnded:
    """The session releases its kernel."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class ExitRequested:
    """Its code asked the kernel to exit; None if the kernel did not."""

    ending: Ending | None


@dataclass(frozen=True, slots=True)
class InternalFailure:
    """A bug in this server prevents its end."""

    is_sent: bool


@dataclass(frozen=True, slots=True)
class EndRecorded:
    """Its final status is on disk."""

    status: Status


Event: TypeAlias = (
    ApprovalRequested
    | ApprovalGiven
    | ApprovalRefused
    | ApprovalExpired
    | Withdrawn
    | DispatchStarted
    | DispatchFailed
    | Sent
    | Started
    | InputRequested
    | InterruptRequested
    | RunTimeElapsed
    | QueueTimeElapsed
    | GraceElapsed
    | KernelEnded
    | ExitRequested
    | InternalFailure
    | EndRecorded
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaveQueue:
    """Stop its wait for a turn, and record its end."""


@dataclass(frozen=True, slots=True)
class Proceed:
    """Let it wait for its turn: it is approved."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Interrupt the kernel."""

    reason: InterruptReason
    by: By
    when_started: bool
    """Whether to wait until the kernel starts it; an earlier interrupt would stop other code."""


@dataclass(frozen=True, slots=True)
class ReplaceKernel:
    """Shut the kernel down; the next execution gets a fresh one."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class AbandonRun:
    """Stop waiting for its output."""

    reason: str


Effect: TypeAlias = LeaveQueue | Proceed | Interrupt | ReplaceKernel | AbandonRun


# -- transitions -----------------------------------------------------------------------------------


def transition(state: LiveState, event: Event) -> tuple[LiveState, tuple[Effect, ...]]:
    """Return the state after an event, and the effects to perform, in order."""
    if state.phase == "finished":
        return state, ()
    match event:
        case ApprovalRequested() | ApprovalGiven() | ApprovalRefused() | ApprovalExpired():
            return _approval(state, event)
        case Withdrawn(ending):
            return _withdraw(state, ending)
        case DispatchStarted():
            return replace(state, phase="dispatching"), ()
        case DispatchFailed():
            return replace(state, phase="waiting"), ()
        case Sent(starts):
            return _started(state) if starts else (replace(state, phase="sent"), ())
        case Started():
            return _started(state)
        case InputRequested(input):
            status: Status = "running" if input is None else "awaiting_input"
            return replace(state, input=input, status=status), ()
        case InterruptRequested(ending, reason, by):
            return _interrupt(state, ending, reason, by)
        case RunTimeElapsed(timeout, by, is_trial):
            why = f"It was interrupted after its timeout of {timeout:g} seconds."
            if is_trial:
                why += f" {MAY_HANG}"
            return _interrupt(state, Ending("timed_out", why), "timed_out", by)
        case QueueTimeElapsed(timeout, by):
            ending = Ending("timed_out", f"It did not get its turn within {timeout:g} seconds.")
            if state.phase == "waiting":
                return _withdraw(state, ending)
            if state.phase == "begun":
                return state, ()
            return _interrupt(state, ending, "timed_out", by)
        case GraceElapsed(replace_kernel):
            return _ignored(state, replace_kernel)
        case KernelEnded(ending):
            return replace(state, ending=state.ending or ending), ()
        case ExitRequested(exit_ending):
            return replace(state, ending=exit_ending), ()
        case InternalFailure(is_sent):
            withdrawn, _ = _withdraw(replace(state, phase="waiting", is_withdrawn=False), NOT_RUN)
            ending = BROKEN_OFF if is_sent else NOT_RUN
            return replace(withdrawn, phase=state.phase, ending=ending), (LeaveQueue(),)
        case EndRecorded(final):
            return replace(state, phase="finished", status=final), ()


def _approval(
    state: LiveState,
    event: ApprovalRequested | ApprovalGiven | ApprovalRefused | ApprovalExpired,
) -> tuple[LiveState, tuple[Effect, ...]]:
    if isinstance(event, ApprovalRequested):
        approval = event.approval
        if state.is_withdrawn:
            approval = replace(approval, status="withdrawn")
        return replace(state, approval=approval, status="awaiting_approval"), ()
    approval_now = state.approval
    if approval_now is None or approval_now.status != "asked":
        return state, ()  # it was withdrawn meanwhile
    match event:
        case ApprovalGiven(source, at, by, preview):
            requested = state.requested_source or state.source
            approval = replace(
                approval_now,
                status="approved",
                decided_at=at,
                decided_by=by,
                asked_source=None if requested == source else requested,
                preview=preview,
            )
            approved = replace(
                state,
                source=source,
                status="queued",
                approval=approval,
                approved_incarnation=approval.incarnation,
                requested_source=requested,
            )
            return approved, (Proceed(),)
        case ApprovalRefused(at, by, reason, preview):
            approval = replace(
                approval_now,
                status="rejected",
                decided_at=at,
                decided_by=by,
                reason=reason,
                preview=preview,
            )
            words = f"says: {reason}" if reason else "gave no reason; ask before you try it again."
            who = "the user" if is_made_up(by) else by
            why = f"It was not run: {who} rejected it and {words}"
            return _withdraw(replace(state, approval=approval), Ending("rejected", why))
        case ApprovalExpired(expired, timeout):
            if expired is not approval_now:
                return state, ()  # it expired for an earlier request
            approval = replace(approval_now, status="expired")
            why = f"Nobody decided within {timeout:g} seconds. It was not run."
            return _withdraw(replace(state, approval=approval), Ending("rejected", why))


def _withdraw(state: LiveState, ending: Ending) -> tuple[LiveState, tuple[Effect, ...]]:
    if state.phase != "waiting" or state.is_withdrawn:
        return state, ()
    approval = state.approval
    if approval is not None and approval.status == "asked":
        approval = replace(approval, status="withdrawn")
    return replace(state, ending=ending, is_withdrawn=True, approval=approval), (LeaveQueue(),)


def _started(state: LiveState) -> tuple[LiveState, tuple[Effect, ...]]:
    return replace(state, phase="begun", status="running"), ()


def _interrupt(
    state: LiveState, ending: Ending, reason: InterruptReason, by: By
) -> tuple[LiveState, tuple[Effect, ...]]:
    effect = Interrupt(reason, by, when_started=state.phase != "begun")
    return replace(state, ending=state.ending or ending), (effect,)


def _ignored(state: LiveState, replace_kernel: bool) -> tuple[LiveState, tuple[Effect, ...]]:
    ignored = replace(state, interrupt_ignored=True)
    if state.ending is not None and replace_kernel:
        return ignored, (ReplaceKernel(state.ending),)
    if state.ending is not None and state.ending.status == "timed_out":
        return ignored, (AbandonRun(state.ending.reason),)
    return ignored, ()


def final_status(
    state: LiveState, ended: ExecuteOutcome, *, owned: bool, is_ending: bool
) -> tuple[Status, str | None]:
    """Return the final status of a run that has ended, and the reason that clients see.

    A timeout stays a timeout even if the code caught the interrupt and ended normally. An interrupt
    that came too late to change anything is ignored.

    Parameters
    ----------
    owned
        Whether the kernel is the session's own, so that nobody else can interrupt it.
    is_ending
        Whether somebody restarts the kernel or shuts it down, which begins with an interrupt.
    """
    ending = state.ending
    if ending is not None and not (ending.status == "interrupted" and ended.status == "ok"):
        return ending.status, ending.reason
    if ended.aborted:
        return "cancelled", CELL_BEFORE_FAILED
    if ended.error is not None and ended.error.ename == "KeyboardInterrupt":
        if is_ending:
            return "interrupted", INTERRUPTED_TO_END
        if not owned:
            return "interrupted", INTERRUPTED_BY_SOMEBODY
    return "kernel_died" if ended.status == "abandoned" else ended.status, ended.reason
