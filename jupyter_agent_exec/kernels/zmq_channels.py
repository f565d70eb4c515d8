"""ZMQ channels: a thread for each kernel reads what it sends, and drops nothing.

Shell, control and stdin are ZMQ sockets. IOPub is an `IOPubSocket`, which holds little of what a
kernel prints, or a ZMQ socket if the connection is encrypted. The receiver interprets the messages.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import zmq
from zmq.utils.monitor import recv_monitor_message

from ..tasks import waking_once
from .channels import Channel, MessageReceiver, NotSent
from .iopub import DROPPED, IOPubSocket, OnlyZMQ
from .messages import DELIMITER, LARGE_BYTES, Codec, Message, MessageNumbers

T = TypeVar("T")

BATCH = 100
"""Messages to read from one socket before the other socket and the commands get a turn."""

MOST_FAILURES = 10
"""Consecutive errors, ours or ZMQ's, after which the thread disconnects from the kernel."""

FULL_DELAY = 0.01
"""Seconds until the receiver is asked again whether it takes more output."""

LAST_SECONDS = 0.2
"""Seconds to wait for more output of a kernel that has disconnected, and not closed its IOPub."""

STDIN_CONNECT_MILLISECONDS = 2000
"""Maximum time to connect the stdin channel of a kernel that already answers on the others."""

RECONNECT_MILLISECONDS = 20
"""Time between attempts to connect to a kernel that is still starting."""


class ZMQChannels:
    """Shell, IOPub, control and stdin of one kernel as ZMQ sockets: a `KernelChannels`.

    Parameters
    ----------
    connection
        As in a connection file (``KernelManager.get_connection_info()``).
    receiver
        Receives the kernel's messages.
    name
        The name of the thread.
    """

    def __init__(
        self,
        connection: dict[str, Any],
        receiver: MessageReceiver,
        *,
        name: str,
        log: logging.Logger,
    ) -> None:
        self._receiver = receiver
        self._log = log
        key = connection["key"]
        key = key.encode() if isinstance(key, str) else key
        self.key: bytes | None = key
        self._codec = Codec(key, connection["signature_scheme"])
        self._connection = connection
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._sending: dict[Channel, zmq.Socket[bytes]] = {}
        self._shell = self._sending["shell"] = self._connect(zmq.DEALER, "shell_port")
        self._zmq_iopub: zmq.Socket[bytes] | None = None
        self._numbers = MessageNumbers()
        self._iopub: IOPubSocket | None = None
        self._iopub_polled: tuple[int, bool] | None = None
        self._monitor = self._shell.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._waker, self._wake = self._context.socket(zmq.PAIR), self._context.socket(zmq.PAIR)
        self._waker.bind("inproc://wake")
        self._wake.connect("inproc://wake")
        self._wake_lock = threading.Lock()
        self._commands: deque[Callable[[], None]] = deque()
        self._stopping = False
        self._has_given_up = False
        if "curve_publickey" in connection:
            self._leave_iopub_to_zmq()
        else:
            self._iopub = IOPubSocket(
                connection,
                self._codec,
                partial(self._take, receiver.iopub_message),
                lambda: receiver.largest_message,
                self._miss,
            )
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def _connect(self, kind: int, port: str) -> zmq.Socket[bytes]:
        connection = self._connection
        socket = self._new_socket(kind, connection)
        separator = "-" if connection["transport"] == "ipc" else ":"
        socket.connect(
            f"{connection['transport']}://{connection['ip']}{separator}{connection[port]}"
        )
        return socket

    def _leave_iopub_to_zmq(self) -> None:
        self._zmq_iopub = self._connect(zmq.SUB, "iopub_port")
        self._poller.register(self._zmq_iopub, zmq.POLLIN)

    def _new_socket(self, kind: int, connection: dict[str, Any]) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.linger = 0
        socket.rcvhwm = 0
        # ZMQ disconnects from a port of a program that is no kernel; then a send would never end.
        socket.sndtimeo = 0
        socket.reconnect_ivl = RECONNECT_MILLISECONDS
        if "curve_publickey" in connection:
            socket.curve_secretkey = connection["curve_secretkey"].encode()
            socket.curve_publickey = connection["curve_publickey"].encode()
            socket.curve_serverkey = connection["curve_publickey"].encode()
        if kind == zmq.SUB:
            socket.subscribe(b"")
        else:  # a kernel sends input requests to the identity of the request's sender
            socket.identity = self.session.encode()
        return socket

    @property
    def session(self) -> str:
        """Our session id in the headers of all messages that we send here."""
        return self._codec.session

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def call(self, command: Callable[[], None]) -> None:
        """Run `command` in the thread, in the order of the calls. Call from any thread.

        If that thread has given up the kernel, the calling thread runs the command, so that a
        running request can still be ended.
        """
        self._commands.append(command)
        with self._wake_lock, contextlib.suppress(zmq.Again):  # Again: enough wakes are pending
            if not self._stopping:
                self._waker.send(b"", zmq.NOBLOCK)
        if self._has_given_up:
            self._run_commands()

    def stop(self) -> None:
        """End the thread after the commands given so far, and close all sockets."""

        def stop() -> None:
            self._stopping = True

        if self._thread.is_alive():
            self.call(stop)
            self._thread.join()

    def send(
        self,
        channel: Channel,
        msg_type: str,
        content: dict[str, Any],
        *,
        msg_id: str,
        subshell_id: str | None = None,
    ) -> None:
        """Send a message; only from the thread of these channels. Raises NotSent."""
        socket = self._sending.get(channel)
        if socket is None:
            socket = self._open(channel)
        try:
            socket.send_multipart(self._codec.request(msg_type, content, msg_id, subshell_id))
        except zmq.Again:
            raise NotSent from None

    def open_stdin(self) -> None:
        """Connect the stdin channel, and wait until it is; only from this thread."""
        if "stdin" not in self._sending:
            monitor = self._open("stdin").get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            monitor.poll(STDIN_CONNECT_MILLISECONDS)
            self._sending["stdin"].disable_monitor()
            monitor.close(linger=0)

    def _open(self, channel: Channel) -> zmq.Socket[bytes]:
        socket = self._sending[channel] = self._connect(zmq.DEALER, f"{channel}_port")
        self._poller.register(socket, zmq.POLLIN)
        return socket

    def _work(self) -> None:
        for socket in (self._shell, self._monitor, self._wake):
            self._poller.register(socket, zmq.POLLIN)
        again: float | None = None
        failures = 0
        try:
            while not self._stopping and failures < MOST_FAILURES:
                try:
                    again = self._serve(again)
                    failures = 0
                except Exception:
                    failures += 1
                    self._log.exception("%s: unexpected error", self._thread.name)
        finally:
            with self._wake_lock:
                self._has_given_up = not self._stopping
                self._stopping = True
                with contextlib.suppress(zmq.ZMQError):
                    self._shell.disable_monitor()
                if self._iopub is not None:
                    self._iopub.close()
                self._context.destroy(linger=0)
            if self._has_given_up:
                self._log.error("%s: the connection is given up", self._thread.name)
                self._run_commands()
                self._guard(self._receiver.channels_ended)

    def _serve(self, again: float | None) -> float | None:
        """Wait for messages and commands, and handle them; return when to be called again."""
        dues = [again, self._poll_iopub()]
        due = min((due for due in dues if due is not None), default=None)
        ready = dict(self._poller.poll(None if due is None else int(max(0, due) * 1000)))
        with waking_once():
            return self._handle(ready)

    def _handle(self, ready: Collection[Any]) -> float | None:
        if self._wake in ready:
            self._obey()
        if self._shell in ready:
            self._read(self._shell, self._receiver.shell_message)
        if self._iopub_in(ready) and not self._receiver.is_full:
            self._read_iopub()
        control, stdin = self._sending.get("control"), self._sending.get("stdin")
        if control is not None and control in ready:
            self._read(control, self._receiver.shell_message)
        if stdin is not None and stdin in ready:
            self._read(stdin, self._receiver.stdin_message)
        if self._monitor in ready:
            recv_monitor_message(self._monitor)
            self._read_all()
            self._guard(self._receiver.channels_ended)
        return self._guard(self._receiver.all_read)

    def _iopub_in(self, ready: Collection[Any]) -> bool:
        if self._iopub is None:
            return self._zmq_iopub in ready
        return self._iopub_polled is not None and self._iopub_polled[0] in ready

    def _poll_iopub(self) -> float | None:
        """Have the poller wait for IOPub, unless the receiver is full; return when to ask again."""
        due, polled = None, None
        if self._receiver.is_full:
            due = FULL_DELAY
        elif self._iopub is not None:
            polled = self._iopub.to_poll()
            due = self._iopub.due
        if self._zmq_iopub is not None:
            self._poller.register(self._zmq_iopub, 0 if due else zmq.POLLIN)
        if polled != self._iopub_polled:
            if self._iopub_polled is not None:
                self._poller.unregister(self._iopub_polled[0])
            if polled is not None:
                fd, is_to_write = polled
                self._poller.register(fd, zmq.POLLOUT if is_to_write else zmq.POLLIN)
            self._iopub_polled = polled
        return due

    def _read_iopub(self) -> bool:
        """Deliver some of what came from IOPub; return whether there may be more."""
        if self._iopub is None:
            assert self._zmq_iopub is not None
            return self._read(self._zmq_iopub, self._receiver.iopub_message, in_pieces=True)
        try:
            return self._iopub.serve()
        except OnlyZMQ:
            self._iopub.close()
            self._poll_iopub()
            self._iopub = None
            self._leave_iopub_to_zmq()
            return False

    def _obey(self) -> None:
        """Run the commands given so far."""
        with contextlib.suppress(zmq.Again):
            while True:
                self._wake.recv(zmq.NOBLOCK)
        self._run_commands()

    def _run_commands(self) -> None:
        with contextlib.suppress(IndexError):  # another thread may run them too, at the end
            while True:
                self._guard(self._commands.popleft())

    def _read_all(self) -> None:
        """Deliver all remaining messages of a disconnected kernel."""
        while self._read(self._shell, self._receiver.shell_message):
            pass
        while self._read_iopub():
            pass
        if self._iopub is not None:
            while self._iopub.waits(LAST_SECONDS) and self._read_iopub():
                pass

    def _read(
        self,
        socket: zmq.Socket[bytes],
        deliver: Callable[[Message], None],
        *,
        in_pieces: bool = False,
    ) -> bool:
        """Deliver what can be read now, up to a batch; return whether there may be more."""
        for _ in range(BATCH):
            try:
                parts = socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return False
            frames = [part.bytes if len(part) < LARGE_BYTES else part.buffer for part in parts]
            if in_pieces:
                if self._skips(frames):
                    self._miss(DROPPED)
                for message in self._codec.messages(frames, self._receiver.largest_message):
                    self._take(deliver, message)
            else:
                self._take(deliver, self._codec.read(frames))
            del parts, frames  # they may be large
        return True

    def _skips(self, frames: list[Any]) -> bool:
        at = frames.index(DELIMITER) if DELIMITER in frames else 0
        return at > 0 and self._numbers.skips(frames[at - 1])

    def _miss(self, reason: str) -> None:
        self._guard(self._receiver.messages_missing, reason)
        self._guard(self._receiver.reconnected)

    def _take(self, deliver: Callable[[Message], None], message: Message | None) -> None:
        if message is None:
            self._log.warning("%s: message that is not the kernel's", self._thread.name)
            return
        if message.unread:
            self._log.warning("%s: message that is not read", self._thread.name)
        try:
            deliver(message)
        except Exception:
            self._log.exception("%s: unexpected error", self._thread.name)
            self._guard(deliver, message.without_content())

    def _guard(self, call: Callable[..., T], *args: Any) -> T | None:
        """Call, and log any exception, because a dead thread would lose output."""
        try:
            return call(*args)
        except Exception:
            self._log.exception("%s: unexpected error", self._thread.name)
            return None
