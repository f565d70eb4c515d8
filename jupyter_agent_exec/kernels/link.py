"""The link to one kernel: what all parts of a connection to it share.

These are its channels, the way from their thread to the event loop, and what is known of the
kernel: what it says about itself, what keeps it busy, and whether it has disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..tasks import call_on_loop, settle
from ..text.redaction import Redaction, Redactor
from ..types import KernelState
from .channels import KernelChannels
from .execution_state import Greeting, KernelActivity
from .messages import Message


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
