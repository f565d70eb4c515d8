"""What all shapes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..types import Digest

S = TypeVar("S", bound=Struct)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ContentsPath = Annotated[str, Meta(min_length=1, max_length=4096)]
Sha256 = Annotated[Digest, Meta(pattern=r"^[0-9a-f]{64}$")]


PIECE_BYTES: Final = 1 << 17
"""About how much of a long answer is made, and sent, at once."""

_LEVELS: Final = 10
"""Of a model, down to the text of an output; what is deeper is encoded as a whole."""


def json_pieces(model: Any) -> Iterator[bytes]:
    """Yield the JSON of a model piece by piece, so that nobody has to hold a copy of a long text.

    All pieces but the last have at least `PIECE_BYTES`.
    """
    piece = bytearray()
    for part in _json_parts(msgspec.to_builtins(model, str_keys=True), _LEVELS):
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _json_parts(value: Any, levels: int) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > PIECE_BYTES:
        yield b'"'
        for start in range(0, len(value), PIECE_BYTES):
            yield msgspec.json.encode(value[start : start + PIECE_BYTES])[1:-1]
        yield b'"'
    elif isinstance(value, dict) and levels:
        before = b"{"
        for key, item in value.items():
            yield before + msgspec.json.encode(key) + b":"
            yield from _json_parts(item, levels - 1)
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and levels:
        before = b"["
        for item in value:
            yield before
            yield from _json_parts(item, levels - 1)
            before = b","
        yield b"]" if value else b"[]"
    else:
        yield msgspec.json.encode(value)


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a client sends: unknown fields are refused."""


class Answer(Struct, frozen=True, kw_only=True):
    """Base of what the server sends: fields may be added later."""


class Agent(Request, frozen=True, kw_only=True):
    """The program that asks.

    It says these of itself; they are shown and recorded, and no right follows from them.
    """

    name: Name
    version: Name | None = None
    model: Name | None = None


class Chain(Answer, frozen=True, kw_only=True):
    """Where a session's journal ends. Keep it to prove later that nothing was cut off."""

    head: Digest
    length: int


class Problem(Answer, frozen=True, kw_only=True):
    """The body of every refusal."""

    message: str
    reason: None
    code: str
    detail: dict[str, Any]


def derive(model: type[S], source: Struct, /, **fields: object) -> S:
    """Return a `model` made of the fields that it shares with `source`, and of `fields`."""
    shared = {
        name: getattr(source, name)
        for name in source.__struct_fields__
        if name in model.__struct_fields__
    }
    return model(**(shared | fields))
