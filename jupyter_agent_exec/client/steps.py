"""The steps that a call is made of.

A call is a generator: it yields steps, somebody with a connection carries them out, and it returns
the answer. So what is sent, what is sent again and when to give up is written once, without I/O,
for the client that blocks and the one that awaits (`drivers`).
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from .servers import Server

T = TypeVar("T")


class Send(Struct, frozen=True):
    """Send a request; a `Reply` comes back, or a `ServerUnreachable` is thrown in."""

    method: str
    path: str
    """Below the server's base URL, with query."""
    body: bytes = b""
    """JSON."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Beside those that the server's address and the body bring along."""
    read_timeout: float = 60.0
    """Seconds in which nothing may come."""
    streamed: bool = False
    """Leave a 2xx answer's body to `Receive`."""
    upload: bytes | Path | None = None
    """Sent as it is, instead of `body`; a path stands for the file's content."""


class Reply(Struct, frozen=True):
    """What the server answered."""

    status: int
    content: bytes
    """Empty for a 2xx answer to a streamed request."""
    etag: str | None = None
    """Of what the answer is about."""


class Receive(Struct, frozen=True):
    """Take the next bytes of a streamed answer; empty at its end."""


class Pause(Struct, frozen=True):
    """Let time pass."""

    seconds: float


class Connect(Struct, frozen=True):
    """Send what follows to this server."""

    server: Server


class ShowUnlock(Struct, frozen=True):
    """Show this with what follows, to prove that a person decides."""

    unlock: str


class Emit(Struct, Generic[T], frozen=True):
    """Hand a value to whoever iterates."""

    value: T


Call: TypeAlias = Generator[Send | Receive | Pause | Connect | ShowUnlock, Reply | bytes | None, T]
"""Steps that add up to one answer."""

Feed: TypeAlias = Generator[
    Send | Receive | Pause | Connect | ShowUnlock | Emit[T], Reply | bytes | None, None
]
"""Steps that bring one value after another."""


def send(request: Send) -> Call[Reply]:
    """Send `request` and return what is answered."""
    reply = yield request
    assert isinstance(reply, Reply)
    return reply


def receive() -> Call[bytes]:
    """Return the next bytes of a streamed answer; empty at its end."""
    chunk = yield Receive()
    assert isinstance(chunk, bytes)
    return chunk
