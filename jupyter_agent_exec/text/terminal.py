"""Clean text as a terminal shows it: no escape sequences, carriage returns applied. Pure.

Carriage return, backspace and erase-in-line edit a line until its line end. Cursor movements to
other lines are dropped. Escape sequences have a maximum length, so that a stray introducer does not
swallow the text after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LINE_CHARACTERS: Final = 16_384
"""An unfinished line longer than this is written and can no longer be edited. Text that would
overwrite it goes on a new line."""

_STRING: Final = r"[^\x00-\x08\x0a-\x1f\x7f]{0,4096}"
_SEQUENCE = re.compile(
    rf"\x1b\[[0-?]{{0,256}}[ -/]{{0,16}}[@-~]"  # CSI: colours, cursor
    rf"|\x1b[\]PX^_]{_STRING}(?:\x07|\x1b\\)"  # OSC (links, titles), DCS, SOS, PM, APC
    rf"|\x1b[ -/]{{0,16}}[0-OQ-WYZ\\`-~]"  # others, such as the choice of a character set
)
_UNFINISHED = re.compile(
    rf"\x1b(?:\[[0-?]{{0,256}}[ -/]{{0,16}}|[\]PX^_]{_STRING}\x1b?|[ -/]{{0,16}})\Z"
)
_ERASE = re.compile(r"\x1b\[([012]?)K")
_EDIT = re.compile(r"[\r\x08\x01-\x03]")
_EDITS: Final = {"": "\x01", "0": "\x01", "1": "\x02", "2": "\x03"}
_C1 = re.compile("[\x80-\x9f\ud800-\udfff]")
_CONTROLS: Final = bytes([*range(9), *range(11, 32), 127])
_HARMLESS: Final = bytes(set(range(256)) - set(_CONTROLS))
_VISIBLE: Final = {
    **{code: 0x2400 + code for code in _CONTROLS if code not in (7, 8, 11, 12, 13, 27, 127)},
    7: None,
    11: "\n",
    12: "\n",
    127: 0x2421,
}


class Terminal:
    """Clean text piece by piece.

    Parameters
    ----------
    write
        Called with each piece of clean text. Only `finish` writes an unfinished line.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._line = ""
        self._column = 0
        self._held = ""
        self._let_go = False  # the start of the line has been written
        self._returned = False  # a carriage return came after it

    def feed(self, text: str) -> None:
        """Clean more text."""
        if self._held:
            text, self._held = self._held + text, ""
        if not text.isascii():
            text = _C1.sub("\ufffd", text)
        if not text.encode().translate(None, _HARMLESS):
            self._plain(text)
            return
        unfinished = _UNFINISHED.search(text, max(0, text.rfind("\x1b", 0, -1)))
        if unfinished is not None:
            text, self._held = text[: unfinished.start()], unfinished.group()
        text = _clean(text)
        if _EDIT.search(text) is None:
            self._plain(text)
            return
        start = 0
        while (end := text.find("\n", start)) >= 0:
            self._edit(text[start:end])
            self._end_line("\n")
            start = end + 1
        self._edit(text[start:])

    def finish(self) -> None:
        """Write the unfinished line, and drop an unfinished escape sequence."""
        self._held = ""
        self._end_line("")

    def _plain(self, text: str) -> None:
        """Process text without line-editing characters."""
        end = text.rfind("\n") + 1
        if end:
            first = text.find("\n")
            self._put(text[:first])
            self._end_line(text[first:end])
        self._put(text[end:])

    def _end_line(self, rest: str) -> None:
        self._write_line(rest)
        self._let_go = self._returned = False

    def _write_line(self, rest: str) -> None:
        if self._line or rest:
            self._write(self._line + rest)
        self._line, self._column = "", 0

    def _put(self, run: str) -> None:
        """Overwrite the line from the current column on."""
        if not run:
            return
        if self._returned and self._let_go:
            self._end_line("\n")
        end = self._column + len(run)
        self._line = self._line[: self._column] + run + self._line[end:]
        self._column = end
        if len(self._line) > LINE_CHARACTERS:
            self._write_line("")
            self._let_go, self._returned = True, False

    def _edit(self, text: str) -> None:
        """Process a part of one line with line-editing characters."""
        start = 0
        for match in _EDIT.finditer(text):
            self._put(text[start : match.start()])
            start = match.end()
            self._move(match.group())
        self._put(text[start:])

    def _move(self, control: str) -> None:
        if control == "\r":
            if self._let_go:
                self._write_line("")
            self._column = 0
            self._returned = True
        elif control == "\x08":
            self._column = max(0, self._column - 1)
        elif control == "\x01":
            self._line = self._line[: self._column]
        elif control == "\x02":
            self._line = " " * min(self._column, len(self._line)) + self._line[self._column :]
        else:
            self._line = " " * self._column


def clean(text: str) -> str:
    """Return `text` as a terminal shows it."""
    pieces: list[str] = []
    terminal = Terminal(pieces.append)
    terminal.feed(text)
    terminal.finish()
    return "".join(pieces)


def _clean(text: str) -> str:
    """Drop escape sequences and make control characters harmless.

    Line-editing characters stay: carriage return, backspace, and U+0001 to U+0003, which stand for
    erasing to the line's end, to its start, and the whole line.
    """
    if "\x1b" not in text:
        return text.translate(_VISIBLE)
    pieces = []
    start = 0
    text = text.translate({**_VISIBLE, 7: 7})
    for match in _ERASE.finditer(text):
        pieces += [text[start : match.start()], _EDITS[match.group(1)]]
        start = match.end()
    text = "".join([*pieces, text[start:]])
    return _SEQUENCE.sub("", text).replace("\x1b", "").replace("\x07", "")
