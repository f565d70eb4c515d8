"""What holds for all agent sessions of a server: what they must ask for, and whether they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast, get_args

import msgspec

from ..errors import Paused
from ..models import Pause, Target, WaitingFor
from ..records import By, timestamp
from ..types import ApprovalMode, TargetKind

_STRICTNESS: Final = get_args(ApprovalMode)


class Policy(Protocol):
    """What people have to approve."""

    def mode(self, kind: TargetKind) -> ApprovalMode:
        """Return what sessions with this kind of target must ask for."""

    def forced_mode(self, kind: TargetKind) -> ApprovalMode | None:
        """Return what the operator forces for this kind of target; None for nothing."""


class Permit(Protocol):
    """What lets a session run code: of an agent token it may end, or not reach a notebook now."""

    @property
    def approval(self) -> ApprovalMode | None:
        """What a person has to approve; None is what the policy says."""

    def refusal(self, path: str | None) -> str | None:
        """Say why nothing more may be sent to the kernel; None if it may.

        Parameters
        ----------
        path
            Contents path of the session's notebook now; None if its target is none.
        """

    async def look(self) -> None:
        """Take note of what other servers and Jupyter know before that is asked."""


class Unlimited:
    """Of a session that a person's own credential has opened: it always may."""

    approval: ApprovalMode | None = None

    def refusal(self, path: str | None) -> str | None:
        """Return None."""

    async def look(self) -> None:
        """Do nothing."""


class Rules:
    """The approval policy, for how long something may ask, and the pause of all agents.

    Parameters
    ----------
    approval_timeout
        Seconds after which what asks is rejected.
    """

    def __init__(self, policy: Policy, approval_timeout: float) -> None:
        self.policy = policy
        self.approval_timeout = approval_timeout
        self.paused: Pause | None = None
        self._resumed: asyncio.Future[None] | None = None

    def mode(self, target: Target, of_token: ApprovalMode | None) -> ApprovalMode:
        """Return what a session with this target must ask for.

        Parameters
        ----------
        of_token
            What the agent token says with which it was opened: that counts instead of the policy,
            but it cannot ask for less than is forced.
        """
        kind = cast(TargetKind, target.__struct_config__.tag)
        if of_token is None:
            return self.policy.mode(kind)
        forced = self.policy.forced_mode(kind) or "none"
        return max(of_token, forced, key=_STRICTNESS.index)

    @property
    def pausing(self) -> WaitingFor | None:
        """What all wait for while agents are paused."""
        if self.paused is None:
            return None
        return WaitingFor(who="pause", agent=None, execution_id=None, since=self.paused.at)

    def check_not_paused(self, what: str) -> None:
        """Raise Paused while all agents are paused.

        Parameters
        ----------
        what
            What an agent is about to do, as the beginning of a sentence.
        """
        pausing = self.pausing
        if pausing is not None:
            raise Paused(
                f"{what} has to wait: the user has paused all agents. Try again when they go on.",
                waiting_for=msgspec.to_builtins(pausing),
            )

    def pause(self, by: By) -> None:
        """Send nothing more to kernels."""
        self.paused = Pause(by=by.named, at=timestamp())
        self._resumed = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """Go on."""
        self.paused = None
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def until_resumed(self) -> asyncio.Future[None]:
        """Return what is done when agents go on that are paused."""
        assert self._resumed is not None
        return self._resumed


class QueueTime:
    """Counts the seconds that an execution waits for its turn, while they count.

    Parameters
    ----------
    seconds
        How long it may wait; None for any time.
    over
        Called when they are over.
    """

    def __init__(self, seconds: float | None, over: Callable[[], None]) -> None:
        self._left = seconds
        self._over = over
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def run(self, counts: bool = True) -> None:
        """Count from now on, or do not."""
        if counts and self._timer is None and self._left is not None:
            self._timer = self._loop.call_later(self._left, self._over)
        elif not counts and self._timer is not None:
            assert self._left is not None
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Count no more."""
        self.run(False)
        self._left = None
