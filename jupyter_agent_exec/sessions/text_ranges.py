"""Reads parts of a large text: a range, the lines that match a pattern, or all but what matches.

The pattern comes from a client, and Python's regular expressions can run without end while they
hold the interpreter's lock. So the search runs in its own process. It returns the lines found so
far when its time is over, and is killed if it does not.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO, Final

from ..errors import InvalidRequest
from ..models import Text

PATTERN_CHARACTERS: Final = 1000
SEARCH_TIMEOUT: Final = 2.0
"""Seconds after which a search stops at the next line; it can then be continued."""
KILL_TIMEOUT: Final = 5.0
"""Seconds after which a search that is stuck in one line is killed."""

_WORKER: Final = Path(__file__).with_name("line_search.py")
_BLOCK_BYTES: Final = 1 << 20


def read_range(file: BinaryIO, offset: int, limit: int, omitted_bytes: int = 0) -> Text:
    """Return up to `limit` bytes of a UTF-8 text, whole characters and at least one of them.

    Parameters
    ----------
    file
        A seekable file.
    offset
        Byte at which to start; moved back to the start of a character, and to the text's end if it
        is beyond.
    omitted_bytes
        Bytes that were not kept of the text; passed on to the result.

    Raises
    ------
    InvalidRequest
        If `offset` or `limit` is out of bounds.
    """
    _check(offset, limit)
    total = file.seek(0, io.SEEK_END)
    start = _character_start(file, min(offset, total))
    file.seek(start)
    data = file.read(max(limit, 4))
    if len(data) > limit:
        data = data[: _character_end(data, limit)]
    data = data[: _character_end(data, len(data))] or data
    end = start + len(data)
    return Text(
        text=data.decode("utf-8", "replace"),
        offset=start,
        next_offset=end if end < total else None,
        total_bytes=total,
        omitted_bytes=omitted_bytes,
    )


def _check(offset: int, limit: int) -> None:
    if offset < 0:
        raise InvalidRequest("offset must be 0 or more.", field="offset")
    if limit < 1:
        raise InvalidRequest("limit must be 1 or more.", field="limit")


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
