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
from collections.abc import Sequence
from typing import Any, NamedTuple

from pycrdt import Array, Map, Text

from ...types import Output
from ..changes import joined

SAFE_INTEGER = 2**53 - 1
"""The largest exact integer in JavaScript. Larger integers are sent as floats, because JSON cannot
hold a BigInt."""


_CONTROLS = re.compile("([\r\b])")


class Line(NamedTuple):
    """The last, unfinished line of a text."""

    text: str = ""
    column: int = 0
    """The column where the next character is written."""


class End(NamedTuple):
    """The end of a cell's outputs after our last change."""

    outputs: int
    """The number of outputs."""
    bytes: int
    """The length of the last output's text in bytes; 0 if it is not a stream."""
    line: Line
    """The last line of that text."""

    @classmethod
    def of(cls, shared: Array[Map[Any]], outputs: Sequence[Any]) -> End:
        """Return the end of shared outputs, which show these."""
        line = Line()
        last = outputs[-1] if outputs else None
        if isinstance(last, Map):  # unchanged
            last = shared[-1].to_py()
        if last is not None and _stream_name(last) is not None:
            text = joined(last["text"])
            line = write(line, text[text.rfind("\n") + 1 :])[1]
        return cls(len(shared), _last_bytes(shared), line)

    def holds(self, shared: Array[Map[Any]]) -> bool:
        """Return whether outputs are unchanged since then."""
        return self[:2] == (len(shared), _last_bytes(shared))


def write(line: Line, text: str) -> tuple[str, Line]:
    """Write `text` at a line. Return the text that replaces the line, and the new last line."""
    if line.column == len(line.text) and _CONTROLS.search(text) is None:
        whole = line.text + text
        last = whole[whole.rfind("\n") + 1 :]
        return whole, Line(last, len(last))
    finished = []
    *full, rest = text.split("\n")
    for part in full:
        finished.append(_written(line, part).text + "\n")
        line = Line()
    line = _written(line, rest)
    return "".join([*finished, line.text]), line


def _written(line: Line, text: str) -> Line:
    """Return a line after a text without newlines was written to it."""
    shown, column = line
    for part in _CONTROLS.split(text):
        if part == "\r":
            column = 0
        elif part == "\b":
            shown = shown[: max(column - 1, 0)] + shown[column:]
            column = max(column - 1, 0)
        else:
            shown = shown[:column] + part + shown[column + len(part) :]
            column += len(part)
    return Line(shown, column)


def carried_out(text: str) -> str:
    """Return a text after its carriage returns and backspaces have taken effect."""
    return write(Line(), text)[0]


def with_cursor(output: Output, line: Line) -> Output:
    """Return an output whose text moves the cursor to the column of its last line."""
    if line.column == len(line.text):
        return output
    return {**output, "text": f"{output['text']}\r{line.text[: line.column]}"}


def as_shown(output: Output) -> Output:
    """Return an output as a page shows it: its carriage returns and backspaces carried out."""
    output = shareable(output)
    if _stream_name(output) is None:
        return output
    return {**output, "text": carried_out(joined(output["text"]))}


def sync_outputs(shared: Array[Map[Any]], before: list[Any], after: list[Any]) -> None:
    """Bring shared outputs to a later state. Outputs that are the same objects are unchanged."""
    same = 0
    for old, new in zip(before, after, strict=False):
        if old is not new and shared[same].to_py() != as_shown(new):
            break
        same += 1
    if same == len(before) == len(after):
        return
    more = [as_shown(output) for output in after[same:]]
    gone = len(before) - same
    stream = _stream_name(before[-1]) if gone else None
    joins = stream is not None and (not more or stream == _stream_name(more[0]))
    if gone == 1 and more and joins:
        grown = shared[same]["text"]
        replace_end(grown, str(grown), more.pop(0)["text"])
        same += 1
    elif joins:  # a page would append to the stream that is removed
        more = [*(output.to_py() or {} for output in shared[:same]), *more]
        same = 0
    if same < len(shared):
        del shared[same : len(shared)]
    for output in more:
        text = {"text": Text(output["text"])} if _stream_name(output) is not None else {}
        shared.append(Map({**output, **text}))


def set_text(shared: Text, text: str) -> None:
    """Change only the part of a text that differs, so that the user's cursor stays in place."""
    before = str(shared)
    start = _alike(before, text)
    end = _alike(before[start:][::-1], text[start:][::-1])
    at = len(before[:start].encode())  # a shared text counts bytes
    if gone := before[start : len(before) - end]:
        del shared[at : at + len(gone.encode())]
    if more := text[start : len(text) - end]:
        shared.insert(at, more)


def replace_end(shared: Text, before: str, after: str) -> None:
    """Replace `before`, the end of a text, by `after`. A page can only change the end of a text."""
    same = _alike(before, after)
    if gone := len(before[same:].encode()):
        del shared[len(shared) - gone : len(shared)]
    shared += after[same:]


def _alike(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _last_bytes(shared: Array[Map[Any]]) -> int:
    text = shared[-1].get("text") if len(shared) else None
    return len(text) if isinstance(text, Text) else 0


def _stream_name(output: Output) -> str | None:
    name: str | None = output["name"] if output["output_type"] == "stream" else None
    return name


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
