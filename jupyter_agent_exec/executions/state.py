"""The state of an execution, as a pure state machine.

It does no I/O, and uses no clock, event loop, journal, or kernel.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..kernels.execute_request import ExecuteOutcome
from ..models import Approval, Input
from ..records import Approved, Rejected
from ..types import Status, is_made_up

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
    "run such code itself, not as a trial."
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
    """The parts of an execution that can change until it is recorded as finished.

    Each method returns the state after an event.
    """

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

    # -- approval ----------------------------------------------------------------------------------

    @property
    def is_asked(self) -> bool:
        """Whether a user has to decide about it."""
        return self.approval is not None and self.approval.status == "asked"

    def asked(self, approval: Approval) -> LiveState:
        """Have a user approve it."""
        if self.is_withdrawn:
            approval = replace(approval, status="withdrawn")
        return replace(self, approval=approval, status="awaiting_approval")

    def approved(self, source: str, entry: Approved) -> LiveState:
        """Let it run: a user approved it, with a source that may differ from the request's."""
        if not self.is_asked:
            return self  # it was withdrawn meanwhile
        assert self.approval is not None
        requested = self.requested_source or self.source
        approval = entry.decide(self.approval, requested, source)
        return replace(
            self,
            source=source,
            status="queued",
            approval=approval,
            approved_incarnation=approval.incarnation,
            requested_source=requested,
        )

    def refused(self, entry: Rejected) -> LiveState:
        """End it: a user rejected it."""
        if not self.is_asked:
            return self
        assert self.approval is not None
        words = "gave no reason; ask before you try it again."
        if entry.reason:
            words = f"says: {entry.reason}"
        who = "the user" if is_made_up(entry.by.named) else entry.by.named
        why = f"It was not run: {who} rejected it and {words}"
        rejected = replace(self, approval=entry.decide(self.approval))
        return rejected.withdrawn(Ending("rejected", why))

    def expired(self, asked: Approval, timeout: float) -> LiveState:
        """End it: nobody decided in time, unless that was about an earlier request."""
        if not self.is_asked or asked is not self.approval:
            return self
        why = f"Nobody decided within {timeout:g} seconds. It was not run."
        approval = replace(asked, status="expired")
        return replace(self, approval=approval).withdrawn(Ending("rejected", why))

    # -- on its way --------------------------------------------------------------------------------

    def withdrawn(self, ending: Ending) -> LiveState:
        """End it, unless it is already being sent."""
        if self.phase != "waiting" or self.is_withdrawn:
            return self
        approval = self.approval
        if approval is not None and self.is_asked:
            approval = replace(approval, status="withdrawn")
        return replace(self, ending=ending, is_withdrawn=True, approval=approval)

    def sent(self, *, starts: bool) -> LiveState:
        """Note that it was sent; a kernel that only the session uses starts it at once."""
        return self.begun() if starts else replace(self, phase="sent")

    def begun(self) -> LiveState:
        """Note that the kernel has started it."""
        return replace(self, phase="begun", status="running")

    def waits_for(self, input: Input | None) -> LiveState:
        """Note that its code waits for input; None if the code continues."""
        return replace(self, input=input, status="running" if input is None else "awaiting_input")

    def stopped(self, ending: Ending) -> LiveState:
        """Note how it is going to end, unless that is known already."""
        return replace(self, ending=self.ending or ending)

    def failed(self, *, is_sent: bool) -> LiveState:
        """End it, as a bug in this server prevents its end."""
        waiting = replace(self, phase="waiting", is_withdrawn=False)
        ending = BROKEN_OFF if is_sent else NOT_RUN
        return replace(waiting.withdrawn(NOT_RUN), phase=self.phase, ending=ending)


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
