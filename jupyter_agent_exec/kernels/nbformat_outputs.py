"""Single nbformat outputs: made from a kernel's message, extended, cut, replaced by a note. Pure.

Invalid content from a kernel (lone surrogates, NaN, a MIME value that is not text, missing keys) is
replaced by the nearest valid value. Stream text is kept as UTF-8, so that sizes are exact and cheap
to compute.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..models import Omitted, OutputChange
from ..text.counts import counted
from ..types import JSON, Output
from .in_kernel.json_values import VALUES_SOURCE
from .in_kernel.namespace import VARIABLES_SOURCE

DISPLAYS: Final = frozenset({"display_data", "execute_result", "update_display_data"})


def display(msg_type: str, content: dict[str, Any]) -> tuple[Output, int]:
    """Return the output for a message of a type in `DISPLAYS`, and its size in bytes."""
    data = content.get("data")
    bundle = {clean_text(str(k)): v for k, v in data.items()} if isinstance(data, dict) else {}
    size = 0
    for mimetype, value in bundle.items():
        bundle[mimetype], value_size = _mime_value(mimetype, value)
        size += value_size
    metadata = content.get("metadata")
    if isinstance(metadata, dict) and metadata:
        metadata, value_size = json_value(metadata)
        size += value_size
    else:
        metadata = {}
    if msg_type != "execute_result":
        return {"output_type": "display_data", "data": bundle, "metadata": metadata}, size
    count = content.get("execution_count")
    is_count = type(count) is int and count >= 0  # JSON's true and false are none
    return {
        "output_type": "execute_result",
        "data": bundle,
        "metadata": metadata,
        "execution_count": count if is_count else None,
    }, size


_NOT_SHOWN: Final = (VARIABLES_SOURCE, VALUES_SOURCE, "ask_exit")
"""The sources of payloads that are not for a reader."""

NAME_CHARACTERS: Final = 100
"""The most characters that are shown of the name of an unknown payload."""


def payloads_in(
    reply: Mapping[str, Any] | None, source: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the payloads in an `execute_reply`, or those of one source."""
    payload = (reply or {}).get("payload")
    for item in payload if isinstance(payload, list) else ():
        if isinstance(item, dict) and source in (None, item.get("source")):
            yield item


def displays_in(reply: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what payloads show, each as the content of a `display_data` message.

    A pager's text is an output, as in JupyterLab. What a frontend would do is told in words.
    """
    for item in payloads_in(reply):
        source = item.get("source")
        if source == "page":
            yield {"data": item.get("data")}
        elif source == "set_next_input":
            where = "in place of this cell's" if item.get("replace") else "for the next cell"
            told = f"[The code suggests this source {where}. It has not run.]\n{item.get('text')}"
            yield {"data": {"text/plain": told}}
        elif source not in _NOT_SHOWN:
            told = f"[The kernel sent a payload that is not shown: {str(source)[:NAME_CHARACTERS]}]"
            yield {"data": {"text/plain": told}}


def display_id(content: dict[str, Any]) -> str | None:
    """Return the display id in a message."""
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) and found else None


def error(content: dict[str, Any]) -> tuple[Output, int]:
    """Return the output for an `error` message, and its size."""
    traceback = content.get("traceback")
    lines = [clean_text(str(line)) for line in traceback] if isinstance(traceback, list) else []
    output = {
        "output_type": "error",
        "ename": clean_text(str(content.get("ename", ""))),
        "evalue": clean_text(str(content.get("evalue", ""))),
        "traceback": lines,
    }
    return output, _error_size(output)


def cut_error(output: Output, max_bytes: int) -> tuple[Output, int]:
    """Return an error of at most `max_bytes`, without notes, and how many bytes were cut.

    A traceback, or a message, that is larger than its share loses its middle.
    """
    if _error_size(output) <= max_bytes:
        return output, 0
    ename, cut_ename = _cut_middle(output["ename"], max_bytes // 8)
    evalue, cut_evalue = _cut_middle(output["evalue"], max_bytes // 4)
    lines, cut_lines = _cut_lines(output["traceback"], max_bytes // 2)
    cut = {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}
    return cut, cut_ename + cut_evalue + cut_lines


def _error_size(output: Output) -> int:
    return sum(map(_size, (output["ename"], output["evalue"], *output["traceback"])))


def clean_text(text: str) -> str:
    """Return `text` without characters that UTF-8 cannot encode."""
    return text if text.isascii() else without_surrogates(text)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(encode(text))


def _mime_value(mimetype: str, value: JSON) -> tuple[JSON, int]:
    """Return a value of a mimebundle and its size.

    Source: nbformat 4.5's schema (`mimebundle`) and how nbformat joins lists of lines.
    """
    if mimetype == "application/json" or (
        mimetype.startswith("application/") and mimetype.endswith("+json")
    ):
        return json_value(value)
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    elif not isinstance(value, str):
        value = json.dumps(_clean(value), ensure_ascii=False)
    value = clean_text(value)
    return value, _size(value)


def json_value(value: JSON) -> tuple[JSON, int]:
    """Return `value` without parts that JSON or UTF-8 cannot hold, and the size of its JSON."""
    try:
        return value, len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:  # also a UnicodeEncodeError
        value = _clean(value)
        return value, len(json.dumps(value, ensure_ascii=False).encode())


def _clean(value: JSON) -> JSON:
    """Replace non-finite floats as jupyter_client's `json_clean` does."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    return value


def _cut_middle(text: str, max_bytes: int) -> tuple[str, int]:
    """Return `text`, with a note in place of its middle if it is too large, and the bytes cut."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text, 0
    head = data[: max_bytes // 2].decode(errors="ignore")
    tail = data[len(data) - max_bytes // 2 :].decode(errors="ignore")
    omitted = len(data) - _size(head) - _size(tail)
    return f"{head}[… {omitted:,} bytes left out …]{tail}", omitted


def _cut_lines(lines: list[str], max_bytes: int) -> tuple[list[str], int]:
    """Return the first and the last lines, and how much was left out between them.

    A line that is too large by itself first loses its own middle.
    """
    omitted = 0
    kept: list[list[str]] = [[], []]
    first, last = 0, len(lines) - 1
    room = [max_bytes // 2, max_bytes // 2]
    for side in (1, 0):
        while first <= last:
            line, cut = _cut_middle(lines[last if side else first], max_bytes // 4)
            if _size(line) > room[side]:
                break
            room[side] -= _size(line)
            kept[side].append(line)
            omitted += cut
            first, last = (first, last - 1) if side else (first + 1, last)
    left_out = sum(map(_size, lines[first : last + 1]))
    if first <= last:
        kept[0].append(f"[… {left_out:,} bytes left out …]")
    return kept[0] + kept[1][::-1], omitted + left_out


MARKS: Final = 256
"""How many steps of a stream's growth are remembered. A reader that is further behind gets the
whole text."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def encode(text: str) -> bytes:
    """Return `text` as UTF-8, with U+FFFD for characters that UTF-8 cannot encode."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def without_surrogates(text: str) -> str:
    """Return `text` with U+FFFD for each lone surrogate."""
    return _SURROGATES.sub("\ufffd", text)


class Stream:
    """A stream output.

    Parameters
    ----------
    name
        ``stdout`` or ``stderr``.
    version
        The version of the outputs at which this output is created, still empty.
    continues
        Whether it is the rest of an output whose beginning is stored elsewhere.

    Attributes
    ----------
    changed_at
        The version at which this was created, or last changed other than by growing.
    """

    __slots__ = ("_cut", "_data", "_marks", "changed_at", "continues", "name")

    def __init__(self, name: str, version: int, *, continues: bool = False) -> None:
        self.name = name
        self.continues = continues
        self.changed_at = version
        self._data = bytearray()
        self._cut = 0
        self._marks: deque[tuple[int, int]] = deque([(version, 0)], maxlen=MARKS)

    @property
    def size(self) -> int:
        """The number of bytes kept."""
        return len(self._data)

    def append(self, data: bytes, version: int) -> None:
        """Append whole characters.

        The version of the outputs must then grow from `version` by the number of bytes. So a
        version gives a length, as long as only this stream changes.
        """
        length = self._cut + len(self._data)
        at, then = self._marks[-1]
        if length - then != version - at:
            self._marks.append((version, length))
        self._data += data

    def cut_front(self, count: int, reach: int) -> tuple[int, int]:
        """Drop at least `count` bytes; return the number of dropped bytes and line ends.

        The cut is at the end of a line if there is one within `reach` bytes, otherwise at the end
        of a character.
        """
        data = self._data
        line_end = data.find(b"\n", count - 1, count + reach)
        count = min(count, len(data)) if line_end < 0 else line_end + 1
        while count < len(data) and data[count] & 0xC0 == 0x80:
            count += 1
        lines = data.count(b"\n", 0, count)
        del data[:count]
        self._cut += count
        return count, lines

    def split(self, count: int, reach: int, version: int) -> Stream | None:
        """Keep at most the first `count` bytes, and return the rest.

        The cut is at the end of a line if there is one within `reach` bytes, otherwise at the end
        of a character. If nothing would be kept, change nothing and return None.
        """
        data = self._data
        line_end = data.rfind(b"\n", max(0, count - reach), count)
        count = count if line_end < 0 else line_end + 1
        while 0 < count < len(data) and data[count] & 0xC0 == 0x80:
            count -= 1
        if not count:
            return None
        rest = Stream(self.name, version, continues=True)
        rest._data += memoryview(data)[count:]
        rest._marks[0] = (version, len(rest._data))
        self._data = data[:count]
        self.changed_at = version
        return rest

    def output(self) -> Output:
        """Return the nbformat output."""
        return {"output_type": "stream", "name": self.name, "text": self._data.decode()}

    def change_since(self, version: int, index: int) -> OutputChange | None:
        """Return the change for a reader that saw this output, at `index`, at `version`."""
        if version >= self.changed_at:
            start = self._length_at(version)
            if start is not None and start >= self._cut:
                start -= self._cut
                if start >= len(self._data):
                    return None
                if self._data[start] & 0xC0 != 0x80:
                    more = str(memoryview(self._data)[start:], "utf-8")
                    return OutputChange(index=index, append=more)
        return OutputChange(index=index, output=self.output())

    def _length_at(self, version: int) -> int | None:
        """Return the length at a version, including what was cut since; None if forgotten."""
        bound = self._cut + len(self._data)
        for at, length in reversed(self._marks):
            if at <= version:
                return min(length + version - at, bound)
            bound = length
        return None


class RichOutput:
    """A display, a result or an error.

    Parameters
    ----------
    output
        The output in nbformat.
    size
        The size in bytes of the part that is kept.
    omitted
        What was left out of it.
    version
        The version of the outputs at which it arrived.

    Attributes
    ----------
    in_tail
        Whether it is after the note that says what was left out.
    gone
        Whether it has been left out later.
    """

    __slots__ = ("_output", "changed_at", "display_id", "gone", "in_tail", "omitted", "size")

    def __init__(
        self,
        output: Output,
        size: int,
        display_id: str | None,
        omitted: Omitted,
        version: int,
        *,
        in_tail: bool,
    ) -> None:
        self._output = output
        self.size = size
        self.display_id = display_id
        self.omitted = omitted
        self.changed_at = version
        self.in_tail = in_tail
        self.gone = False

    def update(self, output: Output, size: int, version: int) -> None:
        """Replace data and metadata with those of another output."""
        changed = {key: output[key] for key in ("data", "metadata")}
        self._output = {**self._output, **changed}
        self.size = size
        self.omitted = Omitted()
        self.changed_at = version

    def withhold(self) -> None:
        """Keep only a note, until an update brings something smaller."""
        self.omitted = Omitted(bytes=self.size, outputs=1)
        self.size = 0
        kept = {key: value for key, value in self._output.items() if key == "execution_count"}
        note = left_out(self.omitted)
        self._output = {**note, **kept, "output_type": self._output["output_type"]}

    def output(self) -> Output:
        """Return the nbformat output. It is replaced, never modified."""
        return self._output

    def change_since(self, version: int, index: int) -> OutputChange | None:
        """Return the change for a reader that saw this output, at `index`, at `version`."""
        if version >= self.changed_at:
            return None
        return OutputChange(index=index, output=self._output)


def left_out(omitted: Omitted) -> Output:
    """Return the output that replaces omitted content and says what was left out."""
    what = counted(omitted.bytes, "byte")
    if omitted.lines:
        what += f" in {counted(omitted.lines, 'line')}"
    if omitted.outputs:
        what += f" and {counted(omitted.outputs, 'whole output')}"
    counts = {"bytes": omitted.bytes, "lines": omitted.lines, "outputs": omitted.outputs}
    return {
        "output_type": "display_data",
        "data": {"text/plain": f"[{what} left out]"},
        "metadata": {"agent_exec": {"omitted": counts}},
    }
