"""When a kernel that others use is known."""

from __future__ import annotations

from jupyter_agent_exec.kernels.execution_state import AGAIN_DELAY, HELLO, Greeting
from jupyter_agent_exec.kernels.messages import Header, Message

INFO = {"language_info": {"name": "python"}}


def status(state: str, parent: str) -> Message:
    return Message(Header(msg_type="status"), Header(msg_id=parent), {"execution_state": state})


def test_a_kernel_of_ones_own_is_known_with_anything_on_both_channels() -> None:
    greeting = Greeting(is_shared=False)
    assert not greeting.hear(status("starting", ""), ours=False)
    assert greeting.answer(INFO, 0.0)
    assert greeting.kernel_info == INFO
    assert greeting.again_at() is None
    assert not greeting.answer(INFO, 0.0)


def test_a_shared_kernel_is_known_when_our_own_request_was_heard_to_end() -> None:
    greeting = Greeting(is_shared=True)
    assert not greeting.answer(INFO, 0.0)
    assert not greeting.hear(status("idle", "a cell"), ours=False)
    assert not greeting.hear(status("busy", HELLO), ours=True)
    assert not greeting.hear(status("idle", HELLO), ours=False)  # of another connection
    assert greeting.hear(status("idle", HELLO), ours=True)
    assert not greeting.hear(status("idle", HELLO), ours=True)


def test_the_answer_may_come_after_its_end_was_heard() -> None:
    greeting = Greeting(is_shared=True)
    assert not greeting.hear(status("idle", HELLO), ours=True)
    assert greeting.again_at() is None
    assert greeting.answer(INFO, 0.0)


def test_it_is_asked_again_only_after_an_answer_that_was_not_heard() -> None:
    greeting = Greeting(is_shared=True)
    greeting.asked()
    assert greeting.again_at() is None
    greeting.answer(INFO, 1.0)
    assert greeting.again_at() == 1.0 + AGAIN_DELAY
    greeting.asked()
    assert greeting.again_at() is None
    greeting.answer(INFO, 2.0)
    assert greeting.again_at() == 2.0 + 2 * AGAIN_DELAY
    greeting.hear(status("idle", HELLO), ours=True)
    assert greeting.again_at() is None
