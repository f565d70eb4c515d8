"""Makes changes to the outputs of a cell that users share through collaboration.

JupyterLab's pages apply such changes only in part. They put an inserted output last, whatever its
index. They add new text to the last output, whichever output grows. They merge a stream into the
previous stream of the same name, even if that has just been removed. So this module only adds
outputs at the end, and adds text only to the last output. For any other change, it removes all
outputs from some index on and adds them again.

Needs pycrdt, which comes with jupyter-collaboration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace
from pycrdt import Array, Map, Text

from ...models import OutputChange
from ...types import Output
from ..changes import Moved, SetOutputs, apply_output_changes, joined

_EDIT = re.compile("[\r\b]")


class Line(NamedTuple):
    """The last, unfinished line of a text."""

    text: str = ""
    column: int = 0
    """The column where the next character is written."""


def carried_out(text: str) -> str:
    """Return a text after its carriage returns and backspaces have taken effect."""
    return write(Line(), text)[0]


def last_line(text: str) -> Line:
    """Return the last line of a text without control characters, with the column at its end."""
    line = text[text.rfind("\n") + 1 :]
    return Line(line, len(line))


def write(line: Line, text: str) -> tuple[str, Line]:
    """Write `text` at a line. Return the text that replaces the line, and the new last line."""
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
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _edited(line: Line, text: str) -> Line:
    """Return a line after a text without newlines was written to it."""
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


SAFE_INTEGER = 2**53 - 1
"""The largest exact integer in JavaScript. Larger integers are sent as floats, because JSON cannot
hold a BigInt."""


class End(NamedTuple):
    """The end of a cell's outputs after our last change."""

    outputs: int
    """The number of outputs."""
    bytes: int
    """The length of the last output's text in bytes; 0 if it is not a stream."""
    line: Line
    """The last line of that text."""


class OutputsCheck:
    """Checks whether changes to a cell's outputs can be made, without making them.

    Parameters
    ----------
    code
        Whether the cell is a code cell.
    count
        The number of its outputs.
    is_stream
        Return whether the output at an index is a stream.
    as_left
        Whether the outputs are unchanged since our last change.
    """

    def __init__(
        self,
        *,
        code: bool,
        count: int = 0,
        is_stream: Callable[[int], bool] | None = None,
        as_left: bool = True,
    ) -> None:
        self._code = code
        self._count = count
        self._is_stream = is_stream
        self._as_left = as_left
        self._put: dict[int, bool] = {}

    def apply(self, change: SetOutputs) -> None:
        """Check changes in order.

        Raises
        ------
        Moved
            The changes cannot be made.
        """
        if not self._code:
            raise Moved(f"Cell {change.cell_id} is not a code cell.")
        for step in change.changes:
            self._step(step)

    def _step(self, step: OutputChange) -> None:
        index = step.index
        if step.truncate is not UNSET:
            self._count = min(self._count, index)
            self._as_left = self._as_left or index == 0
        if not self._as_left:
            raise Moved("The outputs have changed since the last update.")
        if step.output is not UNSET:
            if index > self._count:
                raise Moved(f"There is no output {index - 1}.")
            self._count = max(self._count, index + 1)
            self._put[index] = step.output["output_type"] == "stream"
        elif step.append is not UNSET and not self._grows(index):
            raise Moved(f"Output {index} is not a stream.")

    def _grows(self, index: int) -> bool:
        if index >= self._count:
            return False
        if index in self._put:
            return self._put[index]
        return self._is_stream is not None and self._is_stream(index)


class LiveOutputs:
    """The outputs of a cell.

    Parameters
    ----------
    end
        The end of the outputs after our last change; None if we never changed them.
    """

    def __init__(self, outputs: Array[Map[Any]], end: End | None) -> None:
        self._outputs = outputs
        self._end = end
        self._text: Text | None = None
        self._text_of = -1  # the number of outputs when the text was looked up

    @property
    def end(self) -> End:
        """The current end of the outputs."""
        if self._end is None:
            self._end = self._found_end()
        return self._end

    def shape(self) -> OutputsCheck:
        """Return an object that checks changes to these outputs."""
        return OutputsCheck(
            code=True,
            count=len(self._outputs),
            is_stream=lambda index: self._outputs[index]["output_type"] == "stream",
            as_left=self._end is None or self._end[:2] == (len(self._outputs), self._last_bytes()),
        )

    def apply(self, steps: Sequence[OutputChange]) -> None:
        """Make changes that were checked before."""
        for done, step in enumerate(steps):
            last = len(self._outputs) - 1
            if step.append is not UNSET and step.index == last:
                self._write(step.append)
            elif step.output is not UNSET and step.index == last + 1:
                self._add([step.output])
            else:
                self._rewrite(steps[done:])
                return

    # -- the end -----------------------------------------------------------------------------------

    def _last_text(self) -> Text | None:
        """Return the text of the last output if that is a stream."""
        count = len(self._outputs)
        if self._text_of != count:
            text = self._outputs[-1].get("text") if count else None
            self._text = text if isinstance(text, Text) else None
            self._text_of = count
        return self._text

    def _last_bytes(self) -> int:
        text = self._last_text()
        return 0 if text is None else len(text)

    def _found_end(self) -> End:
        text = self._last_text()
        line = Line() if text is None else last_line(str(text))
        return self._ends_with(line)

    def _ends_with(self, line: Line) -> End:
        return End(len(self._outputs), self._last_bytes(), line)

    # -- change ------------------------------------------------------------------------------------

    def _write(self, more: str) -> None:
        """Write to the last output's text."""
        before = self.end.line
        written, line = write(before, more)
        self._replace_end(before.text, written)
        self._end = self._ends_with(line)

    def _replace_end(self, before: str, after: str) -> None:
        """Replace `before`, the end of the last output's text, by `after`."""
        text = self._last_text()
        assert text is not None
        same = alike(before, after)
        if gone := len(before[same:].encode()):  # a shared text counts bytes
            end = len(text)
            del text[end - gone : end]
        text += after[same:]

    def _add(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            self._outputs.append(_shared(output))
        self._end = self._ends_with(_line_of(outputs[-1]) if outputs else Line())

    def _rewrite(self, steps: Sequence[OutputChange]) -> None:
        """Make changes that are not only additions at the end."""
        start = min(len(self._outputs), *(step.index for step in steps))
        before: list[Output] = [with_integers(output.to_py()) for output in self._outputs[start:]]
        shifted = [replace(step, index=step.index - start) for step in steps]
        after = apply_output_changes(self._with_cursor(before), shifted)
        same = _same(before, after)
        self._rewrite_from(start + same, before[same:], after[same:])
        last = after[-1] if after else None
        self._end = self._found_end() if last is None else self._ends_with(_line_of(last))

    def _with_cursor(self, outputs: list[Output]) -> list[Output]:
        """Return outputs whose last text moves the cursor to the column of the last line."""
        text, column = self.end.line
        if column == len(text):
            return outputs
        *others, last = outputs
        return [*others, {**last, "text": f"{last['text']}\r{text[:column]}"}]

    def _rewrite_from(self, start: int, before: list[Output], after: list[Output]) -> None:
        """Replace `before`, the outputs from `start` on, by `after`."""
        if not before:
            self._add(after)
            return
        stream = _stream_name(before[-1])
        if len(before) == 1 and after and stream is not None and stream == _stream_name(after[0]):
            self._replace_end(joined(before[0]["text"]), carried_out(joined(after[0]["text"])))
            self._add(after[1:])
            return
        if start and stream is not None and (not after or stream == _stream_name(after[0])):
            # A page would append to the stream that is being removed.
            after = [*(with_integers(output.to_py()) for output in self._outputs[:start]), *after]
            start = 0
        del self._outputs[start : len(self._outputs)]
        self._text_of = -1
        self._add(after)


def shareable(value: Any) -> Any:
    """Return a copy of JSON whose numbers JavaScript can represent."""
    if isinstance(value, dict):
        return {key: shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shareable(item) for item in value]
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        return float(value)
    return value


def with_integers(value: Any) -> Any:
    """Return JSON as JavaScript writes it: numbers without a fraction are integers."""
    if isinstance(value, dict):
        return {key: with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= SAFE_INTEGER:
        return int(value)
    return value


def _stream_name(output: Output) -> str | None:
    return output["name"] if output["output_type"] == "stream" else None


def _line_of(output: Output) -> Line:
    """Return the last line of a stream's text, with its cursor."""
    if _stream_name(output) is None:
        return Line()
    text = joined(output["text"])
    return write(Line(), text[text.rfind("\n") + 1 :])[1]


def _carried_out(output: Output) -> Output:
    if _stream_name(output) is None:
        return output
    return {**output, "text": carried_out(joined(output["text"]))}


def _shared(output: Output) -> Map[Any]:
    output = shareable(_carried_out(output))
    if _stream_name(output) is not None:
        output["text"] = Text(output["text"])
    return Map(output)


def _same(before: Sequence[Output], after: Sequence[Output]) -> int:
    """Return how many outputs at the beginning are equal."""
    same = 0
    for old, new in zip(before, after, strict=False):
        if old != with_integers(shareable(_carried_out(new))):
            break
        same += 1
    return same
