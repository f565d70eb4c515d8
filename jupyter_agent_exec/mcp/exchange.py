"""A Tornado request and its response, in the terms of ASGI.

If the first event of an event stream is already the answer, it is sent as plain JSON. That is
faster, and it avoids clients' limits on the size of an event. A client that takes only one of the
two forms gets that one; without an `Accept` header, it takes both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec
from tornado import web
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError

from ..auth.handler import deliver
from ..models import PIECE_BYTES
from ..tasks import settle

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]

_EVENT_STREAM: Final = b"text/event-stream"
_OF_THE_CONNECTION: Final = (b"connection", b"content-length", b"transfer-encoding")
"""Headers that Tornado sets itself."""


class _Envelope(msgspec.Struct):
    """A JSON-RPC message: a response has a result or an error."""

    method: str = ""
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Exchange:
    """A Tornado request and its response, with the `scope`, `receive` and `send` of ASGI.

    Parameters
    ----------
    handler
        The request's handler. It calls `leave` when its connection is closed.
    send_timeout
        Seconds within which the client must accept each piece.
    """

    def __init__(self, handler: web.RequestHandler, send_timeout: float) -> None:
        self._handler = handler
        self._send_timeout = send_timeout
        self._request = handler.request
        self.opens_session = _is_initialize(handler.request.body)
        self._takes_json, self._takes_events = forms(handler.request.headers.get("Accept", ""))
        self.scope = asgi_scope(handler.request)
        self.scope["headers"] = list(self._headers())
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client has disconnected or the response is complete."""
        self._body_read = False
        self._start: Message | None = None
        self._begun = False

    def leave(self) -> None:
        """Mark the exchange as over: nobody reads the response any more. Idempotent."""
        settle(self.gone)

    @property
    def body(self) -> bytes:
        """The request's body."""
        return self._request.body

    def _headers(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the request's headers as the SDK takes them.

        It demands that a client takes both forms, and refuses an old session's id at `initialize`.
        """
        takes_form = self._takes_events or (self._takes_json and self._request.method == "POST")
        replaced = {b"accept": takes_form, b"mcp-session-id": self.opens_session}
        yield from (header for header in self.scope["headers"] if not replaced.get(header[0]))
        if takes_form:
            yield b"accept", b"application/json, " + _EVENT_STREAM

    async def receive(self) -> Message:
        """Return the body once; after that, wait until the client disconnects."""
        if not self._body_read:
            self._body_read = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await asyncio.wait({self.gone})
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response; return when the connection has accepted it."""
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
        if self._request.method != "POST":  # the first event of a POST may already be the answer
            self._begin(message["headers"])
            if _is_event_stream(message):
                await self._handler.flush()

    async def _send_body(self, body: bytes, more: bool) -> None:
        if not self._begun:
            if not body and more:
                return
            assert self._start is not None
            form: bytes | None = None
            if _is_event_stream(self._start):
                answer = only_answer(body)
                if answer is not None and self._takes_json:
                    body, more, form = answer, False, b"application/json"
                elif more and not self._takes_events:
                    return  # progress
            elif body and not self._takes_json and self._start["status"] == HTTPStatus.OK:
                body, form = b"event: message\r\ndata: " + body + b"\r\n\r\n", _EVENT_STREAM
            self._begin(self._start["headers"], form)
        starts = range(0, len(body) or 1, PIECE_BYTES)
        for start in starts:
            piece = body[start : start + PIECE_BYTES]
            last = not more and start == starts[-1]
            await deliver(self._handler, piece, self._send_timeout, last=last)
        if not more:
            self.leave()

    def _begin(self, headers: Iterable[tuple[bytes, bytes]], form: bytes | None = None) -> None:
        """Set the response's headers, with another content type if a form is given."""
        assert self._start is not None
        self._begun = True
        self._handler.set_status(self._start["status"])
        self._handler.clear_header("Content-Type")
        for name, value in headers:
            if name.lower() not in _OF_THE_CONNECTION:
                self._handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
        if form is not None:
            self._handler.set_header("Content-Type", form)
        if form == _EVENT_STREAM or (form is None and _is_event_stream(self._start)):
            self._handler.set_header("X-Accel-Buffering", "no")


def asgi_scope(request: HTTPServerRequest) -> Scope:
    """Return a request's scope in the terms of ASGI."""
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
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.get_all()
        ],
        "client": None,
        "server": None,
    }


def forms(accept: str) -> tuple[bool, bool]:
    """Return whether a client takes JSON, and whether it takes events, by its `Accept` header."""
    kinds = {each.partition(";")[0].strip().lower() for each in accept.split(",")} - {""}
    takes_all = not kinds or "*/*" in kinds
    return (
        takes_all or not kinds.isdisjoint(("application/json", "application/*")),
        takes_all or not kinds.isdisjoint(("text/event-stream", "text/*")),
    )


def _is_initialize(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Envelope).method == "initialize"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _is_event_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENT_STREAM)
        for name, value in start.get("headers", ())
    )


def only_answer(event: bytes) -> bytes | None:
    """Return an event's JSON if the event is a JSON-RPC response, else None."""
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
