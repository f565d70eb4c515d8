"""Patterns of contents paths, as the scopes of agent tokens have them. Pure.

A pattern is compared part by part and case by case: `*` stands for any text within a part, a part
`**` for any number of parts. Only a path that is written in the one plain way matches at all, so
that no other way of writing it leads round a pattern.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidRequest

EVERYWHERE: Final = "**"

_ODD: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE: Final = re.compile(r"RTC:")
_ANY_PARTS: Final = "**"


def plain(path: str) -> str | None:
    """Return a contents path as it is compared; None if it is not written in the plain way.

    Slashes at its ends do not count. Empty parts, `.` and `..`, backslashes, control characters
    and the drive under which pages open live documents do not belong in one.
    """
    path = path.strip("/")
    parts = path.split("/")
    if _ODD.search(path) or _DRIVE.match(path) or any(part in ("", ".", "..") for part in parts):
        return None
    return path


def checked_pattern(pattern: str, field: str) -> str:
    """Return a pattern in the plain way.

    Raises
    ------
    InvalidRequest
        Nothing could match it, or it does not mean what it seems to.
    """
    found = plain(pattern)
    if found is None or any("**" in part and part != "**" for part in found.split("/")):
        raise InvalidRequest(
            f"{field}: {pattern!r} is no pattern of contents paths. Write parts divided by '/', "
            "without '.', '..' and backslashes; '*' stands for any text within a part, a part "
            "'**' for any number of parts.",
            field=field,
        )
    return found


def matches(pattern: str, path: str) -> bool:
    """Tell whether a path in the plain way matches a pattern in the plain way."""
    return _match(tuple(pattern.split("/")), tuple(path.split("/")))


def _match(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Compare part by part; whatever the pattern, in no more steps than both have parts."""
    reached = {0}
    for part in pattern:
        if part == _ANY_PARTS:
            reached = set(range(min(reached, default=len(path) + 1), len(path) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(path) and _is_part(part, path[at])}
    return len(path) in reached


def _is_part(pattern: str, part: str) -> bool:
    """Compare one part; each text between stars is looked for once, from left to right."""
    first, *middle = pattern.split("*")
    if not middle:
        return part == first
    last = middle.pop()
    if len(part) < len(first) + len(last) or not (part.startswith(first) and part.endswith(last)):
        return False
    at, end = len(first), len(part) - len(last)
    for text in middle:
        at = part.find(text, at, end)
        if at < 0:
            return False
        at += len(text)
    return True
