"""The interface to a kernel: channels that carry messages over any transport.

Above it, nothing knows ZMQ. ZMQ sockets are one implementation (`zmq_channels.py`); a WebSocket to
a gateway can be another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from .messages import Message

Channel = Literal["shell", "control", "stdin"]
"""Where a message is sent. Source: messaging spec, *Introduction*."""


class NotSent(Exception):
    """There is no kernel to receive a message."""


class MessageReceiver(Protocol):
    """Receives what a kernel sends. All calls come from the channels' thread."""

    def iopub_message(self, message: Message) -> None:
        """Handle a message from IOPub."""

    def shell_message(self, message: Message) -> None:
        """Handle a reply, also one from the control channel."""

    def stdin_message(self, message: Message) -> None:
        """Handle an input request that belongs to one of our requests."""

    def channels_ended(self) -> None:
        """Note that the kernel has disconnected. All its messages were delivered before."""

    def all_read(self) -> float | None:
        """Note that all available messages were read.

        Returns
        -------
        Seconds after which to be called again though nothing came; None for not at all.
        """


class KernelChannels(Protocol):
    """The channels of one kernel, in one life of it, and the thread that serves them.

    IOPub and shell are open from the beginning, control when something is sent there first.
    """

    @property
    def session(self) -> str:
        """Our id in the headers of all that is sent here."""

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

        What it asks while we are not connected is lost, and it would wait for ever. So this waits,
        within bounds, until we are.
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
            Of the subshell that is to answer; None for the kernel's main shell.

        Raises
        ------
        NotSent
        """


OpenChannels = Callable[[MessageReceiver], KernelChannels]
"""Opens the channels of one kernel for a receiver."""
