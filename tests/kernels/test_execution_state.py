"""What keeps a kernel busy, told from its status messages."""

from __future__ import annotations

from jupyter_agent_exec.kernels.execution_state import IdleState, KernelActivity
from jupyter_agent_exec.kernels.messages import Header

OURS, THEIRS = "our session", "a tab"


def parent(msg_id: str, session: str = THEIRS, msg_type: str = "execute_request") -> Header:
    return Header(msg_id=msg_id, msg_type=msg_type, session=session)


def test_a_kernel_is_idle_when_no_request_is_left() -> None:
    busy = KernelActivity(OURS)
    assert busy.execution_state == "starting"
    assert busy.take("busy", parent("cell"))
    assert not busy.take("busy", parent("control", msg_type="usage_request"))
    assert not busy.take("idle", parent("control"))
    assert busy.execution_state == "busy"
    assert busy.quiet is None
    assert busy.take("idle", parent("cell"))
    assert busy.execution_state == "idle"


def test_it_is_told_what_of_others_has_gone_on_for_longest() -> None:
    busy = KernelActivity(OURS)
    busy.take("busy", parent("x_1", OURS))
    assert busy.foreign is None
    assert busy.has_ours
    busy.take("busy", parent("cell"))
    busy.take("busy", parent("another"))
    busy.take("idle", parent("x_1", OURS))
    assert not busy.has_ours
    assert busy.foreign is not None
    assert busy.foreign.msg_id == "cell"
    assert busy.foreign.since is not None


def test_it_is_known_since_when_it_is_idle_and_after_whom() -> None:
    times = iter([1.0, 2.0])
    busy = KernelActivity(OURS, clock=lambda: next(times))
    busy.take("busy", parent("cell"))
    busy.take("idle", parent("cell"))
    assert busy.quiet == IdleState(1.0, after_ours=False)
    busy.take("idle", parent("cell"))  # told twice
    assert busy.quiet == IdleState(1.0, after_ours=False)
    busy.take("busy", parent("x_1", OURS))
    busy.take("idle", parent("x_1", OURS))
    assert busy.quiet == IdleState(2.0, after_ours=True)


def test_a_kernel_that_was_found_busy_is_so_until_more_is_known() -> None:
    busy = KernelActivity(OURS, "busy")
    assert busy.execution_state == "busy"
    assert busy.foreign is not None
    assert busy.foreign.since is None
    busy.overhear(parent("cell"))
    assert busy.foreign.msg_id == "cell"
    assert not busy.take("idle", parent("something"))
    assert busy.known()
    assert busy.execution_state == "idle"
    assert busy.foreign is None


def test_an_idle_kernel_counts_only_once_it_answers() -> None:
    busy = KernelActivity(OURS, "idle")
    busy.overhear(parent("cell"))
    assert busy.execution_state == "starting"
    assert busy.foreign is None
    assert busy.take("busy", parent("hello", OURS))
    assert busy.take("idle", parent("hello", OURS))
    assert busy.execution_state == "starting"
    assert busy.quiet is None
    assert busy.known()
    assert busy.execution_state == "idle"


def test_only_code_that_ran_counts_as_run_in_it() -> None:
    for who in OURS, THEIRS:
        busy = KernelActivity(OURS, "idle")
        busy.take("busy", parent("hello", who, msg_type="kernel_info_request"))
        busy.take("idle", parent("hello", who))
        assert not busy.has_executed
        busy.take("busy", parent("cell", who))
        busy.take("idle", parent("cell", who))
        assert busy.has_executed
    assert KernelActivity(OURS, "busy").has_executed


def test_it_is_told_when_our_part_is_done_though_others_go_on() -> None:
    busy = KernelActivity(OURS)
    busy.take("busy", parent("x_1", OURS))
    busy.take("busy", parent("in a subshell"))
    assert busy.take("idle", parent("x_1", OURS))
    assert (busy.execution_state, busy.has_ours) == ("busy", False)
    busy.take("busy", parent("x_2", OURS))
    assert busy.done("x_2")
    assert not busy.has_ours


def test_a_new_life_forgets_what_the_last_one_was_at() -> None:
    busy = KernelActivity(OURS)
    busy.take("busy", parent("cell"))
    assert busy.take("starting", Header())
    assert (busy.execution_state, busy.foreign) == ("starting", None)
    assert not busy.take("frobnicating", Header())
