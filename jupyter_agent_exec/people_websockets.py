"""Records who asks for code to be run, at Jupyter's own WebSockets of kernels.

Who it was comes from the sign-in of the WebSocket, never from a message, which anybody can write.
The server makes its connections of a class that is a trait, which operators may set; this module
makes a subclass of whatever is set.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from jupyter_server.services.kernels.connection.base import (
    BaseKernelWebsocketConnection,
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
)

from .auth.scopes import Caller
from .records import timestamp
from .sessions.program_kernels import SentRequest
from .tasks import start_apart

RECORD_TIMEOUT: Final = 1.0
"""Seconds for which a request waits until it is recorded. Then the kernel gets it all the same."""

MOST_SENT: Final = 10_000
"""How many requests are remembered whose execution the kernel has not reported."""

_v1_parts: Any = deserialize_msg_from_ws_v1
_binary_message: Any = deserialize_binary_message
_V1: Final = "v1.kernel.websocket.jupyter.org"


class Senders:
    """Remembers who sent which source under which message id. Thread-safe."""

    def __init__(self) -> None:
        self._sent: OrderedDict[str, tuple[str, str] | None] = OrderedDict()

    def note(self, msg_id: str, source: str, username: str) -> None:
        """Remember a request; nobody is known if the id is used by two."""
        is_new = self._sent.get(msg_id, (source, username)) == (source, username)
        self._sent[msg_id] = (source, username) if is_new else None
        while len(self._sent) > MOST_SENT:
            self._sent.popitem(last=False)

    def take(self, msg_id: str, source: str) -> str | None:
        """Return who sent this source under this id, and forget it; None if it is not certain."""
        sent = self._sent.pop(msg_id, None)
        return sent[1] if sent is not None and sent[0] == source else None


class People(NamedTuple):
    """What the WebSockets tell."""

    connected: Callable[[str, Caller], None]
    """Takes a kernel's id and the user who connects to it."""
    record: Callable[[str, Caller, SentRequest], Awaitable[None]]
    """Returns when a request is on disk."""
    senders: Senders
    log: logging.Logger


class _Forwarded(NamedTuple):
    message: Any
    request: SentRequest | None


def recording(connection_class: type, people: People) -> type:
    """Return a class of connections that also records requests to run code."""
    bases = (RecordingConnection, connection_class)
    return type(f"Recording{connection_class.__name__}", bases, {"people": people})


class RecordingConnection(BaseKernelWebsocketConnection):
    """The part of such a class that records.

    A request waits until it is on disk, and what the client sends after it waits behind it.
    """

    people: People

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._waiting: deque[_Forwarded] = deque()
        self._forwarding: asyncio.Task[None] | None = None

    def connect(self) -> Any:
        """Begin to record the kernel, and connect."""
        self.people.connected(self.kernel_id, self._caller())
        connect: Any = super().connect
        return connect()

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Send a message to the kernel, once it is recorded if it runs code."""
        request = self._request_in(incoming_msg)
        if request is None and not self._waiting:
            super().handle_incoming_message(incoming_msg)
            return
        if request is not None:
            self.people.senders.note(request.msg_id, request.source, self._caller().username)
        self._waiting.append(_Forwarded(incoming_msg, request))
        if self._forwarding is None or self._forwarding.done():
            self._forwarding = start_apart(self._forward(), f"record {self.kernel_id}")

    async def _forward(self) -> None:
        # Until it is connected, a connection to a gateway would call us again with each message.
        connecting = getattr(self, "ws_future", None)
        if connecting is not None and not connecting.done():
            await asyncio.wait({connecting})
        while self._waiting:
            message, request = self._waiting[0]
            if request is not None:
                recorded = start_apart(self._record(request), f"record {request.msg_id}")
                await asyncio.wait({recorded}, timeout=RECORD_TIMEOUT)
            self._waiting.popleft()
            try:
                super().handle_incoming_message(message)
            except Exception:
                self.log.exception("A message to kernel %s failed", self.kernel_id)

    async def _record(self, request: SentRequest) -> None:
        try:
            await self.people.record(self.kernel_id, self._caller(), request)
        except Exception as error:
            self.people.log.error(
                "What %s runs in kernel %s is not recorded: %s",
                self._caller().username,
                self.kernel_id,
                error,
            )

    def _caller(self) -> Caller:
        user = self.websocket_handler.current_user
        return Caller(username=user.username, display_name=user.display_name, access="full")

    def _request_in(self, incoming: Any) -> SentRequest | None:
        """Return the request to run code in a message; None if it is another message."""
        try:
            if getattr(self, "subprotocol", None) == _V1:
                parts = _v1_parts(incoming)[1]
                header, content = self.session.unpack(parts[0]), None
                if header.get("msg_type") == "execute_request":
                    content = self.session.unpack(parts[3])
            else:
                is_text = isinstance(incoming, str)
                message = json.loads(incoming) if is_text else _binary_message(incoming)
                header, content = message["header"], message["content"]
        except Exception:  # the connection refuses it too
            return None
        if header.get("msg_type") != "execute_request" or not isinstance(content, dict):
            return None
        return SentRequest(
            at=timestamp(),
            msg_id=str(header.get("msg_id", "")),
            source=str(content.get("code", "")),
            expressions=content.get("user_expressions") or None,
        )
