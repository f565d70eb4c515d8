"""IOPub of one kernel on a socket of our own, which holds little of what the kernel sends.

A ZMQ socket limits how many messages it holds, not their bytes, and holds each of them whole. This
one speaks ZMQ's protocol as a subscriber. It reads a large message in chunks, and leaves what it
has not read yet to the network. When the network's buffers are full, the kernel waits.

Source: ZMTP 3.0 (rfc.zeromq.org/spec/23) with the mechanism NULL. Encrypted sockets are ZMQ's own.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from .messages import (
    DELIMITER,
    LARGE_BYTES,
    TOLD_BYTES,
    Codec,
    Frame,
    Header,
    LargeContent,
    Message,
    MessageNumbers,
)

BROKEN: Final = "The connection to the kernel broke, and messages of it may be missing."

DROPPED: Final = (
    "The kernel dropped messages, because it had to wait too long for a program that listens to it."
)

_MORE, _LONG, _COMMAND = 1, 2, 4
_VERSION_AT: Final = 10
_READY: Final = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
_GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
_SUBSCRIPTION: Final = bytes((_COMMAND, len(_READY))) + _READY + b"\x00\x01\x01"
"""To be sent after the kernel's greeting: that this is a subscriber, and that it wants all."""

_BEFORE_CONTENT: Final = 5
"""Frames from the delimiter on that come before the content. Source: messaging spec."""

_RECONNECT_SECONDS: Final = 0.02


class OnlyZMQ(Exception):
    """The kernel's socket has an older protocol, which ZMQ knows."""


class IOPubSocket:
    """Subscribes to a kernel's IOPub. Not thread-safe.

    Parameters
    ----------
    connection
        As in a connection file.
    codec
        Checks and decodes messages.
    deliver
        Called with each message; with None for one that is not the kernel's.
    largest
        Returns how many bytes of a message may be held. Of a larger one, only a stream's text is
        delivered, in pieces.
    missing
        Called with a sentence that says why messages of the kernel are missing, before the messages
        that come after them.
    """

    def __init__(
        self,
        connection: dict[str, Any],
        codec: Codec,
        deliver: Callable[[Message | None], None],
        largest: Callable[[], int],
        missing: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._deliver = deliver
        self._largest = largest
        self._missing = missing
        self._socket: socket.socket | None = None
        self._is_connected = False
        self._is_closed = False
        self._connect_at = 0.0
        self._was_greeted = False
        self._buffer = bytearray(2 * LARGE_BYTES)
        self._most = 0
        self._start_over()

    def _start_over(self) -> None:
        self._is_greeted = False
        self._numbers = MessageNumbers()
        self._start = self._end = 0
        self._frames: list[Frame] = []
        self._held = 0
        self._cut = 0
        self._is_told = False
        self._large: LargeContent | bytearray | None = None
        self._left = 0
        self._is_last = False

    def to_poll(self) -> tuple[int, bool] | None:
        """Return the descriptor to wait for, and whether until it can be written instead of read.

        None if there is no connection yet. Connects if it is time to.
        """
        if self._socket is None and not self._is_closed and time.monotonic() >= self._connect_at:
            self._connect()
        if self._socket is None:
            return None
        return self._socket.fileno(), not self._is_connected

    @property
    def due(self) -> float | None:
        """Seconds until `to_poll` has to be called again; None for no such call."""
        if self._socket is not None or self._is_closed:
            return None
        return self._connect_at - time.monotonic()

    def waits(self, seconds: float) -> bool:
        """Wait until there is more, or the end; return whether it came in time."""
        if self._socket is None or not self._is_connected:
            return False
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return bool(poller.poll(1000 * seconds))

    def close(self) -> None:
        """Close the socket, and connect no more."""
        self._break()
        self._is_closed = True
        self._buffer = bytearray()

    def _connect(self) -> None:
        ip, port = self._connection["ip"], self._connection["iopub_port"]
        family: Any = getattr(socket, "AF_UNIX", None)
        address: Any = f"{ip}-{port}"
        try:
            if self._connection["transport"] != "ipc":
                found = socket.getaddrinfo(ip, port, type=socket.SOCK_STREAM)
                family, _, _, _, address = found[0]
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.connect(address)
        except BlockingIOError:
            return
        except OSError:
            self._break()

    def _break(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._is_connected = False
        self._connect_at = time.monotonic() + _RECONNECT_SECONDS
        self._start_over()

    def serve(self) -> bool:
        """Handle what came, up to the size of the buffer; return whether there may be more.

        Raises
        ------
        OnlyZMQ
        """
        if self._socket is None:
            return False
        try:
            if not self._is_connected:
                self._socket.sendall(_GREETING)  # so short that it is sent at once
                self._is_connected = True
            if self._end > len(self._buffer) // 2:
                rest = self._buffer[self._start : self._end]
                self._buffer[: len(rest)] = rest
                self._start, self._end = 0, len(rest)
            count = self._socket.recv_into(memoryview(self._buffer)[self._end :])
        except BlockingIOError:
            return False
        except OSError:
            count = 0
        if count == 0:
            self._break()
            return False
        self._end += count
        self._most = self._largest()
        with memoryview(self._buffer) as view:
            self._take_all(view)
        if self._start == self._end:
            self._start = self._end = 0
        return True

    def _take_all(self, view: memoryview) -> None:
        """Take what is complete in the buffer, until the socket is closed."""
        while self._socket is not None:
            start, there = self._start, self._end - self._start
            if self._left:
                if not there:
                    return
                self._take_chunk(view[start : start + min(self._left, there, LARGE_BYTES)])
                continue
            if not self._is_greeted:
                if not self._take_greeting(self._socket, view[start : self._end]):
                    return
                continue
            if there < 2:
                return
            flags, size, body = view[start], view[start + 1], start + 2
            if flags & _LONG:
                if there < 9:
                    return
                size, body = int.from_bytes(view[start + 1 : start + 9], "big"), start + 9
            needed = size if size <= LARGE_BYTES else TOLD_BYTES
            if self._end - body < needed:
                return
            if size > LARGE_BYTES:
                self._start = body
                self._begin_large(size, view[body : body + TOLD_BYTES], is_last=not flags & _MORE)
                continue
            self._start = body + size
            if flags & _COMMAND:
                continue
            frame = bytes(view[body : self._start])
            if flags & _MORE and frame != DELIMITER and self._held + size <= self._most:
                self._frames.append(frame)
                self._held += size
            else:
                self._add(frame, is_last=not flags & _MORE)

    def _take_greeting(self, connected: socket.socket, data: memoryview) -> bool:
        if len(data) > _VERSION_AT and (data[0] != 0xFF or data[_VERSION_AT] < 3):
            raise OnlyZMQ
        if len(data) < len(_GREETING):
            return False
        with contextlib.suppress(OSError):  # the next read finds that it is closed
            connected.sendall(_SUBSCRIPTION)
        self._start += len(_GREETING)
        self._is_greeted = True
        if self._was_greeted:
            self._missing(BROKEN)
        self._was_greeted = True
        return True

    def _add(self, frame: Frame, *, is_last: bool) -> None:
        if frame == DELIMITER and self._frames and self._numbers.skips(self._frames[-1]):
            self._missing(DROPPED)
        if self._held + len(frame) <= self._most:
            self._frames.append(frame)
            self._held += len(frame)
        else:
            self._cut += len(frame)
        if is_last:
            self._end_message()

    def _end_message(self) -> None:
        frames, self._frames = self._frames, []
        cut, is_told = self._cut, self._is_told
        self._held = self._cut = 0
        self._is_told = False
        if is_told:
            return
        message = self._codec.read(frames)
        if message is None and cut:
            message = Message(Header(), Header(), {}, size=cut, unread=True)
        elif message is not None and cut and message.header.msg_type.startswith("comm_"):
            message = message.without_content()  # it lacks buffers
        self._deliver(message)

    def _begin_large(self, size: int, beginning: memoryview, *, is_last: bool) -> None:
        """Begin with a frame that does not fit in the buffer.

        A stream's text comes in pieces. Other frames are held, if they are not too large. Content
        that is too large is counted, and so is all of a message whose headers are too large.
        """
        self._left, self._is_last = size, is_last
        is_too_large = self._held + size > self._most
        large = None
        if self._is_content:
            large = self._codec.large(self._frames, size, beginning)
        if large is not None and (large.is_text or is_too_large):
            self._large, self._is_told = large, True
        elif is_too_large:
            self._large, self._cut = None, self._cut + size
        else:
            self._large = bytearray()

    @property
    def _is_content(self) -> bool:
        """Whether the next frame is a message's content."""
        frames = self._frames
        if self._cut or DELIMITER not in frames:
            return False
        return len(frames) - frames.index(DELIMITER) == _BEFORE_CONTENT

    def _take_chunk(self, chunk: memoryview) -> None:
        self._start += len(chunk)
        self._left -= len(chunk)
        large = self._large
        if isinstance(large, LargeContent):
            message = large.take(chunk)
            if message is not None:
                self._deliver(message)
        elif large is not None:
            large += chunk
        if not self._left:
            self._large = None
            if isinstance(large, bytearray):
                self._add(large, is_last=self._is_last)
            elif self._is_last:
                self._end_message()
