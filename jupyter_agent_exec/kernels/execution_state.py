"""What is known of a kernel on one connection: whether it is busy or idle, and with whose request.

A kernel publishes ``busy`` and ``idle`` for each request, with that request as parent. Those of
requests on the control channel and in subshells come in between those of a running cell, so one
idle does not make the kernel idle: it is idle when no request is left. A subscription to IOPub
takes effect some time after it was made, so the state is known only once an answer came there too.

`KernelLink` is what all parts of a connection share: this state, the channels, and the way from the
channels' thread to the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ..tasks import call_on_loop, settle
from ..text.redaction import Redaction, Redactor
from ..types import KernelState
from .channels import KernelChannels
from .messages import Header, Message

MOST_OVER: Final = 100
"""How many requests are remembered as over: their busy may come after their reply."""


class ActiveRequest(NamedTuple):
    """A request that keeps a kernel busy."""

    msg_id: str
    """Empty if unknown, for example if the request began before we subscribed."""
    since: datetime | None
    """When the kernel began with it; None if that was before we subscribed."""
    ours: bool


class IdleState(NamedTuple):
    """A kernel that has nothing to do."""

    since: float
    """When it became idle, on the monotonic clock."""
    after_ours: bool
    """Whether the last request that it handled was ours."""


class KernelActivity:
    """Tracks the requests that a kernel handles.

    Fed in one thread; its attributes may be read in any.

    Parameters
    ----------
    session
        Our session id in the messaging protocol. Requests with another one are foreign.
    found
        The state in which we found a kernel that others use. The kernel counts as busy or starting
        until `known` is called. None for a kernel that was started only for us.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        session: str,
        found: KernelState | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._clock = clock
        self._work: dict[str, ActiveRequest] = {}
        self._before: ActiveRequest | None = None
        self._stale: set[str] = set()
        self._over: deque[str] = deque(maxlen=MOST_OVER)
        self._is_known = found is None
        self.execution_state: KernelState = "starting"
        self.foreign: ActiveRequest | None = None
        """The request of others that has kept it busy for longest."""
        self.has_ours = False
        """Whether a request of ours keeps it busy."""
        self.quiet: IdleState | None = None
        """Set while it is idle."""
        self.latest_request = Header()
        """The request to run code, from any client, that it handles or handled last."""
        self.has_executed = found == "busy"
        """Whether any code may have run in it."""
        if found == "busy":
            self._before = ActiveRequest("", None, ours=False)
            self._settle(after_ours=False)

    def take(self, state: object, parent: Header) -> bool:
        """Apply a `status` message.

        Returns
        -------
        Whether its state has changed, or whether a request of ours keeps it busy.
        """
        ours = parent.session == self._session
        if parent.msg_type == "execute_request":
            self.latest_request = parent
        if state == "busy" and parent.msg_id not in self._over:
            self.has_executed |= parent.msg_type == "execute_request"
            self._work[parent.msg_id] = ActiveRequest(parent.msg_id, datetime.now(UTC), ours)
        elif state == "idle":
            self._work.pop(parent.msg_id, None)
        elif state == "starting":
            self._work.clear()
            return self._settle(after_ours=False, starting=True)
        else:
            return False
        return self._settle(after_ours=ours)

    def done(self, msg_id: str) -> bool:
        """Wait no more for the idle of our request, which is over; return as `take` does.

        The reply proves that, in a kernel that does not tell when it is idle.
        """
        self._work.pop(msg_id, None)
        self._over.append(msg_id)
        return self._settle(after_ours=True)

    def overhear(self, parent: Header) -> None:
        """Learn from an output's parent header which request runs, if that is unknown."""
        if self._before is not None and not self._before.msg_id and parent.session:
            self._before = ActiveRequest(parent.msg_id, None, ours=False)
            self._settle(after_ours=False)

    def missed(self, *, others_may_run: bool) -> None:
        """Handle that messages were lost.

        Parameters
        ----------
        others_may_run
            Whether to assume that others keep the kernel busy until it answers.
        """
        self._stale = set(self._work)
        if others_may_run:
            self._before = self._before or ActiveRequest("", None, ours=False)
        self._settle(after_ours=False)

    def known(self) -> bool:
        """Trust the messages from now on; return whether the state has changed."""
        self._is_known, self._before = True, None
        for msg_id in self._stale:  # the kernel has answered a later request
            self._work.pop(msg_id, None)
        self._stale = set()
        return self._settle(after_ours=False)

    def _settle(self, *, after_ours: bool, starting: bool = False) -> bool:
        foreign = [work for work in self._work.values() if not work.ours]
        self.foreign = self._before or (foreign[0] if foreign else None)
        has_ours = len(foreign) < len(self._work)
        state: KernelState
        if self._work or self._before is not None:
            state = "busy"
        elif starting or not self._is_known:
            state = "starting"
        else:
            state = "idle"
        if state != "idle":
            self.quiet = None
        elif self.quiet is None:
            self.quiet = IdleState(self._clock(), after_ours)
        changed = (state, has_ours) != (self.execution_state, self.has_ours)
        self.execution_state, self.has_ours = state, has_ours
        return changed


HELLO: Final = "hello"
"""The id of our first `kernel_info_request`."""

AGAIN_DELAY: Final = 0.05
"""Seconds after an answer until the request is sent again, if nothing was heard on IOPub; doubled
each time."""


class Greeting:
    """One kernel's answers to `kernel_info_request`.

    Parameters
    ----------
    is_shared
        Whether others use the kernel. Then not every IOPub message completes the greeting, because
        it may belong to a request whose beginning was missed.
    """

    def __init__(self, *, is_shared: bool, msg_id: str = HELLO) -> None:
        self.msg_id = msg_id
        self.kernel_info: dict[str, Any] = {}
        """Content of the last `kernel_info_reply`."""
        self.is_done = False
        self._is_shared = is_shared
        self._is_heard = False
        self._again_at: float | None = None
        self._delay = AGAIN_DELAY

    def anew(self) -> Greeting:
        """Return the next greeting of a kernel that is known already."""
        greeting = Greeting(is_shared=True, msg_id=f"{self.msg_id}-again")
        greeting.kernel_info = self.kernel_info
        return greeting

    def hear(self, message: Message, *, ours: bool) -> bool:
        """Handle an IOPub message; return whether it completes the greeting."""
        if self._is_heard:
            return False
        self._is_heard = not self._is_shared or (
            ours
            and message.parent.msg_id == self.msg_id
            and message.content.get("execution_state") == "idle"
        )
        return self._is_greeted()

    def answer(self, content: dict[str, Any], now: float) -> bool:
        """Handle a `kernel_info_reply`; return whether it completes the greeting."""
        self.kernel_info = content
        if self._is_shared and not self._is_heard:
            self._again_at = now + self._delay
            self._delay *= 2
        return self._is_greeted()

    def again_at(self) -> float | None:
        """Return when to send the request again, if nothing is heard before."""
        return None if self.is_done else self._again_at

    def asked(self) -> None:
        """Note that the request was sent."""
        self._again_at = None

    def _is_greeted(self) -> bool:
        is_new = bool(self.kernel_info) and self._is_heard and not self.is_done
        self.is_done = self.is_done or is_new
        return is_new


T = TypeVar("T")


class Listeners(Generic[T]):
    """Callables that are called one after the other; from any thread."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[T], None], ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is a listener."""
        return bool(self._listeners)

    def __call__(self, event: T) -> None:
        """Call all listeners."""
        for listener in self._listeners:
            listener(event)

    def add(self, listener: Callable[[T], None]) -> None:
        """Add a listener; only from one thread."""
        self._listeners += (listener,)

    def remove(self, listener: Callable[[T], None]) -> None:
        """Remove a listener, if it is there; only from one thread."""
        self._listeners = tuple(other for other in self._listeners if other != listener)


class KernelLink:
    """The link to one kernel in one incarnation.

    Parameters
    ----------
    channels
        The channels of the kernel, not started yet.
    found
        Jupyter's execution state of a kernel that others use; None if it was started only for us.
    redactor
        Replaces secrets in all that the kernel sends.
    """

    def __init__(
        self, channels: KernelChannels, *, found: KernelState | None, redactor: Redactor
    ) -> None:
        self.channels = channels
        self.redactor = redactor
        self.activity = KernelActivity(channels.session, found)
        """What keeps the kernel busy."""
        self.greeting = Greeting(is_shared=found is not None)
        self.on_state: Callable[[KernelState], None] | None = None
        """Called on the loop with the kernel's execution state, whenever that changed."""
        self._loop = asyncio.get_running_loop()
        self.disconnected: asyncio.Future[None] = self._loop.create_future()
        """Done when the kernel has disconnected."""
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def kernel_info(self) -> dict[str, Any]:
        """Content of the kernel's `kernel_info_reply`; empty before it has answered."""
        return self.greeting.kernel_info

    @property
    def execution_state(self) -> KernelState:
        """The kernel's state, whether it is busy with our requests or with others'."""
        return self.activity.execution_state

    async def free(self) -> None:
        """Wait until none of our requests keeps the kernel busy, or it has disconnected."""
        while self.activity.has_ours and not self.disconnected.done():
            changed = self._loop.create_future()
            self._waiting.append(changed)
            await asyncio.wait({changed, self.disconnected}, return_when=asyncio.FIRST_COMPLETED)

    def lost(self) -> None:
        """Mark the kernel as ended. A process that it forked may keep the connection open."""
        settle(self.disconnected)

    def _tell_state(self, state: KernelState) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(None)
        if self.on_state is not None:
            self.on_state(state)

    # -- in the channels' thread -------------------------------------------------------------------

    def tell_state(self) -> None:
        """Report the kernel's current state to the loop."""
        call_on_loop(self._loop, self._tell_state, self.activity.execution_state)

    def redacted(self, reply: Message) -> dict[str, Any]:
        """Return the content of a reply without secrets, which are not counted."""
        if not (reply.may_have_token or self.redactor.is_configured):
            return reply.content
        return Redaction(self.redactor).content(reply.content)

    def on_loop(self, call: Callable[..., None], *args: Any) -> None:
        """Schedule a call on the loop, unless it is closed."""
        call_on_loop(self._loop, call, *args)
