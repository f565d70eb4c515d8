"""What keeps a kernel busy: which requests, and whose. No I/O.

A kernel tells ``busy`` and ``idle`` for each request, with that request as parent. Requests on the
control channel and through subshells are told in between those of a running cell, so one idle does
not make the kernel idle: it is when no request is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from ..types import ExecutionState
from .messages import Header


class Work(NamedTuple):
    """A request that keeps a kernel busy."""

    msg_id: str
    """Empty if it was not told, as for what ran before anybody listened."""
    msg_type: str
    username: str
    """As its sender calls itself in the message's header; empty if not told."""
    session: str
    """Its sender's id, in the messaging protocol's sense; empty if not told."""
    since: datetime | None
    """When the kernel took it up; None if that was before anybody listened."""
    ours: bool


class Quiet(NamedTuple):
    """A kernel that has nothing to do."""

    since: float
    """On the monotonic clock."""
    after_ours: bool
    """Whether the last thing that it did was ours."""


class Busy:
    """Keeps count of the requests that a kernel is at.

    Fed in one thread; its attributes may be read in any.

    Parameters
    ----------
    session
        Our id in the messaging protocol's sense: with it a request is ours, else foreign.
    found
        The state in which a kernel was found that others use. It counts as busy or starting then
        until `known` is called. None for one that was started for us alone.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        session: str,
        found: ExecutionState | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._clock = clock
        self._work: dict[str, Work] = {}
        self._before: Work | None = None
        self._is_known = found is None
        self.execution_state: ExecutionState = "starting"
        self.foreign: Work | None = None
        """What has kept it busy for longest that is not ours."""
        self.has_ours = False
        """Whether something of ours keeps it busy."""
        self.quiet: Quiet | None = None
        """Set while it is idle."""
        self.has_executed = found == "busy"
        """Whether anybody may have run anything in it."""
        if found == "busy":
            self._before = Work("", "", "", "", None, ours=False)
            self._settle(after_ours=False)

    def take(self, state: object, parent: Header) -> bool:
        """Take what a kernel tells of its state.

        Returns
        -------
        Whether its state is another now, or whether something of ours keeps it busy.
        """
        ours = parent.session == self._session
        if state == "busy":
            self.has_executed |= parent.msg_type == "execute_request"
            now = datetime.now(UTC)
            self._work[parent.msg_id] = Work(
                parent.msg_id, parent.msg_type, parent.username, parent.session, now, ours
            )
        elif state == "idle":
            self._work.pop(parent.msg_id, None)
        elif state == "starting":
            self._work.clear()
            return self._settle(after_ours=False, starting=True)
        else:
            return False
        return self._settle(after_ours=ours)

    def done(self, msg_id: str) -> bool:
        """Wait no more for the idle of a request of ours; return as `take` does."""
        self._work.pop(msg_id, None)
        return self._settle(after_ours=True)

    def overhear(self, parent: Header) -> None:
        """Take note of whose output is heard, if it is not known yet what the kernel is at."""
        if self._before is not None and not self._before.msg_id and parent.session:
            told = parent.msg_id, parent.msg_type, parent.username, parent.session
            self._before = Work(*told, None, ours=False)
            self._settle(after_ours=False)

    def known(self) -> bool:
        """Trust what was told since one listened; return whether the state is another now."""
        self._is_known, self._before = True, None
        return self._settle(after_ours=False)

    def _settle(self, *, after_ours: bool, starting: bool = False) -> bool:
        foreign = [work for work in self._work.values() if not work.ours]
        self.foreign = self._before or (foreign[0] if foreign else None)
        has_ours = len(foreign) < len(self._work)
        state: ExecutionState
        if self._work or self._before is not None:
            state = "busy"
        elif starting or not self._is_known:
            state = "starting"
        else:
            state = "idle"
        if state != "idle":
            self.quiet = None
        elif self.quiet is None:
            self.quiet = Quiet(self._clock(), after_ours)
        changed = (state, has_ours) != (self.execution_state, self.has_ours)
        self.execution_state, self.has_ours = state, has_ours
        return changed
