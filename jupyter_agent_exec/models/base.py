"""What all shapes share."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from ..types import Digest

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ContentsPath = Annotated[str, Meta(min_length=1, max_length=4096)]
Sha256 = Annotated[Digest, Meta(pattern=r"^[0-9a-f]{64}$")]


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
