"""Jupyter messages as they cross the wire: frames in, a message out, and the reverse. Pure.

Source: messaging spec, *The wire protocol*.
"""

from __future__ import annotations

import hmac
import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec

DELIMITER = b"<IDS|MSG>"
PROTOCOL_VERSION = "5.4"


class Header(msgspec.Struct, frozen=True):
    """What is used of a message's header, or of its parent's."""

    msg_id: str = ""
    msg_type: str = ""
    session: str = ""


class Message(msgspec.Struct, frozen=True):
    """A message from a kernel."""

    header: Header
    parent: Header
    content: dict[str, Any]


_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_content = msgspec.json.Decoder(dict[str, Any]).decode


class Codec:
    """Signs and encodes requests; checks and decodes what comes from the kernel.

    Parameters
    ----------
    key
        The connection's HMAC key; empty when messages are not signed.
    signature_scheme
        As in a connection file: ``hmac-`` and a hash's name.
    """

    def __init__(self, key: bytes, signature_scheme: str) -> None:
        self._auth = hmac.new(key, digestmod=signature_scheme.partition("-")[2]) if key else None
        self._session = uuid.uuid4().hex

    def request(self, msg_type: str, content: dict[str, Any], msg_id: str) -> list[bytes]:
        """Return the frames of a request on the shell channel."""
        header = {
            "msg_id": msg_id,
            "msg_type": msg_type,
            "session": self._session,
            "username": "jupyter-agent-exec",
            "date": datetime.now(timezone.utc).isoformat(),
            "version": PROTOCOL_VERSION,
        }
        parts = [_encode(header), b"{}", b"{}", _encode(content)]
        return [DELIMITER, self._sign(parts), *parts]

    def read(self, frames: Sequence[bytes]) -> Message | None:
        """Decode one message; None if it is malformed or not signed with our key."""
        try:
            start = frames.index(DELIMITER) + 1
            signature, header, parent, metadata, content = frames[start : start + 5]
        except ValueError:
            return None
        if not hmac.compare_digest(self._sign((header, parent, metadata, content)), signature):
            return None
        try:
            return Message(_decode_header(header), _decode_header(parent), _content(content))
        except (msgspec.MsgspecError, ValueError):
            return None

    def _sign(self, parts: Iterable[bytes]) -> bytes:
        if self._auth is None:
            return b""
        auth = self._auth.copy()
        for part in parts:
            auth.update(part)
        return auth.hexdigest().encode()


def _content(data: bytes) -> dict[str, Any]:
    """Decode JSON; where it is not strict (NaN, lone surrogates), as Python's own module does."""
    try:
        return _decode_content(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        content = json.loads(data.decode(errors="replace"))
        if not isinstance(content, dict):
            raise ValueError("content is not an object") from None
        return content
