"""The state of an execution, by feeding it events: no loop, no kernel, no disk."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from jupyter_agent_exec.executions.state import (
    BROKEN_OFF,
    CELL_BEFORE_FAILED,
    INTERRUPTED_BY_SOMEBODY,
    INTERRUPTED_TO_END,
    NOT_RUN,
    AbandonRun,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRefused,
    ApprovalRequested,
    DispatchFailed,
    DispatchStarted,
    Effect,
    Ending,
    EndRecorded,
    Event,
    ExitRequested,
    GraceElapsed,
    InputRequested,
    InternalFailure,
    Interrupt,
    InterruptRequested,
    KernelEnded,
    LeaveQueue,
    LiveState,
    Proceed,
    QueueTimeElapsed,
    ReplaceKernel,
    RunTimeElapsed,
    Sent,
    Started,
    Withdrawn,
    final_status,
    transition,
)
from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome
from jupyter_agent_exec.models import Approval, ExecutionError, Input
from jupyter_agent_exec.records import SERVER, By

ADA = By(kind="person", username="ada")
AT = "2026-11-21T09:00:00.000Z"
STOPPED = Ending("interrupted", "Interrupted by ada.")
APPROVAL = Approval(
    status="asked", asked_at=AT, expires_at=AT, kernel_id="k", incarnation=2, before=None
)
TO_KERNEL = (DispatchStarted(), Sent(starts=True))
BEHIND_A_CELL = (DispatchStarted(), Sent(starts=False))


def after(*events: Event) -> tuple[LiveState, tuple[Effect, ...]]:
    """Return the state after events, and the effects of the last."""
    state = LiveState(source="1")
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = transition(state, event)
    return state, effects


def test_an_execution_waits_is_sent_runs_and_ends():
    states = [after(*TO_KERNEL[:n])[0] for n in range(3)]
    assert [(s.phase, s.status) for s in states] == [
        ("waiting", "queued"),
        ("dispatching", "queued"),
        ("begun", "running"),
    ]
    state, _ = after(*TO_KERNEL, EndRecorded("ok"))
    assert (state.phase, state.status) == ("finished", "ok")


def test_in_a_shared_kernel_it_runs_once_the_kernel_starts_it():
    assert after(*BEHIND_A_CELL)[0].status == "queued"
    assert after(*BEHIND_A_CELL, Started())[0].status == "running"


def test_code_that_waits_for_input_says_so_until_it_has_it():
    asked = Input(prompt="? ", password=False, asked_at=AT)
    state, _ = after(*TO_KERNEL, InputRequested(asked))
    assert (state.status, state.input) == ("awaiting_input", asked)
    state, _ = transition(state, InputRequested(None))
    assert (state.status, state.input) == ("running", None)


# -- withdrawing -----------------------------------------------------------------------------------


def test_what_waits_can_be_withdrawn_once():
    cancelled = Ending("cancelled", "first")
    state, effects = after(Withdrawn(cancelled))
    assert (state.ending, effects) == (cancelled, (LeaveQueue(),))
    assert transition(state, Withdrawn(Ending("timed_out", "second"))) == (state, ())


@pytest.mark.parametrize("events", [TO_KERNEL[:1], TO_KERNEL, BEHIND_A_CELL])
def test_what_is_on_its_way_to_the_kernel_cannot_be_withdrawn(events: tuple[Event, ...]):
    before, _ = after(*events)
    assert transition(before, Withdrawn(Ending("cancelled", "no"))) == (before, ())


def test_what_the_disk_refused_waits_again():
    state, _ = after(DispatchStarted(), DispatchFailed())
    assert transition(state, Withdrawn(STOPPED))[1] == (LeaveQueue(),)


# -- approval --------------------------------------------------------------------------------------


def test_approval_binds_the_source_and_the_kernels_incarnation():
    state, _ = after(ApprovalRequested(APPROVAL))
    assert state.status == "awaiting_approval"
    state, effects = transition(state, ApprovalGiven("2", AT, "ada"))
    assert effects == (Proceed(),)
    assert (state.status, state.source, state.approved_incarnation) == ("queued", "2", 2)
    assert state.approval is not None
    assert (state.approval.status, state.approval.asked_source) == ("approved", "1")


def test_approval_again_with_the_first_source_names_no_other():
    state, _ = after(
        ApprovalRequested(APPROVAL),
        ApprovalGiven("2", AT, "ada"),
        ApprovalRequested(APPROVAL),
        ApprovalGiven("1", AT, "ada"),
    )
    assert state.approval is not None
    assert (state.source, state.approval.asked_source) == ("1", None)


@pytest.mark.parametrize(
    ("reason", "told"), [("no", "rejected it and says: no"), (None, "gave no reason")]
)
def test_a_refusal_ends_it_with_the_users_reason(reason: str | None, told: str):
    state, effects = after(ApprovalRequested(APPROVAL), ApprovalRefused(AT, "ada", reason))
    assert effects == (LeaveQueue(),)
    assert state.ending is not None
    assert state.ending.status == "rejected"
    assert told in state.ending.reason
    assert state.approval is not None
    assert state.approval.status == "rejected"


def test_only_the_question_that_is_asked_now_expires():
    again = Approval(
        status="asked", asked_at="later", expires_at=AT, kernel_id="k", incarnation=3, before=None
    )
    before, _ = after(ApprovalRequested(APPROVAL), ApprovalRequested(again))
    assert transition(before, ApprovalExpired(APPROVAL, 10)) == (before, ())
    state, effects = transition(before, ApprovalExpired(again, 10))
    assert effects == (LeaveQueue(),)
    assert state.ending == Ending("rejected", "Nobody decided within 10 seconds. It was not run.")


def test_what_was_withdrawn_is_not_approved_any_more():
    before, _ = after(ApprovalRequested(APPROVAL), Withdrawn(STOPPED))
    assert before.approval is not None
    assert before.approval.status == "withdrawn"
    assert transition(before, ApprovalGiven("1", AT, "ada")) == (before, ())


def test_what_was_withdrawn_while_the_question_was_written_does_not_ask():
    state, _ = after(Withdrawn(STOPPED), ApprovalRequested(APPROVAL))
    assert state.approval is not None
    assert state.approval.status == "withdrawn"


# -- interrupts and timeouts -----------------------------------------------------------------------


def test_an_interrupt_waits_until_the_kernel_has_started_it():
    asked = InterruptRequested(STOPPED, "asked", ADA)
    _, effects = after(*BEHIND_A_CELL, asked)
    assert effects == (Interrupt("asked", ADA, when_started=True),)
    state, effects = after(*BEHIND_A_CELL, Started(), asked)
    assert effects == (Interrupt("asked", ADA, when_started=False),)
    assert state.ending == STOPPED


def test_the_first_who_interrupts_it_gives_the_reason():
    state, _ = after(
        *TO_KERNEL, RunTimeElapsed(5, SERVER), InterruptRequested(STOPPED, "asked", ADA)
    )
    assert state.ending is not None
    assert state.ending.status == "timed_out"


def test_nothing_is_interrupted_after_the_end():
    ended, _ = after(*TO_KERNEL, EndRecorded("ok"))
    assert transition(ended, RunTimeElapsed(5, SERVER)) == (ended, ())
    assert transition(ended, InterruptRequested(STOPPED, "asked", ADA)) == (ended, ())


@pytest.mark.parametrize(
    ("events", "effects"),
    [
        ((), (LeaveQueue(),)),
        (BEHIND_A_CELL, (Interrupt("timed_out", SERVER, when_started=True),)),
        (TO_KERNEL, ()),
    ],
)
def test_the_time_to_wait_counts_until_the_kernel_has_started_it(
    events: tuple[Event, ...], effects: tuple[Effect, ...]
):
    state, done = after(*events, QueueTimeElapsed(7, SERVER))
    assert done == effects
    reason = "It did not get its turn within 7 seconds."
    assert state.ending == (Ending("timed_out", reason) if effects else None)


def test_who_ignores_an_interrupt_loses_the_kernel_if_the_limits_say_so():
    interrupted = (*TO_KERNEL, InterruptRequested(STOPPED, "asked", ADA))
    state, effects = after(*interrupted, GraceElapsed(replace_kernel=True))
    assert (state.interrupt_ignored, effects) == (True, (ReplaceKernel(STOPPED),))
    state, effects = after(*interrupted, GraceElapsed(replace_kernel=False))
    assert (state.interrupt_ignored, effects) == (True, ())


def test_what_ignores_its_timeout_is_waited_for_no_longer():
    _, effects = after(*TO_KERNEL, RunTimeElapsed(5, SERVER), GraceElapsed(replace_kernel=False))
    reason = "It was interrupted after its timeout of 5 seconds."
    assert effects == (AbandonRun(reason),)


# -- the end ---------------------------------------------------------------------------------------


def test_the_end_of_the_kernel_is_the_reason_unless_there_is_one_already():
    died = KernelEnded(Ending("kernel_died", "It died."))
    assert after(*TO_KERNEL, died)[0].ending == died.ending
    interrupt = InterruptRequested(STOPPED, "asked", ADA)
    assert after(*TO_KERNEL, interrupt, died)[0].ending == STOPPED


def test_a_kernel_that_does_not_exit_after_all_is_no_reason():
    exits = ExitRequested(Ending("kernel_died", "exit"))
    assert after(*TO_KERNEL, exits)[0].ending == exits.ending
    assert after(*TO_KERNEL, exits, ExitRequested(None))[0].ending is None


def test_only_a_sent_execution_is_lost_by_a_bug():
    state, effects = after(ApprovalRequested(APPROVAL), InternalFailure(is_sent=False))
    assert (state.ending, effects) == (NOT_RUN, (LeaveQueue(),))
    assert state.approval is not None
    assert state.approval.status == "withdrawn"
    assert after(*TO_KERNEL, InternalFailure(is_sent=True))[0].ending == BROKEN_OFF


def ended(status: Any, *, ename: str | None = None, aborted: bool = False) -> ExecuteOutcome:
    error = None if ename is None else ExecutionError(ename=ename, evalue="", traceback=[])
    fields: dict[str, Any] = dict.fromkeys(ExecuteOutcome.__annotations__)
    return ExecuteOutcome(**{**fields, "status": status, "error": error, "aborted": aborted})


@pytest.mark.parametrize(
    ("ending", "run", "owned", "status"),
    [
        (None, ended("ok"), True, "ok"),
        (None, ended("error", ename="ValueError"), True, "error"),
        (None, ended("error", ename="KeyboardInterrupt"), True, "error"),
        (None, ended("error", ename="KeyboardInterrupt"), False, "interrupted"),
        (None, ended("error", aborted=True), False, "cancelled"),
        (None, ended("abandoned"), True, "kernel_died"),
        (STOPPED, ended("error", ename="KeyboardInterrupt"), True, "interrupted"),
        (STOPPED, ended("ok"), True, "ok"),
        (Ending("timed_out", "5 s"), ended("ok"), True, "timed_out"),
    ],
)
def test_the_final_status(ending: Ending | None, run: ExecuteOutcome, owned: bool, status: str):
    state = LiveState(source="1", ending=ending)
    assert final_status(state, run, owned=owned, is_ending=False)[0] == status


def test_the_reason_names_who_interrupted_or_what_failed():
    state = LiveState(source="1")
    shared = partial(final_status, state, owned=False, is_ending=False)
    assert shared(ended("error", ename="KeyboardInterrupt"))[1] == INTERRUPTED_BY_SOMEBODY
    assert shared(ended("error", aborted=True))[1] == CELL_BEFORE_FAILED


@pytest.mark.parametrize("owned", [True, False])
def test_an_interrupt_with_which_a_restart_begins_is_no_error_of_the_code(owned: bool):
    run = ended("error", ename="KeyboardInterrupt")
    state = LiveState(source="1")
    shown = final_status(state, run, owned=owned, is_ending=True)
    assert shown == ("interrupted", INTERRUPTED_TO_END)
