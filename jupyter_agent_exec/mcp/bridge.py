"""One request of tornado, as an ASGI application sees it.

It knows one thing of MCP: an event stream whose first event is the answer is sent as that answer,
plainly. That is quicker, and no limit of a client to the size of an event is met.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Final, TypeAlias

import msgspec
from tornado import web
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError

from ..auth.handler import deliver
from ..models import PIECE_BYTES
from .call import Asker

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]

_EVENT_STREAM: Final = b"text/event-stream"
_OF_THE_CONNECTION: Final = (b"connection", b"content-length", b"transfer-encoding")
"""Headers that are tornado's business."""


class _Envelope(msgspec.Struct):
    """What of a JSON-RPC message tells whether it is an answer."""

    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Exchange:
    """A request and its response.

    Parameters
    ----------
    handler
        Of the request. It calls `leave` when its connection is closed.
    send_timeout
        Seconds within which the client has to take each piece.
    """

    def __init__(self, handler: web.RequestHandler, send_timeout: float) -> None:
        self._handler = handler
        self._send_timeout = send_timeout
        self._request = handler.request
        self.scope = _scope(handler.request)
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client went away, or the response is complete."""
        self._body_read = False
        self._start: Message | None = None
        self._begun = False

    def leave(self) -> None:
        """Hear that nobody reads the response any more. Idempotent."""
        if not self.gone.done():
            self.gone.set_result(None)

    async def receive(self) -> Message:
        """Return the body, once; then wait for the client to go."""
        if not self._body_read:
            self._body_read = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await asyncio.wait({self.gone})
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response; return when the connection has taken it."""
        if self.gone.done():
            return
        try:
            if message["type"] == "http.response.start":
                await self._send_start(message)
            else:
                await self._send_body(message.get("body", b""), message.get("more_body", False))
        except StreamClosedError:
            self.leave()

    async def _send_start(self, message: Message) -> None:
        self._start = message
        streamed = _is_event_stream(message)
        if streamed and self._request.method == "POST":
            return  # the first event may be the answer already
        self._begin(message)
        if streamed:
            await self._handler.flush()

    async def _send_body(self, body: bytes, more: bool) -> None:
        if not self._begun:
            if not body and more:
                return
            assert self._start is not None
            answer = only_answer(body)
            self._begin(self._start, plain=answer is not None)
            if answer is not None:
                body, more = answer, False
        for start in range(0, len(body), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            await deliver(self._handler, piece, self._send_timeout)
        if not more:
            await self._handler.finish()
            self.leave()

    def _begin(self, start: Message, *, plain: bool = False) -> None:
        self._begun = True
        self._handler.set_status(start["status"])
        self._handler.clear_header("Content-Type")
        for name, value in start.get("headers", ()):
            if name.lower() not in _OF_THE_CONNECTION:
                self._handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
        if plain:
            self._handler.set_header("Content-Type", "application/json")
        elif _is_event_stream(start):
            self._handler.set_header("X-Accel-Buffering", "no")


Application: TypeAlias = Callable[[Exchange, Asker], Awaitable[None]]
"""Answers a request."""


def _scope(request: HTTPServerRequest) -> Scope:
    assert request.method is not None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.version.partition("/")[2],
        "method": request.method,
        "scheme": request.protocol,
        "path": request.path,
        "raw_path": request.path.encode("latin-1"),
        "root_path": "",
        "query_string": request.query.encode("latin-1"),
        "headers": list(_headers(request)),
        "client": None,
        "server": None,
    }


def _headers(request: HTTPServerRequest) -> Iterator[tuple[bytes, bytes]]:
    for name, value in request.headers.get_all():
        yield name.lower().encode("latin-1"), value.encode("latin-1")


def _is_event_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENT_STREAM)
        for name, value in start.get("headers", ())
    )


def only_answer(event: bytes) -> bytes | None:
    """Return the JSON of an event that is an answer; None for any other."""
    data = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    if len(data) != 1:
        return None
    try:
        envelope = msgspec.json.decode(data[0], type=_Envelope)
    except msgspec.MsgspecError:
        return None
    if envelope.result is msgspec.UNSET and envelope.error is msgspec.UNSET:
        return None
    return data[0]
