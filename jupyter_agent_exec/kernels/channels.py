"""The seam to a kernel: channels that carry messages, whatever they are made of.

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
    """No kernel is there to take a message."""


class MessageReceiver(Protocol):
    """Takes what a kernel sends. All calls come from the channels' thread."""

    def iopub_message(self, message: Message) -> None:
        """Take a message from IOPub."""

    def shell_message(self, message: Message) -> None:
        """Take a reply, also one from the control channel."""

    def stdin_message(self, message: Message) -> None:
        """Take a request for input, as an answer to one of our own requests."""

    def channels_ended(self) -> None:
        """Take note that the kernel's end is gone; all it had sent was delivered before."""

    def all_read(self) -> float | None:
        """Take note that what could be read was read.

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
        """The key that signs messages, which who can read the connection file knows too."""

    def start(self) -> None:
        """Start the thread."""

    def stop(self) -> None:
        """End the thread after the commands given so far, and close the channels. Blocks."""

    def call(self, command: Callable[[], None]) -> None:
        """Have the thread run `command`; from any thread, in the order of the calls."""

    def open_stdin(self) -> None:
        """Have the kernel reach us when code of ours asks for input; from the channels' thread.

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
"""Opens the channels of one kernel for who receives what it sends."""
