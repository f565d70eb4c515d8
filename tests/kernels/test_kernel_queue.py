"""Whose turn it is, without a kernel and without a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from jupyter_agent_exec.kernels.execution_state import ActiveRequest, IdleState, KernelActivity
from jupyter_agent_exec.kernels.kernel_queue import (
    PATIENCE,
    SETTLE,
    SETTLE_AFTER_OURS,
    KernelQueue,
    Requester,
    Turn,
    delay_before,
)
from jupyter_agent_exec.types import ExecutionId

CELL = ActiveRequest("m", None, ours=False)


class Clock:
    """A loop's time and timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self._calls: list[Call] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], Any], /) -> Call:
        call = Call(self._calls, self.now + delay, callback)
        self._calls.append(call)
        return call

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [call for call in self._calls if call.at <= end]:
            call = min(due, key=lambda it: it.at)
            self._calls.remove(call)
            self.now = max(self.now, call.at)
            call.callback()
        self.now = end


class Call:
    def __init__(self, calls: list[Call], at: float, callback: Callable[[], Any]) -> None:
        self._calls = calls
        self.at = at
        self.callback = callback

    def cancel(self) -> None:
        if self in self._calls:
            self._calls.remove(self)


class SharedKernel(KernelActivity):
    """A kernel that does what it is told, and tells its queue."""

    def __init__(self) -> None:
        super().__init__("ours")
        self.clock = Clock()
        self.quiet = IdleState(0.0, after_ours=False)
        self.turns = KernelQueue(self, self.clock)

    def begins(self) -> None:
        self.quiet, self.foreign = None, CELL
        self.turns.kernel_is("busy")

    def ends(self, *, ours: bool = False) -> None:
        self.quiet, self.foreign = IdleState(self.clock.now, after_ours=ours), None
        self.turns.kernel_is("idle")

    def runs_a_cell(self, seconds: float) -> None:
        self.begins()
        self.clock.advance(seconds)
        self.ends()


def asker(name: str) -> Requester:
    return Requester(name, ExecutionId(f"x_{name}"))


def waiting(*turns: Turn) -> bool:
    return not any(turn.done() for turn in turns)


async def test_a_kernel_of_ones_own_is_given_at_once_and_then_in_order() -> None:
    turns = KernelQueue()
    assert turns.free
    one, two, three = turns.ask(), turns.ask(), turns.ask()
    assert one.done()
    assert not turns.free
    assert waiting(two, three)
    turns.leave(one)
    assert two.done()
    assert waiting(three)
    turns.leave(three)
    turns.leave(two)
    assert turns.free


async def test_a_kernel_that_has_been_idle_is_given_at_once() -> None:
    assert SharedKernel().turns.ask().done()


async def test_a_turn_waits_for_a_cell_and_then_until_the_kernel_has_settled() -> None:
    kernel = SharedKernel()
    kernel.begins()
    turn = kernel.turns.ask()
    kernel.clock.advance(PATIENCE / 2)
    assert waiting(turn)
    kernel.ends()
    kernel.clock.advance(SETTLE * 0.9)
    assert waiting(turn)
    kernel.clock.advance(SETTLE * 0.2)
    assert turn.done()


async def test_cells_that_follow_each_other_are_not_cut_into() -> None:
    kernel = SharedKernel()
    kernel.begins()
    turn = kernel.turns.ask()
    for _ in range(20):
        kernel.runs_a_cell(0.1)
        kernel.clock.advance(SETTLE / 2)
        assert waiting(turn)
    kernel.clock.advance(SETTLE)
    assert turn.done()


async def test_after_an_agents_own_work_a_shorter_pause_is_enough() -> None:
    kernel = SharedKernel()
    kernel.turns.leave(kernel.turns.ask())
    kernel.ends(ours=True)
    turn = kernel.turns.ask()
    assert waiting(turn)
    kernel.clock.advance(SETTLE_AFTER_OURS * 1.1)
    assert turn.done()


async def test_who_has_lost_patience_takes_the_shortest_pause() -> None:
    kernel = SharedKernel()
    kernel.begins()
    turn = kernel.turns.ask()
    started = kernel.clock.now
    while kernel.clock.now < started + PATIENCE - 0.2:
        kernel.runs_a_cell(0.1)
        assert waiting(turn)
    kernel.begins()
    kernel.clock.advance(0.3)
    assert waiting(turn)
    kernel.ends()
    assert turn.done()


async def test_an_impatient_caller_counts_a_pause_that_has_ended() -> None:
    kernel = SharedKernel()
    kernel.begins()
    turn = kernel.turns.ask()
    kernel.clock.advance(PATIENCE)
    kernel.turns.kernel_is("idle")
    assert turn.done()


async def test_who_has_lost_patience_still_waits_for_another_agent_and_for_the_cell() -> None:
    kernel = SharedKernel()
    kernel.begins()
    turn = kernel.turns.ask()
    kernel.clock.advance(PATIENCE)
    kernel.turns.kernel_is("busy")
    assert waiting(turn)
    kernel.ends()
    assert turn.done()
    kernel.begins()
    second = kernel.turns.ask()
    second.first_at = 0.0
    kernel.turns.kernel_is("idle")
    assert waiting(second)


async def test_patience_counts_from_the_head_of_the_line() -> None:
    kernel = SharedKernel()
    holder = kernel.turns.ask()
    kernel.begins()
    turn = kernel.turns.ask()
    kernel.clock.advance(2 * PATIENCE)
    kernel.turns.leave(holder)
    kernel.ends()
    assert waiting(turn)
    kernel.clock.advance(SETTLE)
    assert turn.done()


async def test_two_agents_that_always_ask_alternate() -> None:
    kernel = SharedKernel()
    order = []
    turns = {name: kernel.turns.ask(asker(name)) for name in "ab"}
    for _ in range(3):
        for name in "ab":
            order.append([it for it, turn in turns.items() if turn.done()])
            holder = turns[name]
            turns[name] = kernel.turns.ask(asker(name))
            kernel.turns.leave(holder)
    assert order == [["a"], ["b"]] * 3


async def test_it_is_told_behind_whom_a_turn_waits() -> None:
    kernel = SharedKernel()
    turns = kernel.turns
    first = turns.ask(asker("one"))
    second = turns.ask(asker("two"))
    assert turns.ahead_of(first) is None
    ahead = turns.ahead_of(second)
    assert ahead is not None
    assert (ahead.who, ahead.agent, ahead.execution_id) == ("agent", "one", "x_one")
    assert ahead.since == first.granted_at
    kernel.begins()
    turns.leave(first)
    ahead = turns.ahead_of(second)
    assert ahead is not None
    assert (ahead.who, ahead.agent) == ("person", None)
    kernel.ends()
    ahead = turns.ahead_of(second)
    assert ahead is not None
    assert ahead.who == "kernel"


async def test_an_agents_work_that_was_let_go_of_is_told_as_an_agents() -> None:
    kernel = SharedKernel()
    kernel.begins()
    kernel.foreign = CELL._replace(msg_id="x_old")
    ahead = kernel.turns.ahead_of(kernel.turns.ask())
    assert ahead is not None
    assert (ahead.who, ahead.execution_id) == ("agent", "x_old")


async def test_who_stops_waiting_is_passed_over() -> None:
    turns = KernelQueue()
    holder, gone, next_ = turns.ask(), turns.ask(), turns.ask()
    gone.cancel()
    turns.leave(holder)
    assert next_.done()


async def test_those_that_wait_for_a_kernel_that_ended_are_told() -> None:
    turns = KernelQueue()
    holder, turn = turns.ask(), turns.ask()
    turns.close()
    assert turn.cancelled()
    assert turns.ask().cancelled()
    assert not turns.free
    turns.leave(holder)


def test_the_wait_is_told_from_the_pause_and_the_patience() -> None:
    quiet = IdleState(0.0, after_ours=False)
    assert delay_before(None, now=PATIENCE, first_at=0.0) is None
    assert delay_before(quiet, now=SETTLE, first_at=0.0) == 0
    assert delay_before(quiet, now=0.0, first_at=0.0) == SETTLE
    assert delay_before(quiet, now=0.0, first_at=-PATIENCE) == 0


async def test_a_turn_is_a_future_that_can_be_waited_for() -> None:
    turns = KernelQueue()
    holder, turn = turns.ask(), turns.ask()
    asyncio.get_running_loop().call_soon(turns.leave, holder)
    await asyncio.wait({turn}, timeout=10)
    assert turn.done()
