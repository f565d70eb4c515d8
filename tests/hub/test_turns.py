"""When the hub's service forwards the calls of a user who makes many."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.hub_service.user_servers import CALLS_A_SECOND, CALLS_AT_ONCE, Turns


def test_many_calls_of_one_user_wait_and_nobody_elses_do() -> None:
    turns = Turns()
    at_once = [turns.delay("ada", 1000.0) for _ in range(round(CALLS_AT_ONCE))]
    assert set(at_once) == {0.0}
    assert turns.delay("ada", 1000.0) == pytest.approx(1 / CALLS_A_SECOND)
    assert turns.delay("ada", 1000.0) == pytest.approx(2 / CALLS_A_SECOND)
    assert turns.delay("bob", 1000.0) == 0.0


def test_after_a_pause_calls_are_forwarded_at_once_again() -> None:
    turns = Turns()
    for _ in range(round(2 * CALLS_AT_ONCE)):
        turns.delay("ada", 1000.0)
    later = 1000.0 + 2 * CALLS_AT_ONCE / CALLS_A_SECOND
    assert [turns.delay("ada", later) for _ in range(round(CALLS_AT_ONCE))][-1] == 0.0
    assert turns.delay("ada", later) > 0.0
