"""Clean text as a terminal shows it: no escape sequences, carriage returns applied. Pure.

The last `LINES` lines are a screen, in which the cursor moves and text is overwritten or erased.
Lines that leave it at the top are final. Its lines do not wrap. Escape sequences have a maximum
length, so that a stray introducer does not swallow the text after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LINES: Final = 50
"""How many lines can still be edited."""

LINE_CHARACTERS: Final = 16_384
"""A line longer than this is written and can no longer be edited. Text that would overwrite it goes
on a new line."""

COLUMNS: Final = 80
"""The cursor does not move to the right beyond this and the end of the line."""

_STRING: Final = r"[^\x00-\x08\x0a-\x1f\x7f]{0,4096}"
_CONTROL = re.compile(
    r"(?P<edit>[\n\r\x08])"
    r"|\x1b\[(?P<first>[0-9]{0,9})(?:;(?P<second>[0-9]{0,9}))?(?P<final>[A-HJKf])"
    r"|\x1b\[[0-?]{0,256}[ -/]{0,16}[@-~]"  # CSI without effect, such as hiding the cursor
    rf"|\x1b[\]PX^_]{_STRING}(?:\x07|\x1b\\)"  # OSC (links, titles), DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,16}[0-OQ-WYZ\\`-~]"  # others, such as the choice of a character set
    r"|[\x1b\x07]"  # what belongs to no sequence
)
_UNFINISHED = re.compile(
    rf"(?:\r|\x1b(?:\[[0-?]{{0,256}}[ -/]{{0,16}}|[\]PX^_]{_STRING}\x1b?|[ -/]{{0,16}}))\Z"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,256}m")
_C1 = re.compile("[\x80-\x9f\ud800-\udfff]")
_CONTROLS: Final = bytes([*range(9), *range(11, 32), 127])
_HARMLESS: Final = bytes(set(range(256)) - set(_CONTROLS))
_VISIBLE: Final[dict[int, int | str]] = {
    **{code: 0x2400 + code for code in _CONTROLS if code not in (7, 8, 11, 12, 13, 27, 127)},
    11: "\n",
    12: "\n",
    127: 0x2421,
}


class Terminal:
    """Clean text piece by piece.

    Parameters
    ----------
    write
        Called with each piece of clean text. Only `finish` writes the screen.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._held = ""
        self._start_over()

    def _start_over(self, *, is_cut: bool = False) -> None:
        self._lines = [""]
        self._row = self._column = 0
        self._is_cut = is_cut  # the beginning of the first line has been written

    def feed(self, text: str) -> None:
        """Clean more text."""
        if self._held:
            text, self._held = self._held + text, ""
        if not text.isascii():
            text = _C1.sub("\ufffd", text)
        if "\r" in text or "\x1b" in text:
            unfinished = _UNFINISHED.search(text, max(0, text.rfind("\x1b", 0, -1)))
            if unfinished is not None:
                text, self._held = text[: unfinished.start()], unfinished.group()
            text = _COLOUR.sub("", text.replace("\r\n", "\n"))
        is_plain = not text.encode().translate(None, _HARMLESS)
        if is_plain and self._row == len(self._lines) - 1:
            first, *others = text.split("\n")
            self._put(first)
            if others:
                self._lines += others
                self._row, self._column = len(self._lines) - 1, len(others[-1])
            is_long = len(text) > LINE_CHARACTERS or len(self._lines[-1]) > LINE_CHARACTERS
        else:
            self._edit(text if is_plain else text.translate(_VISIBLE))
            is_long = True
        self._let_go(is_long=is_long)

    def finish(self) -> None:
        """Write the screen, and drop an unfinished escape sequence."""
        self._held = ""
        self._write_lines(len(self._lines), "")
        self._start_over()

    def _write_lines(self, count: int, end: str) -> None:
        text = "\n".join(self._lines[:count]) + end
        if text:
            self._write(text)

    def _let_go(self, *, is_long: bool = False) -> None:
        """Write the lines that leave the screen; if one may be too long, also those up to it."""
        count = max(0, len(self._lines) - LINES)
        for index in range(count, len(self._lines) if is_long else 0):
            if len(self._lines[index]) > LINE_CHARACTERS:
                count = index + 1
        if count == len(self._lines):
            self._write_lines(count, "")
            self._start_over(is_cut=True)
        elif count:
            self._write_lines(count, "\n")
            del self._lines[:count]
            self._is_cut = False
            if count > self._row:
                self._column = 0
            self._row = max(0, self._row - count)

    def _edit(self, text: str) -> None:
        run, start = "", 0
        for match in _CONTROL.finditer(text):
            run += text[start : match.start()]
            start = match.end()
            if match.lastgroup is not None:
                self._put(run)
                run = ""
                if match.lastgroup == "edit":
                    self._edit_line(match[0])
                else:
                    self._obey(match["final"], int(match["first"] or 0), int(match["second"] or 0))
        self._put(run + text[start:])

    @property
    def _line(self) -> str:
        return self._lines[self._row] if self._row < len(self._lines) else ""

    @_line.setter
    def _line(self, line: str) -> None:
        self._lines += [""] * (self._row + 1 - len(self._lines))
        self._lines[self._row] = line

    def _put(self, run: str) -> None:
        """Overwrite the line from the current column on."""
        if run:
            line, end = self._line, self._column + len(run)
            self._line = line[: self._column].ljust(self._column) + run + line[end:]
            self._column = end

    def _edit_line(self, control: str) -> None:
        if control == "\n" or (control == "\r" and self._is_cut and self._row == 0):
            self._row, self._column = self._row + 1, 0
            if self._row >= len(self._lines):
                self._line = ""
                self._let_go()
        else:
            self._column = 0 if control == "\r" else max(0, self._column - 1)

    def _obey(self, final: str, first: int, second: int) -> None:
        """Move the cursor, or erase. Source: ECMA-48, *Control functions*."""
        row, column, line = self._row, self._column, self._line
        count, most = max(1, first), max(COLUMNS, len(line))
        match final:
            case "A" | "F":
                self._row = max(0, row - count)
            case "B" | "E":
                self._row = max(row, min(row + count, LINES - 1))
            case "C":
                self._column = max(column, min(column + count, most))
            case "D":
                self._column = max(0, column - count)
            case "G":
                self._column = min(count - 1, most)
            case "H" | "f":
                self._row, self._column = min(count, LINES) - 1, min(max(1, second) - 1, COLUMNS)
            case "K" | "J" if first == 1:
                self._line = " " * min(column + 1, len(line)) + line[column + 1 :]
                if final == "J":
                    self._lines[:row] = [""] * row
            case "K":
                self._line = "" if first == 2 else line[:column]
            case "J" if first == 0:
                self._lines[row:] = [line[:column]]
            case "J":  # the lines are not lost: they leave the screen at the top
                self._write_lines(len(self._lines), "\n" if self._lines[-1] else "")
                self._start_over()
        if final in "EF":
            self._column = 0


def clean(text: str) -> str:
    """Return `text` as a terminal shows it."""
    pieces: list[str] = []
    terminal = Terminal(pieces.append)
    terminal.feed(text)
    terminal.finish()
    return "".join(pieces)
