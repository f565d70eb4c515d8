"""The terminal: text, live outputs, and input for code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from getpass import getpass
from typing import Any, Final, Literal, TextIO, TypeAlias

import msgspec

from ..client.display import one_line, plain
from ..client.events import OutputChanged, apply
from ..client.result import joined
from ..models import Input, OutputChange
from ..text.terminal import clean
from ..types import FINAL_STATUSES, Output, Status
from .usage import Declined, UsageError

Colour: TypeAlias = Literal["bold", "red", "green"]

Columns: TypeAlias = Mapping[str, str | Callable[[Any], str]]
"""The heads of a table's columns, each with the field that it shows, or a function of the row."""

Progress: TypeAlias = Callable[[int], object]
"""Takes how much more is done."""

_CODES: Final[dict[Colour, int]] = {"bold": 1, "red": 31, "green": 32}


class Console:
    """Writes a command's results to standard output, and notes and errors to standard error.

    Parameters
    ----------
    quiet
        Whether to write only errors, and no notes, to standard error.
    is_json
        Whether to write JSON to standard output, and nothing else.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        is_json: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        self.is_json = is_json
        self._quiet = quiet

    def is_terminal(self, name: str = "stdout") -> bool:
        """Return whether a stream, ``stdout`` or ``stderr``, is a terminal."""
        return (self.err if name == "stderr" else self.out).isatty()

    @property
    def shows_progress(self) -> bool:
        """Whether standard error may show how far long work is."""
        return not self._quiet and not self.is_json and self.is_terminal("stderr")

    def text(self, text: str, name: str = "stdout", *, overwriting: bool = False) -> None:
        """Write text from a kernel, with control characters made visible or removed.

        Parameters
        ----------
        text
            The kernel's text.
        name
            The stream: ``stdout`` or ``stderr``.
        overwriting
            Whether to keep carriage returns, so that the terminal overwrites the line.
        """
        shown = "\r".join(map(plain, text.split("\r"))) if overwriting else plain(text)
        _write(self.err if name == "stderr" else self.out, shown)

    def sequence(self, sequence: str, name: str = "stdout") -> None:
        """Write a control sequence to the terminal, unchanged."""
        _write(self.err if name == "stderr" else self.out, sequence)

    def line(self, line: str = "", colour: Colour | None = None) -> None:
        """Write a line, in a colour if standard output is a terminal."""
        _write(self.out, _coloured(plain(line), colour, self.out) + "\n")

    def answer(self, value: Any, *lines: str) -> None:
        """Write a value as JSON if that is asked for, else lines about it."""
        if self.is_json:
            self.json(value)
            return
        for line in lines:
            self.line(line)

    def listing(
        self, rows: Sequence[msgspec.Struct], columns: Columns, last_width: int = 60
    ) -> None:
        """Write models as JSON if that is asked for, else as a table.

        Parameters
        ----------
        rows
            The models.
        columns
            What the table shows of each. A field that is null is shown as a hyphen.
        last_width
            Characters to which the last column is cut.
        """
        if self.is_json:
            self.json(rows)
            return
        cells = [list(columns)]
        for row in rows:
            shown = [
                getattr(row, of) if isinstance(of, str) else of(row) for of in columns.values()
            ]
            cells.append(["-" if cell is None else one_line(str(cell), 200) for cell in shown])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for number, (*front, last) in enumerate(cells):
            padded = [cell.ljust(width) for cell, width in zip(front, widths, strict=False)]
            line = "  ".join([*padded, one_line(last, last_width)]).rstrip()
            self.line(line, None if number else "bold")

    @contextmanager
    def progress(
        self, what: str, unit: str, total: int | None = None, *, stays: bool = True
    ) -> Iterator[Progress]:
        """Show a progress bar on a terminal, unless the console is quiet or writes JSON.

        Parameters
        ----------
        what
            The work.
        unit
            What is counted; bytes are ``B``.
        total
            How much there is to do; None if that is not known.
        stays
            Whether the bar stays on the terminal when the work has ended.
        """
        if not self.shows_progress:
            yield lambda more: None
            return
        from tqdm import tqdm  # type: ignore[import-untyped]  # takes long to import

        with tqdm(
            desc=what, unit=unit, total=total, unit_scale=unit == "B", leave=stays, file=self.err
        ) as bar:
            yield bar.update

    def json(self, value: Any) -> None:
        """Write a value as indented JSON."""
        _write(self.out, msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")

    def note(self, note: str, colour: Colour | None = None) -> None:
        """Write a note to standard error, unless the console is quiet."""
        if not self._quiet:
            self.complain(note, colour)

    def complain(self, message: str, colour: Colour | None = None) -> None:
        """Write a message to standard error, even if the console is quiet."""
        self.out.flush()
        _write(self.err, _coloured(plain(message).rstrip("\n"), colour, self.err) + "\n")

    def confirm(self, question: str, *, otherwise: str, declined: str) -> None:
        """Ask the user a question, and go on only after a yes.

        Parameters
        ----------
        otherwise
            What to do where nobody can answer, for the error message.
        declined
            What is so if the answer is no, for the message.

        Raises
        ------
        Declined
            The user did not say yes.
        UsageError
            Standard input is not a terminal.
        """
        if not sys.stdin.isatty():
            raise UsageError(otherwise)
        self.sequence(f"{question} [y/N] ", "stderr")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Declined(declined)


def colour_of(status: Status) -> Colour | None:
    """Return the colour of an execution's status; None while it has not finished."""
    if status not in FINAL_STATUSES:
        return None
    return "green" if status == "ok" else "red"


def _coloured(text: str, colour: Colour | None, stream: TextIO) -> str:
    """Return text with the control sequences of a colour, if the stream shows colours.

    Source: https://no-color.org
    """
    if colour is None or not stream.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


_ERASE_LINE: Final = "\r\x1b[K"


class LiveView:
    """Writes outputs as they change.

    Written text stays: an output that is replaced is written again. Only the last line is
    overwritten, so that progress bars look right. A terminal overwrites the line itself. For a
    pipe or a file, the line is held back until it ends.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._outputs: list[Output] = []
        self._open_line: tuple[int, str] | None = None
        """Index and name of the stream output with an unfinished last line."""
        self._held = ""
        """The part of that line that is held back."""

    def show(self, event: OutputChanged) -> None:
        """Write the change of an output."""
        change = event.change
        before = self._outputs[change.index] if change.index < len(self._outputs) else None
        apply(self._outputs, change)
        if change.truncate is True:
            self.end_line()
            return
        output = self._outputs[change.index]
        if output["output_type"] == "stream":
            self._show_stream(change.index, output, before)
        else:
            self.end_line()
            self._show_whole(output)

    def finish(self, outputs: list[Output]) -> None:
        """Write the outputs that no event reported, for example because the connection broke."""
        for index, output in enumerate(outputs):
            if self._outputs[index : index + 1] != [output]:
                self.show(OutputChanged(OutputChange(index=index, output=output)))
        self.end_line()

    def end_line(self) -> None:
        """End the unfinished line, so that further text starts a new one."""
        if self._open_line is not None:
            self._console.text(clean(self._held) + "\n", self._open_line[1])
            self._open_line = None
            self._held = ""

    def _show_stream(self, index: int, output: Output, before: Output | None) -> None:
        name, text = output["name"], joined(output["text"])
        shown = joined(before["text"]) if before is not None and before.get("name") == name else ""
        if self._open_line is not None and self._open_line[0] != index:
            self.end_line()
        last_line = shown.rfind("\n") + 1
        if text.startswith(shown):
            new = text[len(shown) :]
        elif text.startswith(shown[:last_line]):
            self._rewind(name)
            new = text[last_line:]
        else:
            self.end_line()
            new = text
        self._write(name, new)
        self._open_line = (index, name) if text and not text.endswith("\n") else None

    def _write(self, name: str, text: str) -> None:
        if self._console.is_terminal(name):
            self._console.text(text, name, overwriting=True)
            return
        lines, end, self._held = (self._held + text).rpartition("\n")
        self._console.text(clean(lines) + end, name)

    def _rewind(self, name: str) -> None:
        """Return to the start of the last line."""
        if self._console.is_terminal(name):
            self._console.sequence(_ERASE_LINE, name)
        self._held = ""

    def _show_whole(self, output: Output) -> None:
        if output["output_type"] == "error":
            lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
            self._console.text("\n".join(lines).rstrip("\n") + "\n", "stderr")
            return
        data = output["data"]
        if "text/plain" in data:
            self._console.text(str(joined(data["text/plain"])).rstrip("\n") + "\n")


PROMPT_WIDTH = 500


def ask_at_terminal(asked: Input, console: Console) -> str:
    """Return the line that the user types. The prompt goes to standard error.

    Raises
    ------
    KeyboardInterrupt
        Standard input is at its end. The caller then cancels the execution, as after Ctrl-C.
    """
    prompt = one_line(asked.prompt, PROMPT_WIDTH)
    console.out.flush()
    if asked.password and sys.stdin.isatty():
        try:
            return getpass(f"{prompt} ", stream=console.err)
        except EOFError:
            raise KeyboardInterrupt from None
    console.err.write(f"{prompt} ")
    console.err.flush()
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.removesuffix("\n")
