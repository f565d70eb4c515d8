"""Write to a terminal, a pipe or a file; whatever comes from a kernel is made harmless."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import msgspec

from ..client.display import one_line, plain


class Console:
    """Standard output for what was asked for, standard error for what is said about it.

    Parameters
    ----------
    quiet
        Whether only errors are said on standard error.
    """

    def __init__(
        self, *, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        self._quiet = quiet

    def is_terminal(self, name: str = "stdout") -> bool:
        """Whether the stream of this name, ``stdout`` or ``stderr``, is a terminal."""
        return (self.err if name == "stderr" else self.out).isatty()

    def text(self, text: str, name: str = "stdout", *, overwriting: bool = False) -> None:
        """Write text from a kernel, as it is but for control characters.

        Parameters
        ----------
        text
            What the kernel wrote.
        name
            The stream: ``stdout`` or ``stderr``.
        overwriting
            Whether carriage returns are for the terminal to obey.
        """
        shown = "\r".join(map(plain, text.split("\r"))) if overwriting else plain(text)
        _write(self.err if name == "stderr" else self.out, shown)

    def sequence(self, sequence: str, name: str = "stdout") -> None:
        """Write a control sequence of our own to the terminal."""
        _write(self.err if name == "stderr" else self.out, sequence)

    def line(self, line: str = "") -> None:
        """Write a line."""
        _write(self.out, plain(line) + "\n")

    def json(self, value: Any) -> None:
        """Write a value as indented JSON."""
        _write(self.out, msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")

    def note(self, note: str) -> None:
        """Say something about what goes on."""
        if not self._quiet:
            self.complain(note)

    def complain(self, message: str) -> None:
        """Say what is wrong."""
        self.out.flush()
        _write(self.err, plain(message).rstrip("\n") + "\n")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], last_width: int) -> None:
        """Write rows in columns; the last column is cut to `last_width`, the others are whole."""
        cells = [list(head), *([one_line(cell, 200) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            *front, last = row
            padded = [cell.ljust(width) for cell, width in zip(front, widths, strict=False)]
            self.line("  ".join([*padded, one_line(last, last_width)]).rstrip())


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
