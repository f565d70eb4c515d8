"""Decides whose turn it is on a kernel that agents and users share.

Fairness, in one place:

- Agents: first come, first served. A session requests one turn at a time, so two busy sessions
  alternate.
- Users come first. A turn is granted only when no agent holds it and the kernel is idle, and after
  others' code only when it has been idle for `SETTLE` seconds. The cells of a *Run All* follow each
  other within a millisecond or two, so no agent gets between them.
- Agents do not wait without limit: after `PATIENCE` seconds at the head of the queue, the shortest
  idle is enough. The request then waits in the kernel's own queue, behind the cells that users have
  queued so far, and before those that they send later.
- A request that a running cell waits for runs beside that cell, ahead of all others. Otherwise,
  neither would ever end.

This module only decides. It gets the kernel's states, the clock and the timer from its caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ..models import WaitingFor
from ..records import timestamp
from ..tasks import settle
from ..types import ExecutionId, KernelState
from .execution_state import IdleState, KernelActivity, Listeners

SETTLE: Final = 0.02
"""Seconds that a kernel must be idle after others' code."""

SETTLE_AFTER_OURS: Final = 0.005
"""The same after an agent's own code: a user's queued cell starts at once after it."""

PATIENCE: Final = 10.0
"""Seconds at the head of the queue after which the shortest idle is enough."""


MOST_TRIALS: Final = 2
"""How many trials of one kernel run at a time."""


class Requester(NamedTuple):
    """The owner of a turn, as shown to those who wait behind it."""

    agent: str
    """The agent's name."""
    execution_id: ExecutionId | None


class Turn(asyncio.Future[None]):
    """A future that is done when the turn is granted; cancelled if the kernel ends before."""

    def __init__(self, asker: Requester | None) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.asker = asker
        self.first_at: float | None = None
        """When it reached the head of the queue, on the scheduler's clock."""
        self._granted_at: datetime | None = None

    @property
    def granted_at(self) -> str | None:
        """When it was granted; None if it was not yet."""
        return None if self._granted_at is None else timestamp(self._granted_at)

    def grant(self) -> None:
        """Grant the turn."""
        self._granted_at = datetime.now(UTC)
        self.set_result(None)


def delay_before(
    quiet: IdleState | None, *, now: float, first_at: float, patience: float = PATIENCE
) -> float | None:
    """Return how long the head of the queue still has to wait.

    Parameters
    ----------
    quiet
        The kernel's idle state; None while it is busy.
    now, first_at
        The current time, and the time when the turn reached the head; both on the same clock.
    patience
        Seconds after which it need not wait for the kernel to settle.

    Returns
    -------
    Seconds, 0 to grant the turn now; None if it has to wait for the kernel to become idle.
    """
    if quiet is None:
        return None
    if now - first_at >= patience:
        return 0.0
    settle = SETTLE_AFTER_OURS if quiet.after_ours else SETTLE
    return max(0.0, quiet.since + settle - now)


class KernelQueue:
    """The queue of one kernel, which runs one execution at a time.

    Parameters
    ----------
    kernel
        What keeps a kernel busy that users use too. None: an agent's own kernel, whose turn is
        granted as soon as no agent holds it.
    scheduler
        None: the running loop.
    patience
        Seconds at the head of the queue after which the shortest idle is enough.
    """

    def __init__(
        self,
        kernel: KernelActivity | None = None,
        scheduler: asyncio.AbstractEventLoop | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self.on_change: Listeners[None] = Listeners()
        """Called on the loop when the reason for waiting may have changed."""
        self._kernel = kernel
        self._patience = patience
        self._scheduler = scheduler
        self._holder: Turn | None = None
        self._waiting: deque[Turn] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._trials: set[ExecutionId] = set()
        self._trial_ended: list[asyncio.Future[None]] = []

    @property
    def is_closed(self) -> bool:
        """Whether the kernel has ended, so that it grants no more turns."""
        return self._closed

    @property
    def free(self) -> bool:
        """Whether the next turn would probably be granted at once."""
        if self._holder is not None or self._waiting or self._closed:
            return False
        return self._kernel is None or self._delay(None) == 0

    def ask(self, asker: Requester | None = None) -> Turn:
        """Join the queue. The returned turn is done at once if the kernel is free."""
        turn = Turn(asker)
        if self._closed:
            turn.cancel()
        else:
            self._waiting.append(turn)
            self._look()
        return turn

    def leave(self, turn: Turn) -> None:
        """Release the turn, or stop waiting for it."""
        if turn is self._holder:
            self._holder = None
        elif turn in self._waiting:
            self._waiting.remove(turn)
        self._look()
        self.on_change(None)

    @property
    def has_trial_room(self) -> bool:
        """Whether another trial may begin."""
        return len(self._trials) < MOST_TRIALS

    def begin_trial(self, id: ExecutionId) -> None:
        """Count a trial. It runs beside the kernel, so it keeps no turn."""
        self._trials.add(id)

    def end_trial(self, id: ExecutionId) -> None:
        """Let another trial begin."""
        self._trials.discard(id)
        ended, self._trial_ended = self._trial_ended, []
        for future in ended:
            settle(future)

    def until_trial_ends(self) -> asyncio.Future[None]:
        """Return a future that is done when a trial of this kernel has ended."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._trial_ended.append(future)
        return future

    def kernel_is(self, execution_state: KernelState) -> None:
        """Apply the kernel's new execution state.

        After `patience`, an idle grants the turn even if it is over by now.
        """
        self._look()
        if execution_state == "idle" and self._holder is None and self._waiting:
            first_at = self._waiting[0].first_at
            if first_at is not None and self._clock.time() - first_at >= self._patience:
                self._grant()
        self.on_change(None)

    def ahead_of(self, turn: Turn) -> WaitingFor | None:
        """Return what a turn waits for; None if it does not wait."""
        if turn.done():
            return None
        kernel = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
        return self.at_work or kernel

    @property
    def is_taken(self) -> bool:
        """Whether an agent has the turn, or waits for it."""
        return self._holder is not None or bool(self._waiting)

    @property
    def at_work(self) -> WaitingFor | None:
        """The owner of the turn; without one, the owner of the code that runs without a turn."""
        if self._holder is None:
            return self.person
        asker = self._holder.asker
        return WaitingFor(
            who="agent",
            agent=None if asker is None else asker.agent,
            execution_id=None if asker is None else asker.execution_id,
            since=self._holder.granted_at,
        )

    @property
    def person(self) -> WaitingFor | None:
        """The owner of code that runs without a turn; None if there is none.

        A turn's owner whose code has not begun waits behind it in the kernel's own queue. The code
        may be an agent's that ignored an interrupt and still runs.
        """
        foreign = None if self._kernel is None else self._kernel.foreign
        if foreign is None:
            return None
        since = None if foreign.since is None else timestamp(foreign.since)
        if foreign.msg_id.startswith("x_"):
            execution_id = ExecutionId(foreign.msg_id)
            return WaitingFor(who="agent", agent=None, execution_id=execution_id, since=since)
        return WaitingFor(who="person", agent=None, execution_id=None, since=since)

    def close(self) -> None:
        """Cancel all waiting turns, and grant no more, because the kernel has ended."""
        self._closed = True
        self._stop_timer()
        while self._waiting:
            self._waiting.popleft().cancel()

    @property
    def _clock(self) -> asyncio.AbstractEventLoop:
        return self._scheduler or asyncio.get_running_loop()

    def _look(self) -> None:
        """Grant the turn to the head of the queue, or check again when that may be possible."""
        self._stop_timer()
        while self._waiting and self._waiting[0].cancelled():  # by its owner
            self._waiting.popleft()
        if self._holder is not None or not self._waiting:
            return
        first = self._waiting[0]
        if self._kernel is None:
            self._grant()
            return
        if first.first_at is None:
            first.first_at = self._clock.time()
        delay = self._delay(first.first_at)
        if delay == 0:
            self._grant()
        elif delay is not None:
            self._timer = self._clock.call_later(delay, self._look)

    def _delay(self, first_at: float | None) -> float | None:
        assert self._kernel is not None
        now = self._clock.time()
        return delay_before(
            self._kernel.quiet,
            now=now,
            first_at=now if first_at is None else first_at,
            patience=self._patience,
        )

    def _grant(self) -> None:
        self._stop_timer()
        self._holder = self._waiting.popleft()
        self._holder.grant()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
