"""The state of an execution: no loop, no kernel, no disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.executions.state import (
    BROKEN_OFF,
    CELL_BEFORE_FAILED,
    INTERRUPTED_BY_SOMEBODY,
    INTERRUPTED_TO_END,
    NOT_RUN,
    Ending,
    LiveState,
    final_status,
)
from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome
from jupyter_agent_exec.models import Approval, ExecutionError, Input
from jupyter_agent_exec.records import Approved, By, Rejected
from jupyter_agent_exec.types import Digest, ExecutionId

AT = "2026-11-21T09:00:00.000Z"
STOPPED = Ending("interrupted", "Interrupted by ada.")
APPROVAL = Approval(
    status="asked", asked_at=AT, expires_at=AT, kernel_id="k", incarnation=2, before=None
)
ID = ExecutionId("x_01M8HJB3AMTZE7YD2H3VDB3A43")
ADA = By(kind="person", username="ada")
APPROVED = Approved(at=AT, by=ADA, execution_id=ID, source=Digest("0" * 64))
WAITING = LiveState(source="1")
DISPATCHING = replace(WAITING, phase="dispatching")
RUNNING = DISPATCHING.sent(starts=True)
BEHIND_A_CELL = DISPATCHING.sent(starts=False)
ASKED = WAITING.asked(APPROVAL)


def rejected(reason: str | None) -> Rejected:
    return Rejected(at=AT, by=ADA, execution_id=ID, reason=reason)


def test_in_its_own_kernel_it_runs_once_it_is_sent():
    assert (WAITING.status, DISPATCHING.status) == ("queued", "queued")
    assert (RUNNING.phase, RUNNING.status) == ("begun", "running")


def test_in_a_shared_kernel_it_runs_once_the_kernel_starts_it():
    assert BEHIND_A_CELL.status == "queued"
    assert BEHIND_A_CELL.begun() == RUNNING


def test_code_that_waits_for_input_says_so_until_it_has_it():
    asked = Input(prompt="? ", password=False, asked_at=AT)
    state = RUNNING.waits_for(asked)
    assert (state.status, state.input) == ("awaiting_input", asked)
    assert state.waits_for(None) == RUNNING


# -- withdrawing -----------------------------------------------------------------------------------


def test_what_waits_can_be_withdrawn_once():
    cancelled = Ending("cancelled", "first")
    state = WAITING.withdrawn(cancelled)
    assert (state.ending, state.is_withdrawn) == (cancelled, True)
    assert state.withdrawn(Ending("timed_out", "second")) == state


@pytest.mark.parametrize("state", [DISPATCHING, RUNNING, BEHIND_A_CELL])
def test_what_is_on_its_way_to_the_kernel_cannot_be_withdrawn(state: LiveState):
    assert state.withdrawn(Ending("cancelled", "no")) == state


# -- approval --------------------------------------------------------------------------------------


def test_approval_binds_the_source_and_the_kernels_incarnation():
    assert ASKED.status == "awaiting_approval"
    state = ASKED.approved("2", APPROVED)
    assert (state.status, state.source, state.approved_incarnation) == ("queued", "2", 2)
    assert state.approval is not None
    assert (state.approval.status, state.approval.asked_source) == ("approved", "1")


def test_approval_again_with_the_first_source_names_no_other():
    state = ASKED.approved("2", APPROVED).asked(APPROVAL).approved("1", APPROVED)
    assert state.approval is not None
    assert (state.source, state.approval.asked_source) == ("1", None)


@pytest.mark.parametrize(
    ("reason", "told"), [("no", "rejected it and says: no"), (None, "gave no reason")]
)
def test_a_refusal_ends_it_with_the_users_reason(reason: str | None, told: str):
    state = ASKED.refused(rejected(reason))
    assert state.is_withdrawn
    assert state.ending is not None
    assert state.ending.status == "rejected"
    assert told in state.ending.reason
    assert state.approval is not None
    assert state.approval.status == "rejected"


def test_only_the_question_that_is_asked_now_expires():
    again = replace(APPROVAL, asked_at="later", incarnation=3)
    state = ASKED.asked(again)
    assert state.expired(APPROVAL, 10) == state
    ended = state.expired(again, 10)
    assert ended.is_withdrawn
    assert ended.ending == Ending("rejected", "Nobody decided within 10 seconds. It was not run.")


@pytest.mark.parametrize(
    "decided",
    [
        methodcaller("approved", "1", APPROVED),
        methodcaller("refused", rejected("no")),
        methodcaller("expired", APPROVAL, 10),
    ],
)
def test_what_was_withdrawn_is_not_decided_any_more(decided: Callable[[LiveState], LiveState]):
    state = ASKED.withdrawn(STOPPED)
    assert state.approval is not None
    assert state.approval.status == "withdrawn"
    assert decided(state) == state


def test_what_was_withdrawn_while_the_question_was_written_does_not_ask():
    state = WAITING.withdrawn(STOPPED).asked(APPROVAL)
    assert state.approval is not None
    assert state.approval.status == "withdrawn"


# -- the end ---------------------------------------------------------------------------------------


def test_the_first_who_ends_it_gives_the_reason():
    timed_out = Ending("timed_out", "5 s")
    assert RUNNING.stopped(timed_out).stopped(STOPPED).ending == timed_out


def test_only_a_sent_execution_is_lost_by_a_bug():
    state = ASKED.failed(is_sent=False)
    assert (state.ending, state.is_withdrawn) == (NOT_RUN, True)
    assert state.approval is not None
    assert state.approval.status == "withdrawn"
    assert RUNNING.failed(is_sent=True).ending == BROKEN_OFF


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
