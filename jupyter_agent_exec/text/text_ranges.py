"""Reads a part of a large text: a range of it, or the lines in a range that contain a text."""

from __future__ import annotations

import io
from typing import BinaryIO, Final

from ..models import Text

LINE_BYTES: Final = 1_000
"""A longer line is searched in pieces of this length."""
SEARCH_BYTES: Final = 1 << 26
"""Bytes after which a search stops; it can then be continued."""


def read_range(
    file: BinaryIO, offset: int, limit: int, match: str = "", omitted_bytes: int = 0
) -> Text:
    """Return up to `limit` bytes of a UTF-8 text, whole characters and at least one of them.

    This blocks.

    Parameters
    ----------
    file
        A seekable file.
    offset
        Byte at which to start; moved back to the start of a character, and to the text's end if it
        is beyond.
    match
        If not empty, return only the lines from there on that contain it, ignoring case. Each
        follows its own offset and a colon, and there is at least one if any is found.
    omitted_bytes
        Bytes that were not kept of the text; passed on to the result.
    """
    total = file.seek(0, io.SEEK_END)
    start = _character_start(file, min(offset, total))
    file.seek(start)
    text, end = _lines(file, start, limit, match) if match else _range(file, start, limit)
    return Text(
        text=text,
        offset=start,
        next_offset=end if end < total else None,
        total_bytes=total,
        omitted_bytes=omitted_bytes,
    )


def _range(file: BinaryIO, start: int, limit: int) -> tuple[str, int]:
    """Return the text from the file's position on, and the offset of what follows."""
    data = file.read(max(limit, 4))
    if len(data) > limit:
        data = data[: _character_end(data, limit)]
    data = _whole(data)
    return data.decode("utf-8", "replace"), start + len(data)


def _lines(file: BinaryIO, start: int, limit: int, match: str) -> tuple[str, int]:
    """Return the lines that match, and the offset at which to search further."""
    found: list[str] = []
    size, offset, match = 0, start, match.casefold()
    while offset - start < SEARCH_BYTES and (data := file.readline(LINE_BYTES)):
        if not data.endswith(b"\n"):
            data = _whole(data)
            file.seek(offset + len(data))
        text = data.decode("utf-8", "replace").rstrip("\n")
        if match in text.casefold():
            line = f"{offset}: {text}\n"
            size += len(line.encode())
            if found and size > limit:
                break
            found.append(line)
        offset += len(data)
    return "".join(found), offset


def _whole(data: bytes) -> bytes:
    """Return data without an incomplete character at its end, but not nothing."""
    return data[: _character_end(data, len(data))] or data


def _character_start(file: BinaryIO, offset: int) -> int:
    """Return the start of the character in which `offset` lies."""
    first = max(0, offset - 3)
    file.seek(first)
    before = file.read(offset + 1 - first)
    at = offset - first
    while 0 < at < len(before) and before[at] & 0xC0 == 0x80:
        at -= 1
    return first + at


def _character_end(data: bytes, end: int) -> int:
    """Return the end of the last whole character in `data[:end]`."""
    if end < len(data):
        while end and data[end] & 0xC0 == 0x80:
            end -= 1
        return end or (len(data[:1]) and _first_length(data))
    start = end - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return end if end == 0 or start + _first_length(data[start:]) <= end else start


def _first_length(data: bytes) -> int:
    """Return how many bytes the first character of `data` has."""
    lead = data[0]
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
