"""What all entries share: their payloads, who did what, and when."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ..types import Digest, TokenId


class Payload(Struct, frozen=True):
    """Bytes that an entry names by their digest."""

    digest: Digest
    data: bytes
    as_file: bool = False
    """Keep it as a file of its own, whatever its size (images, which have a URL)."""

    @classmethod
    def of(cls, data: bytes, *, as_file: bool = False) -> Payload:
        """Digest `data`."""
        return cls(digest=digest_of(data), data=data, as_file=as_file)


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment, by default now, as the record tells times."""
    moment = moment or datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def digest_of(data: bytes) -> Digest:
    """Return the SHA-256 of `data` in hexadecimal."""
    return Digest(hashlib.sha256(data).hexdigest())


class BlobRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that was taken out of an execution's outputs because it is large or an image."""

    at: tuple[int | str, ...]
    """Where it belongs: output index, then keys, such as ``(0, "data", "image/png")``."""
    sha256: Digest
    bytes: int
    encoding: Literal["text", "json", "base64"]
    """How the value becomes the blob's bytes: its UTF-8 text, its JSON, or base64-decoded."""
    mimetype: str


class By(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who did what an entry tells."""

    kind: Literal["person", "agent", "server"]
    """`agent`: an agent through a person's own credential, or with a token of its own."""
    username: str | None = None
    display_name: str | None = None
    agent: str | None = None
    token_id: TokenId | None = None
    """Of the agent token that was shown."""

    @property
    def named(self) -> str:
        """How to call them in a sentence."""
        return self.display_name or self.username or "the server"


SERVER = By(kind="server")
"""The server itself, which nobody asked."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all entries."""

    n: int = 0
    """Position in the journal, from 0; set by the journal."""
    at: str
    by: By
