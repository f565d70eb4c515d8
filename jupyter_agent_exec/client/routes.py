"""Requests to the extension's routes, and how often each is asked.

Paths are below `API`. A `GET` may be asked any number of times, so it is when a connection breaks;
who makes another request decides whether it may be.
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from ..errors import InvalidRequest
from ..models import Request
from .answers import read
from .retry import persistently
from .steps import Call, Send

M = TypeVar("M")

API: Final = "/api/agent-exec"

_encoder = msgspec.json.Encoder()


def get(path: str, decoder: msgspec.json.Decoder[M], read_timeout: float = 60.0) -> Call[M]:
    """Ask for what is at `path`."""
    reply = yield from persistently(Send("GET", f"{API}{path}", read_timeout=read_timeout))
    return read(reply, decoder)


def send_model(
    method: Literal["POST", "PUT", "PATCH"],
    path: str,
    body: Request,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    read_timeout: float = 60.0,
) -> Send:
    """Return the request that sends `body`."""
    try:
        encoded = _encoder.encode(body)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "Text with a lone surrogate cannot be sent: it has no UTF-8 form.",
            position=error.start,
        ) from error
    return Send(method, f"{API}{path}", encoded, headers, read_timeout)


def act(path: str) -> Send:
    """Return the request of an action that needs no more than its path."""
    return Send("POST", f"{API}{path}", b"{}")


def segment(value: str) -> str:
    """Return `value` as one segment of a path."""
    return quote(value, safe="")


def contents_path(path: str) -> str:
    """Return a contents path as segments of a path."""
    return quote(path.strip("/"), safe="/")


def with_query(path: str, /, **query: str | float | None) -> str:
    """Return `path` with those of the `query` that are not None."""
    told = {
        name: ("true" if value else "false") if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(told)}" if told else path
