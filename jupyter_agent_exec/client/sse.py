"""Server-sent events out of bytes, however these are cut.

Source: HTML standard, *Server-sent events*, section "Parsing an event stream".
"""

from __future__ import annotations

import re

from msgspec import Struct

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Message(Struct, frozen=True):
    """One event of a stream."""

    event: str
    data: str
    id: str
    """The last id that the stream gave, in this event or before it."""


class EventParser:
    """Turn an event stream's bytes into messages."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[Message]:
        """Take the next bytes and return the messages that they complete."""
        if self._after_cr and chunk:
            # A CR ended the line before; an LF here is the other half of that line end.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._pending += chunk
        messages: list[Message] = []
        start = 0
        for end in _LINE_END.finditer(self._pending, self._searched):
            message = self._take(self._pending[start : end.start()])
            start = end.end()
            if message is not None:
                messages.append(message)
            self._after_cr = start == len(self._pending) and end.group() == b"\r"
        self._pending = self._pending[start:]
        self._searched = len(self._pending)
        return messages

    def _take(self, line: bytearray) -> Message | None:
        text = line.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if not text:
            return self._dispatch()
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Message | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        if not data:
            return None
        return Message(event=event or "message", data="\n".join(data), id=self._id)
