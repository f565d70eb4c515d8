"""WebSocket channels: a thread for each kernel at a gateway reads every message that arrives.

The thread has an event loop of its own. A WebSocket that breaks is opened again with the same
session id, for which most gateways hold messages back. What was on its way is lost all the same,
and the receiver is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from jupyter_server.utils import url_path_join
from tornado.escape import url_escape
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketError,
    websocket_connect,
)

from ..kernels.channels import Channel, KernelDeath, MessageReceiver, NotSent
from ..kernels.messages import Header, Message, messages, request_parts

CURRENT: Final = "v1.kernel.websocket.jupyter.org"
"""The subprotocol of the current framing. A server that does not select it speaks the legacy one,
which is JSON."""

_EMPTY: Final = msgspec.Raw(b"{}")


class _LegacyMessage(msgspec.Struct):
    channel: str = ""
    header: msgspec.Raw = _EMPTY
    parent_header: msgspec.Raw = _EMPTY
    content: msgspec.Raw = _EMPTY


_decode_legacy = msgspec.json.Decoder(_LegacyMessage).decode


def frame(channel: Channel, parts: list[bytes], *, is_current: bool) -> bytes:
    """Return the frame of a request, given its header, parent header, metadata and content.

    A frame of the current framing is binary, one of the legacy framing is text.
    """
    if is_current:
        framed: bytes = serialize_msg_to_ws_v1(parts, channel)  # type: ignore[no-untyped-call]
        return framed
    header, parent, metadata, content = (msgspec.Raw(part) for part in parts)
    return msgspec.json.encode(
        {
            "channel": channel,
            "header": header,
            "parent_header": parent,
            "metadata": metadata,
            "content": content,
            "buffers": [],
        }
    )


def read(data: str | bytes, *, is_current: bool, largest: int) -> tuple[str, Iterable[Message]]:
    """Return the channel of a frame, and its message as far as it is readable; see `messages`.

    A frame that is not valid at all gives the channel ``iopub`` and an unread message: something of
    the kernel's is missing.
    """
    try:
        if is_current:
            _check_offsets(data)
            channel, parts = deserialize_msg_from_ws_v1(data)  # type: ignore[no-untyped-call]
            header, parent, _, content, *buffers = parts
            return channel, messages(header, parent, content, buffers, largest=largest)
        return _legacy(data if isinstance(data, str) else _json_part(data), largest)
    except (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError):
        return "iopub", (Message(Header(), Header(), {}, size=len(data), unread=True),)


def _check_offsets(data: str | bytes) -> None:
    """Check the number of offsets, which Jupyter's own function believes."""
    if not isinstance(data, bytes) or 8 * int.from_bytes(data[:8], "little") > len(data):
        raise ValueError("not a frame of the current framing")


def _json_part(data: bytes) -> bytes:
    """Return the JSON of a frame that holds it and the message's buffers."""
    count = int.from_bytes(data[:4], "big")
    offsets = [int.from_bytes(data[4 * i + 4 : 4 * i + 8], "big") for i in range(min(count, 2))]
    return data[offsets[0] : offsets[1] if count > 1 else None]


def _legacy(data: str | bytes, largest: int) -> tuple[str, Iterable[Message]]:
    try:
        told = _decode_legacy(data)
    except msgspec.MsgspecError:  # Python's module writes and reads NaN, and lone surrogates
        parts: dict[str, Any] = json.loads(data)
        told = _LegacyMessage(
            str(parts["channel"]),
            *(
                msgspec.Raw(json.dumps(parts[name]).encode())
                for name in ("header", "parent_header", "content")
            ),
        )
    about = memoryview(told.header), memoryview(told.parent_header)
    return told.channel, messages(*about, memoryview(told.content), largest=largest)


T = TypeVar("T")

BATCH: Final = 100
"""Messages to read before commands and the receiver's own work get a turn."""

MOST_MESSAGE_BYTES: Final = 100 << 20
"""Maximum size of a message. tornado buffers no more; a larger one breaks the WebSocket."""

PING_SECONDS: Final = 30.0
"""Time between pings, and the time to wait for an answer: a network may swallow everything without
closing the connection."""

ACKNOWLEDGE_DELAY: Final = 0.001
"""Seconds without a message after which the messages so far are acknowledged."""

CLOSE_TIMEOUT: Final = 10.0
"""Seconds to wait for the end of a WebSocket; tornado gives an answer half of that."""

LOOK_SECONDS: Final = 10.0
"""Time between requests that look whether the gateway still has the kernel."""

LIMITED: Final = (
    "The gateway left out output, because the code printed faster than its limits allow "
    "(iopub_msg_rate_limit, iopub_data_rate_limit)."
)
BROKEN: Final = "The connection to the gateway broke, and messages of the kernel may be missing."

_LIMITER: Final = ("IOPub message rate exceeded", "IOPub data rate exceeded")
"""How the message begins in which a gateway's limiter says that it drops output."""

_GONE: Final = KernelDeath("died", "The kernel died: its gateway does not have it any more.")
_DIED: Final = KernelDeath("died", "The kernel died, as its gateway says.")
_RESTARTED: Final = KernelDeath("restarted", "A user restarted the kernel.")
_SHUT_DOWN: Final = KernelDeath("shut_down", "A user shut the kernel down.")
_UNREACHABLE: Final = KernelDeath(
    "died", "The server lost its connection to the kernel: the gateway does not answer."
)


class GatewayChannels:
    """The channels of one kernel as a WebSocket to a gateway: a `KernelChannels`.

    Parameters
    ----------
    receiver
        Receives the kernel's messages.
    """

    key: bytes | None = None
    """None: nothing is signed on a WebSocket."""

    def __init__(self, kernel_id: str, receiver: MessageReceiver, *, log: logging.Logger) -> None:
        self.session = uuid.uuid4().hex
        """Our session id in the headers of all messages that we send here."""
        self._receiver = receiver
        self._log = log
        self._kernel_id = kernel_id
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._stop = asyncio.Event()
        self._commands: deque[Callable[[], None]] = deque()
        self._socket: WebSocketClientConnection | None = None
        self._tcp: socket.socket | None = None
        self._closed: asyncio.Future[None] | None = None
        self._is_current = False
        self._waiting: list[tuple[Channel, list[bytes]]] = []
        """Requests to send when the WebSocket is open."""
        self._has_ended = False
        self._kernel_session = ""
        self._unread = 0
        self._all_read_later: asyncio.Handle | None = None
        self._again: asyncio.TimerHandle | None = None
        self._acknowledge_later: asyncio.TimerHandle | None = None
        name = f"gateway-{kernel_id[:8]}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the commands given so far, and close the WebSocket. Blocks."""
        if self._thread.is_alive():
            self.call(self._stop.set)
            self._thread.join()

    def call(self, command: Callable[[], None]) -> None:
        """Run `command` in the thread, in the order of the calls. Call from any thread."""
        self._commands.append(command)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and so has the kernel for us
            self._loop.call_soon_threadsafe(self._obey)

    def open_stdin(self) -> None:
        """Do nothing: the WebSocket carries input requests from the beginning."""

    def send(
        self,
        channel: Channel,
        msg_type: str,
        content: dict[str, Any],
        *,
        msg_id: str,
        subshell_id: str | None = None,
    ) -> None:
        """Send a message, once the WebSocket is open; only from this thread. Raises NotSent."""
        if self._has_ended:
            raise NotSent
        parts = request_parts(self.session, msg_type, content, msg_id, subshell_id)
        self._waiting.append((channel, parts))
        self._send_waiting()

    def _send_waiting(self) -> None:
        if self._socket is None:
            return
        for channel, parts in self._waiting:
            data = frame(channel, parts, is_current=self._is_current)
            try:
                written = self._socket.write_message(data, binary=self._is_current)
            except WebSocketClosedError:
                break  # `_message` is about to be told; nothing was written
            # A break in the middle is told to `_message` too: whether it arrived is not known.
            written.add_done_callback(lambda future: future.cancelled() or future.exception())
            self._waiting = self._waiting[1:]

    # -- the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            with self._runner:
                self._runner.run(self._serve())
        except Exception:
            self._log.exception("%s: the connection is given up", self._thread.name)
            self._guard(self._receiver.channels_ended, _UNREACHABLE)

    async def _serve(self) -> None:
        connected = asyncio.create_task(self._stay_connected(), name=self._thread.name)
        await self._stop.wait()
        connected.cancel()
        await asyncio.gather(connected, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
            assert self._closed is not None
            await asyncio.wait({self._closed}, timeout=CLOSE_TIMEOUT)

    async def _stay_connected(self) -> None:
        """Keep a WebSocket open until the kernel ends. Any error of ours ends it for us."""
        try:
            await self._keep_connected()
        except Exception:
            self._log.exception("%s: the connection is given up", self._thread.name)
            self._end(_UNREACHABLE)

    async def _keep_connected(self) -> None:
        is_first = True
        while not self._has_ended:
            found = await self._connect()
            if isinstance(found, KernelDeath):
                self._end(found)
                return
            self._socket, self._is_current = found, found.selected_subprotocol == CURRENT
            self._tcp = _tcp_socket(found)
            self._send_waiting()
            if not is_first:
                self._guard(self._receiver.reconnected)
            is_first = False
            self._read_soon()
            if await self._is_gone_before_closed():
                self._end(_GONE)
                return
            self._socket = None
            if not self._has_ended:
                self._log.warning("%s: the gateway closed the WebSocket", self._thread.name)
                self._guard(self._receiver.messages_missing, BROKEN)

    async def _is_gone_before_closed(self) -> bool:
        """Wait until the WebSocket is closed, or its kernel does not exist any more.

        A gateway that ends a kernel which does not answer leaves the WebSocket open.
        """
        assert self._closed is not None
        client: Any = GatewayClient.instance()
        url = url_path_join(client.url or "", client.kernels_endpoint, url_escape(self._kernel_id))
        while True:
            await asyncio.wait({self._closed}, timeout=LOOK_SECONDS)
            if self._closed.done():
                return False
            try:
                await AsyncHTTPClient().fetch(url, **client.load_connection_args())
            except HTTPClientError as error:
                if error.code == 404:
                    return True
            except OSError as error:
                self._log.debug("%s: %r", self._thread.name, error)

    async def _connect(self) -> WebSocketClientConnection | KernelDeath:
        """Open a WebSocket, with as many attempts and delays as Jupyter's own client is set to."""
        client: Any = GatewayClient.instance()
        for attempt in range(client.gateway_retry_max + 1):
            if attempt:
                delay = client.gateway_retry_interval * 2 ** (attempt - 1)
                await asyncio.sleep(min(delay, client.gateway_retry_interval_max))
            try:
                return await self._open(client)
            except HTTPClientError as error:
                if error.code == 404:
                    return _GONE
                self._log.warning("%s: %s", self._thread.name, error)
            except (OSError, WebSocketError) as error:
                self._log.warning("%s: no connection: %r", self._thread.name, error)
        return _UNREACHABLE

    async def _open(self, client: Any) -> WebSocketClientConnection:
        url = url_path_join(
            client.ws_url or "", client.kernels_endpoint, url_escape(self._kernel_id), "channels"
        )
        request = HTTPRequest(f"{url}?session_id={self.session}", **client.load_connection_args())
        self._closed = self._loop.create_future()
        return await websocket_connect(
            request,
            on_message_callback=self._message,
            subprotocols=[CURRENT],
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            max_message_size=MOST_MESSAGE_BYTES,
        )

    # -- called by the loop ------------------------------------------------------------------------

    def _message(self, data: str | bytes | None) -> None:
        """Handle a message of the WebSocket; None when it is closed."""
        if data is None:
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)
            return
        channel, found = read(
            data, is_current=self._is_current, largest=self._receiver.largest_message
        )
        for message in found:
            if message.unread:
                self._log.warning("%s: message that is not read", self._thread.name)
            if not self._has_ended and not self._guard(self._delivered, channel, message):
                self._guard(self._delivered, channel, message.without_content())
        self._unread += 1
        if self._unread < BATCH:
            self._read_soon()
        else:
            self._all_read()

    def _delivered(self, channel: str, message: Message) -> bool:
        if channel == "iopub":
            if self._is_from_limiter(message):
                self._receiver.messages_missing(LIMITED)
                return True
            death = self._death_in(message)
            if death is None:
                self._receiver.iopub_message(message)
            else:
                self._end(death)
        elif channel == "stdin":
            self._receiver.stdin_message(message)
        else:
            self._receiver.shell_message(message)
        return True

    def _is_from_limiter(self, message: Message) -> bool:
        """Return whether the gateway itself says that it drops output."""
        header = message.header
        if header.msg_type != "stream" or header.session != self.session:
            return False
        return str(message.content.get("text", "")).startswith(_LIMITER)

    def _death_in(self, message: Message) -> KernelDeath | None:
        """Return how the kernel ended, if a message tells that it did."""
        header, content = message.header, message.content
        if header.msg_type == "shutdown_reply":
            return _RESTARTED if content.get("restart") else _SHUT_DOWN
        if header.msg_type != "status":
            return None
        if header.session == self.session:  # the gateway sends these in our session's name
            return _DIED if content.get("execution_state") in ("restarting", "dead") else None
        if header.session == message.parent.session:
            return None
        before, self._kernel_session = self._kernel_session, header.session
        return _RESTARTED if before not in ("", header.session) else None

    def _end(self, death: KernelDeath) -> None:
        """Note that this life of the kernel has ended. What still arrives belongs to the next."""
        self._has_ended = True
        if self._socket is not None:
            self._socket.close()
        self._guard(self._receiver.channels_ended, death)

    def _read_soon(self) -> None:
        if self._all_read_later is None:
            self._all_read_later = self._loop.call_soon(self._all_read)

    def _all_read(self) -> None:
        self._unread = 0
        for handle in (self._all_read_later, self._again, self._acknowledge_later):
            if handle is not None:
                handle.cancel()
        self._all_read_later = self._again = None
        self._acknowledge_later = self._loop.call_later(ACKNOWLEDGE_DELAY, self._acknowledge)
        self._run_commands()
        again = self._guard(self._receiver.all_read)
        if again is not None:
            self._again = self._loop.call_later(again, self._all_read)

    def _acknowledge(self) -> None:
        """Acknowledge what has arrived, on Linux.

        Gateways send small messages with Nagle's algorithm: each waits until the one before it is
        acknowledged, which Linux delays by up to 40 ms. While much arrives, that saves packets.
        """
        if self._tcp is not None and hasattr(socket, "TCP_QUICKACK"):
            with contextlib.suppress(OSError):  # it is closed
                self._tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _obey(self) -> None:
        self._run_commands()
        self._read_soon()

    def _run_commands(self) -> None:
        while self._commands:
            self._guard(self._commands.popleft())

    def _guard(self, call: Callable[..., T], *args: Any) -> T | None:
        """Call, and log any exception, because a dead thread would lose output."""
        try:
            return call(*args)
        except Exception:
            self._log.exception("%s: unexpected error", self._thread.name)
            return None


def _tcp_socket(connection: Any) -> socket.socket:
    """Return the socket of a WebSocket, which sends small messages at once."""
    tcp: socket.socket = connection.protocol.stream.socket
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return tcp
