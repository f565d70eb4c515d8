"""Jupyter messages on the wire: decodes frames into messages, and encodes requests. Pure.

Source: messaging spec, *The wire protocol*.
"""

from __future__ import annotations

import hmac
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from ..text.redaction import HAS_TOKEN_IN_BYTES
from .in_kernel.ipykernel_workarounds import NUMBER

Frame: TypeAlias = bytes | bytearray | memoryview
"""A part of a message. A large one is not copied out of ZMQ's own memory."""

DELIMITER = b"<IDS|MSG>"
PROTOCOL_VERSION = "5.4"

LARGE_BYTES = 256 << 10
"""Content larger than this is taken in pieces of at most this size, if it is a stream's text."""

TOLD_BYTES = 64
"""How many bytes of large content tell whether it is a stream's text."""

MAX_DEPTH = 100
"""Maximum nesting of JSON in a message; later steps could not encode or copy deeper JSON."""

MOST_VALUES = 1_000_000
"""Maximum number of values in the JSON of a message. Small ones take 30 times their size in memory,
and a large message of them would hold up all threads for seconds."""

_CONTAINERS = frozenset((dict, list))

_NUMBERED = re.compile(re.escape(NUMBER) + rb"(\d{1,18})")

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
    size: int = 0
    """Size of the content in bytes, as it was sent."""
    buffers: Sequence[Frame] = ()
    """The binary parts of a comm message."""
    unread: bool = False
    """Whether `content` is empty because the message could not be read. If its headers could not
    be read either, they are empty too."""
    may_have_token: bool = True
    """Whether the content may have an agent token."""

    def without_content(self) -> Message:
        """Return this message as one whose content could not be read."""
        return Message(self.header, self.parent, {}, size=self.size, unread=True)


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
        parts = self._checked(frames)
        return None if parts is None else decoded(*parts)

    def messages(self, frames: Sequence[Frame], largest: int) -> Iterable[Message | None]:
        """Decode one message, in pieces if it is large; see `messages`."""
        parts = self._checked(frames)
        return (None,) if parts is None else messages(*parts, largest=largest)

    def _checked(
        self, frames: Sequence[Frame]
    ) -> tuple[Frame, Frame, Frame, Sequence[Frame]] | None:
        """Return header, parent header, content and buffers, if they are signed with our key."""
        try:
            start = frames.index(DELIMITER) + 1
            signature, header, parent, metadata, content, *buffers = frames[start:]
        except ValueError:
            return None
        told = self._sign((header, parent, metadata, content))
        if not hmac.compare_digest(told, bytes(signature)):
            return None
        return header, parent, content, buffers

    def large(self, frames: Sequence[Frame], size: int, beginning: Frame) -> LargeContent:
        """Return what takes the large content of a message, given the frames before it."""
        signature, header, parent, metadata = frames[-4:]
        auth = None if self._auth is None else self._auth.copy()
        if auth is not None:
            for part in (header, parent, metadata):
                auth.update(part)
        return LargeContent(header, parent, size, beginning, auth=auth, signature=bytes(signature))

    def _sign(self, parts: Iterable[Frame]) -> bytes:
        if self._auth is None:
            return b""
        auth = self._auth.copy()
        for part in parts:
            auth.update(part)
        return auth.hexdigest().encode()


class MessageNumbers:
    """The numbers that a kernel gives its messages, on one connection; see `keep_all`."""

    def __init__(self) -> None:
        self._last: int | None = None

    def skips(self, before: Frame) -> bool:
        """Return whether messages were dropped before the next one.

        Parameters
        ----------
        before
            The last frame before that message's delimiter.
        """
        found = _NUMBERED.fullmatch(before)
        if found is None:
            return False
        last, self._last = self._last, int(found[1])
        return last is not None and self._last != last + 1


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


def decoded(header: Frame, parent: Frame, content: Frame, buffers: Sequence[Frame] = ()) -> Message:
    """Decode the parts of a message, as far as they are readable."""
    size = len(content)
    about = _headers(header, parent)
    if about is None:
        return Message(Header(), Header(), {}, size=size, unread=True)
    try:
        return Message(
            *about,
            _content(content),
            size=size,
            buffers=buffers if about[0].msg_type.startswith("comm_") else (),
            may_have_token=HAS_TOKEN_IN_BYTES.search(content) is not None,
        )
    except (ValueError, RecursionError):
        return Message(*about, {}, size=size, unread=True)


def _headers(header: Frame, parent: Frame) -> tuple[Header, Header] | None:
    try:
        # Kernels built on xeus send null as the parent of `iopub_welcome`.
        return _decode_header(header), _decode_parent(parent) or Header()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class LargeContent:
    """Content that comes in chunks and is never held whole.

    A stream's text is decoded chunk by chunk. Other content is only counted. Whether the signature
    is right is known at the end. If it is not, text that was delivered before is followed by an
    unread message, so that the outputs count as incomplete; other content is dropped.

    Parameters
    ----------
    size
        The size of the whole content.
    beginning
        At least its first `TOLD_BYTES`. They are taken again.
    auth
        Checks the signature; it has taken the parts before. None if nothing is signed.
    """

    def __init__(
        self,
        header: Frame,
        parent: Frame,
        size: int,
        beginning: Frame,
        *,
        auth: hmac.HMAC | None = None,
        signature: bytes = b"",
    ) -> None:
        self._auth, self._signature = auth, signature
        self._about = _headers(header, parent) or (Header(), Header())
        self._size = self._left = self._unread = size
        self.has_told = False
        """Whether any text was returned."""
        stream = _STREAM.match(beginning) if self._about[0].msg_type == "stream" else None
        self.is_text = stream is not None
        """Whether this is a stream's text."""
        self._name = stream["name"].decode() if stream is not None else ""
        self._skip = stream.end() if stream is not None else 0
        self._held = b""

    def take(self, chunk: Frame) -> Message | None:
        """Take the next bytes; return the text that is complete with them.

        With the last chunk, an unread message has the size of what could not be read.
        """
        if self._auth is not None:
            self._auth.update(chunk)
        self._left -= len(chunk)
        text = self._text(chunk) if self.is_text else ""
        if not self._left and not self._is_signed:
            self._unread, text = self._size if self.has_told else 0, ""
        if text:
            self.has_told = True
            return Message(*self._about, {"name": self._name, "text": text}, size=len(chunk))
        if self._left or not self._unread:
            return None
        return Message(*self._about, {}, size=self._unread, unread=True)

    @property
    def _is_signed(self) -> bool:
        if self._auth is None:
            return True
        return hmac.compare_digest(self._auth.hexdigest().encode(), self._signature)

    def _text(self, chunk: Frame) -> str:
        data = self._held + bytes(chunk)
        start, self._skip = self._skip, 0
        end = _safe_end(data, len(data) - len(_END)) if self._left else len(data) - len(_END)
        try:
            if not self._left and data[end:] != _END:
                raise ValueError("there is more than a text")
            text = _string(b'"%b"' % data[start:end])
        except ValueError:  # it is not as simple as it looked
            self.is_text, self._held = False, b""
            return ""
        self._held = data[end:]
        self._unread = self._left + (len(self._held) if self._left else 0)
        return text


def messages(
    header: Frame,
    parent: Frame,
    content: Frame,
    buffers: Sequence[Frame] = (),
    *,
    largest: int,
) -> Iterable[Message]:
    """Decode the parts of a message that is in memory already.

    A stream's text that is large comes in pieces. Other content of more than `largest` bytes is not
    decoded.
    """
    if len(content) <= LARGE_BYTES:
        return (decoded(header, parent, content, buffers),)
    large = LargeContent(header, parent, len(content), content[:TOLD_BYTES])
    if not large.is_text and len(content) <= largest:
        return (decoded(header, parent, content, buffers),)
    starts = range(0, len(content), LARGE_BYTES)
    pieces = (large.take(content[start : start + LARGE_BYTES]) for start in starts)
    return (piece for piece in pieces if piece is not None)


def _content(data: Frame) -> dict[str, Any]:
    """Decode JSON. If it is not strict JSON (NaN, lone surrogates), use Python's own module.

    Raises
    ------
    ValueError, RecursionError
        If it is not JSON, not an object, nested too deeply, or has too many values.
    """
    if len(data) > MOST_VALUES and _values(bytes(data)) > MOST_VALUES:
        raise ValueError("content has too many values")
    try:
        content = _decode_content(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        content = json.loads(bytes(data).decode(errors="replace"))
        if not isinstance(content, dict):
            raise ValueError("content is not an object") from None
    may_be_deep = isinstance(data, memoryview) or data.count(b"{") + data.count(b"[") > MAX_DEPTH
    if may_be_deep and _is_deep(content):
        raise ValueError("content is nested too deeply")
    return content


def _values(data: bytes) -> int:
    """Return how many values JSON has at most, without decoding it."""
    values = _separators(data)
    strings = data.count(b'"') // 2
    if values <= MOST_VALUES or strings > 2 * MOST_VALUES:  # each is a value or a key
        return max(values, strings // 2)
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"")
    return sum(map(_separators, bare.split(b'"')[::2]))


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


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


def _string(data: bytes) -> str:
    """Decode a JSON string, as `_content` does; raise ValueError if it is not one."""
    try:
        return msgspec.json.decode(data, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return str(json.loads(data.decode(errors="replace")))


_END = b'"}'
_ESCAPE_BYTES = 12
"""The longest escape: a character beyond U+FFFF, as two surrogates."""
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]..\Z", re.DOTALL)


def _safe_end(data: bytes, end: int) -> int:
    """Return the last position up to `end` that is not within a character or an escape."""
    last = data.rfind(b"\\", max(0, end - _ESCAPE_BYTES), end)
    first = last
    while first > 0 and data[first - 1 : first] == b"\\":
        first -= 1
    if last >= 0 and (last - first) % 2 == 0:  # an escape begins here, which may not be complete
        is_second = _HIGH_SURROGATE.search(data, max(0, last - 6), last) is not None
        return last - 6 if is_second else last
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return max(0, end)
