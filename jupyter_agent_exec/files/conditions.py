"""What the headers about ranges and versions of a file ask for. Pure.

Source: RFC 9110, sections 13 and 14. All our ETags are strong; a weak one matches none of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import RangeNotSatisfiable

_RANGE = re.compile(r"bytes=(?P<first>\d{0,19})-(?P<last>\d{0,19})", re.ASCII)
_TAG = re.compile(r'(?P<weak>W/)?(?P<tag>"[^"]*")')


class Span(NamedTuple):
    """Part of a file."""

    start: int
    end: int
    """Of the byte behind its last."""


class Conditions(NamedTuple):
    """What must be true of the file that a write is about."""

    if_match: str | None = None
    if_none_match: str | None = None


def span_of(header: str | None, size: int) -> Span | None:
    """Return the part of a file that a `Range` asks for; None is the whole.

    Several ranges, and what is no range of bytes, stand for the whole too, as they may.

    Raises
    ------
    RangeNotSatisfiable
        No byte of it is in the file.
    """
    asked = _RANGE.fullmatch((header or "").strip())
    if asked is None or not (asked["first"] or asked["last"]):
        return None
    if not asked["first"]:
        start, end = max(0, size - int(asked["last"])), size
    else:
        start = int(asked["first"])
        end = min(int(asked["last"]) + 1, size) if asked["last"] else size
        if asked["last"] and int(asked["last"]) < start:
            return None
    if start >= size:
        raise RangeNotSatisfiable(f"The file has {size:,} bytes.", bytes=size)
    return Span(start, end)


def matches(header: str, etag: str) -> bool:
    """Tell whether an `If-Match` or `If-Range` names a strong ETag; `*` names any."""
    if header.strip() == "*":
        return True
    return any(found["tag"] == etag and not found["weak"] for found in _TAG.finditer(header))
