"""The interface to a kernel: channels that carry messages over any transport.

Code that uses it does not depend on ZMQ. ZMQ sockets are one implementation (`zmq_channels.py`), a
WebSocket to a gateway is the other (`gateway/channels.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

from ..types import RestartReason
from .messages import Message

Channel = Literal["shell", "control", "stdin"]
"""Where a message is sent. Source: messaging spec, *Introduction*."""


class KernelDeath(NamedTuple):
    """How one life of a kernel ended."""

    reason: RestartReason
    message: str


class NotSent(Exception):
    """There is no kernel to receive a message."""


class MessageReceiver(Protocol):
    """Receives what a kernel sends. All calls come from the channels' thread."""

    @property
    def largest_message(self) -> int:
        """How many bytes of a message from IOPub may be held, unless it is a stream's text.

        Of a larger one, the content is not decoded: the message is unread and has its size.
        """

    @property
    def is_full(self) -> bool:
        """Whether no more output is wanted for a moment. Channels that can, let the kernel wait."""

    def iopub_message(self, message: Message) -> None:
        """Handle a message from IOPub."""

    def shell_message(self, message: Message) -> None:
        """Handle a reply, also one from the control channel."""

    def stdin_message(self, message: Message) -> None:
        """Handle an input request that belongs to one of our requests."""

    def channels_ended(self, death: KernelDeath | None = None) -> None:
        """Note that the kernel has disconnected. All its messages were delivered before.

        Parameters
        ----------
        death
            How it ended; None if the channels cannot tell.
        """

    def messages_missing(self, reason: str) -> None:
        """Note that messages of the kernel are lost, for the reason in this sentence."""

    def reconnected(self) -> None:
        """Note that messages come again after some are lost."""

    def all_read(self) -> float | None:
        """Note that all available messages were read.

        Returns
        -------
        Seconds until the next call if no message arrives before; None for no such call.
        """


class KernelChannels(Protocol):
    """The channels of one life of a kernel, and the thread that serves them.

    IOPub and shell are open from the beginning. Control opens with the first message sent there.
    """

    @property
    def session(self) -> str:
        """Our session id in the headers of all messages that we send here."""

    @property
    def key(self) -> bytes | None:
        """The key that signs messages. It is also in the connection file."""

    def start(self) -> None:
        """Start the thread."""

    def stop(self) -> None:
        """End the thread after the commands given so far, and close the channels. Blocks."""

    def call(self, command: Callable[[], None]) -> None:
        """Run `command` in the thread, in the order of the calls. Call from any thread."""

    def open_stdin(self) -> None:
        """Make the kernel send input requests of our code to us. Call from the channels' thread.

        An input request that the kernel sends before we are connected is lost, and the kernel would
        wait for ever. So this waits for the connection, with a time limit.
        """

    def send(
        self,
        channel: Channel,
        msg_type: str,
        content: dict[str, Any],
        *,
        msg_id: str,
        subshell_id: str | None = None,
    ) -> None:
        """Send a message; only from the channels' thread.

        Parameters
        ----------
        subshell_id
            The subshell that handles the message; None for the kernel's main shell.

        Raises
        ------
        NotSent
        """


OpenChannels = Callable[[MessageReceiver], KernelChannels]
"""Opens the channels of one kernel for a receiver."""
