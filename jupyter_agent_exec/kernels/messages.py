"""Jupyter messages on the wire: decodes frames into messages, and encodes requests. Pure.

Source: messaging spec, *The wire protocol*.
"""

from __future__ import annotations

import hmac
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

Frame: TypeAlias = bytes | memoryview
"""A part of a message. A large one is not copied out of ZMQ's own memory."""

DELIMITER = b"<IDS|MSG>"
PROTOCOL_VERSION = "5.4"

LONG_BYTES = 4 << 20
PIECE_BYTES = 1 << 20
"""A stream's content larger than the first is decoded in pieces of about the second size. Decoding
50 MB in one piece would make all other threads wait for 100 ms."""

MAX_DEPTH = 100
"""Maximum nesting of JSON in a message; later steps could not encode or copy deeper JSON."""

_CONTAINERS = frozenset((dict, list))

_STREAM = re.compile(rb'\{"name": ?"(?P<name>\w+)", ?"text": ?"')


class Header(msgspec.Struct, frozen=True):
    """The fields that we use of a message's header, or of its parent's."""

    msg_id: str = ""
    msg_type: str = ""
    session: str = ""
    username: str = ""


class Message(msgspec.Struct, frozen=True):
    """A message from a kernel."""

    header: Header
    parent: Header
    content: dict[str, Any]
    pieces: Iterator[str] | None = None
    """The text of a very long stream, decoded piece by piece; `content` then lacks it."""
    size: int = 0
    """Size of the content's frame in bytes."""
    unread: bool = False
    """Whether `content` is empty because the message could not be read. If its headers could not
    be read either, they are empty too."""

    def without_content(self) -> Message:
        """Return this message as one whose content could not be read."""
        return Message(self.header, self.parent, {}, size=self.size, unread=True)

    def contents(self) -> Iterable[dict[str, Any]]:
        """Return the content, only once; a very long stream comes in pieces."""
        if self.pieces is None:
            return (self.content,)
        return ({**self.content, "text": piece} for piece in self.pieces)


_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_parent = msgspec.json.Decoder(Header | None).decode
_decode_content = msgspec.json.Decoder(dict[str, Any]).decode


class Codec:
    """Signs and encodes requests; checks and decodes the kernel's messages.

    Parameters
    ----------
    key
        The connection's HMAC key; empty when messages are not signed.
    signature_scheme
        As in a connection file: ``hmac-`` and the name of a hash.
    """

    def __init__(self, key: bytes, signature_scheme: str) -> None:
        self._auth = hmac.new(key, digestmod=signature_scheme.partition("-")[2]) if key else None
        self.session = uuid.uuid4().hex
        """Our session id in the messaging protocol, for all requests of this codec."""

    def request(
        self,
        msg_type: str,
        content: dict[str, Any],
        msg_id: str,
        subshell_id: str | None = None,
    ) -> list[bytes]:
        """Return the frames of a request for the shell or the control channel."""
        parts = request_parts(self.session, msg_type, content, msg_id, subshell_id)
        return [DELIMITER, self._sign(parts), *parts]

    def read(self, frames: Sequence[Frame]) -> Message | None:
        """Decode one message, as far as it is readable.

        None if it is not signed with our key, or does not have the frames of a message.
        """
        try:
            start = frames.index(DELIMITER) + 1
            signature, header, parent, metadata, content = frames[start : start + 5]
        except ValueError:
            return None
        told = self._sign((header, parent, metadata, content))
        if not hmac.compare_digest(told, bytes(signature)):
            return None
        return decoded(header, parent, content)

    def _sign(self, parts: Iterable[Frame]) -> bytes:
        if self._auth is None:
            return b""
        auth = self._auth.copy()
        for part in parts:
            auth.update(part)
        return auth.hexdigest().encode()


def request_parts(
    session: str,
    msg_type: str,
    content: dict[str, Any],
    msg_id: str,
    subshell_id: str | None = None,
) -> list[bytes]:
    """Return header, parent header, metadata and content of a request of ours."""
    header = {
        "msg_id": msg_id,
        "msg_type": msg_type,
        "session": session,
        "username": "jupyter-agent-exec",
        "date": datetime.now(UTC).isoformat(),
        "version": PROTOCOL_VERSION,
    }
    if subshell_id is not None:
        header["subshell_id"] = subshell_id
    return [_encode(header), b"{}", b"{}", _encode(content)]


def decoded(header: Frame, parent: Frame, content: Frame) -> Message:
    """Decode the parts of a message, as far as they are readable."""
    size = len(content)
    try:
        # Kernels built on xeus send null as the parent of `iopub_welcome`.
        about = _decode_header(header), _decode_parent(parent) or Header()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Message(Header(), Header(), {}, size=size, unread=True)
    if size > LONG_BYTES and (stream := _STREAM.match(content)) is not None:
        name = stream["name"].decode()
        return Message(*about, {"name": name}, _pieces(content, stream.end()), size)
    try:
        return Message(*about, _content(content), size=size)
    except (ValueError, RecursionError):
        return Message(*about, {}, size=size, unread=True)


def _content(data: Frame) -> dict[str, Any]:
    """Decode JSON. If it is not strict JSON (NaN, lone surrogates), use Python's own module.

    Raises
    ------
    ValueError, RecursionError
        If it is not JSON, not an object, or nested too deeply.
    """
    try:
        content = _decode_content(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        content = json.loads(bytes(data).decode(errors="replace"))
        if not isinstance(content, dict):
            raise ValueError("content is not an object") from None
    if _is_deep(content):
        raise ValueError("content is nested too deeply")
    return content


def _is_deep(content: dict[str, Any]) -> bool:
    level: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return False
    return True


def _pieces(content: Frame, start: int) -> Iterator[str]:
    """Yield the text of a stream's content, which begins at `start`, cut at line ends."""
    end = len(content) - len(b'"}')
    told = 0
    while start < end:
        data = bytes(content[start : min(start + PIECE_BYTES, end)])
        if start + PIECE_BYTES < end:
            data = data[: _line_end(data)] or bytes(content[start:end])
        try:
            piece = msgspec.json.decode(b'"%b"' % data, type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError):  # it is not as simple as it looked
            yield str(_content(content)["text"])[told:]
            return
        yield piece
        told += len(piece)
        start += len(data)


def _line_end(data: bytes) -> int:
    """Return the position after the last escaped line end; 0 if there is none."""
    found = data.rfind(b"\\n")
    while found != -1:
        first = found
        while data[first - 1 : first] == b"\\":
            first -= 1
        if (found - first) % 2 == 0:  # the backslash is not itself escaped
            return found + 2
        found = data.rfind(b"\\n", 0, found)
    return 0
