"""The text of a stream output with its carriage returns and backspaces carried out. Pure.

As JupyterLab does it to what a person's cell prints: an unfinished line can be written over, and
its end is that of the line, wherever in it was written last.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_EDIT = re.compile("[\r\b]")


class Line(NamedTuple):
    """The last line of a text, which is not finished."""

    text: str = ""
    column: int = 0
    """Where what comes next is written."""


def carried_out(text: str) -> str:
    """Return a whole text with what edits its lines carried out."""
    return write(Line(), text)[0]


def last_line(text: str) -> Line:
    """Return the last line of a text that is all carried out; it goes on at the end."""
    line = text[text.rfind("\n") + 1 :]
    return Line(line, len(line))


def write(line: Line, text: str) -> tuple[str, Line]:
    """Return what stands in a line's place after `text` was written to it, and the new line."""
    if line.column == len(line.text) and _EDIT.search(text) is None:
        whole = line.text + text
        return whole, last_line(whole)
    finished = []
    *full, rest = text.split("\n")
    for part in full:
        finished.append(_edited(line, part).text + "\n")
        line = Line()
    line = _edited(line, rest)
    return "".join([*finished, line.text]), line


def alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _edited(line: Line, text: str) -> Line:
    """Return a line after text without line ends was written to it."""
    shown, column = line
    start = 0
    for match in _EDIT.finditer(text):
        shown, column = _over(shown, column, text[start : match.start()])
        start = match.end()
        if match.group() == "\r":
            column = 0
        elif column:
            column -= 1
            shown = shown[:column] + shown[column + 1 :]
    return Line(*_over(shown, column, text[start:]))


def _over(line: str, column: int, text: str) -> tuple[str, int]:
    end = column + len(text)
    return line[:column] + text + line[end:], end
