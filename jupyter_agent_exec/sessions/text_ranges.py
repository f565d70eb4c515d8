"""Reads parts of a large text: a range, the lines that match a pattern, or all but what matches.

The pattern comes from a client, and Python's regular expressions can run without end while they
hold the interpreter's lock. So the search runs in its own process. It returns the lines found so
far when its time is over, and is killed if it does not.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from ..errors import InvalidRequest
from ..models import Text, TextMatch, TextMatches

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


def grep(
    file: BinaryIO, pattern: str, offset: int, limit: int, omitted_bytes: int = 0
) -> TextMatches:
    """Return up to `limit` lines of a UTF-8 text in which a regular expression is found.

    This blocks, up to `KILL_TIMEOUT`. Very long lines are searched in pieces. A search that takes
    too long stops and returns where to continue.

    Parameters
    ----------
    file
        A seekable file; a real file is not read into memory.
    offset
        Byte at which to start, normally a `next_offset`.
    omitted_bytes
        Bytes that were not kept of the text; passed on to the result.

    Raises
    ------
    InvalidRequest
        If the pattern is not a regular expression, or takes too long.
    """
    _check(offset, limit)
    if len(pattern) > PATTERN_CHARACTERS:
        raise InvalidRequest(
            f"The pattern is longer than {PATTERN_CHARACTERS} characters.",
            field="grep",
            allowed=PATTERN_CHARACTERS,
        )
    total = file.seek(0, io.SEEK_END)
    start = _character_start(file, min(offset, total))
    answer: dict[str, Any] = _run_worker(
        file,
        {
            "pattern": pattern,
            "start": start,
            "line": 1 + _count_lines(file, start),
            "limit": limit,
            "seconds": SEARCH_TIMEOUT,
        },
        "grep",
    )
    if "error" in answer:
        raise InvalidRequest(
            f"The pattern is not a regular expression: {answer['error']}.", field="grep"
        )
    return TextMatches(
        matches=msgspec.convert(answer["matches"], list[TextMatch]),
        next_offset=answer["next_offset"],
        total_bytes=total,
        omitted_bytes=omitted_bytes,
    )


def substitute(
    texts: Sequence[str], patterns: Sequence[str], placeholder: str, field: str
) -> list[str]:
    """Return texts with a placeholder for all that regular expressions match.

    This blocks, up to `KILL_TIMEOUT`.

    Parameters
    ----------
    field
        Names the patterns in an error.

    Raises
    ------
    InvalidRequest
        If it takes too long, or a pattern is not a regular expression.
    """
    file = io.BytesIO(json.dumps(texts).encode())
    request: dict[str, object] = {"patterns": list(patterns), "placeholder": placeholder}
    done: list[str] = _run_worker(file, request, field)["texts"]
    return done


def _run_worker(file: BinaryIO, request: dict[str, object], field: str) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", str(_WORKER), json.dumps(request)]
    try:
        descriptor: int | None = file.fileno()
    except OSError:
        descriptor = None
    whole = None
    if descriptor is None:
        file.seek(0)
        whole = file.read()
    try:
        done = subprocess.run(  # noqa: S603 -- our own script
            command,
            stdin=descriptor,
            input=whole,
            capture_output=True,
            timeout=KILL_TIMEOUT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise InvalidRequest(
            f"The pattern takes more than {KILL_TIMEOUT:g} seconds; a simpler one may do.",
            field=field,
        ) from None
    except subprocess.CalledProcessError:
        raise InvalidRequest(
            "The text cannot be searched for this pattern; a simpler one may do.", field=field
        ) from None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


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


def _count_lines(file: BinaryIO, end: int) -> int:
    """Return the number of line ends before a byte."""
    file.seek(0)
    count = 0
    while end > 0 and (block := file.read(min(end, _BLOCK_BYTES))):
        count += block.count(b"\n")
        end -= len(block)
    return count
