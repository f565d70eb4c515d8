"""The text of one stream output, which may grow for long, lose its front, and be read in part.

It is kept as UTF-8, so that sizes are exact and cheap, and it knows how long it was at earlier
versions of the outputs that it belongs to, so that a reader can be given what is new to it.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from ..models import Omitted, OutputChange
from ..types import Output

MARKS: Final = 256
"""How many turning points of a stream's growth are remembered; a reader who is further behind is
given the whole text."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def encode(text: str) -> bytes:
    """Return the UTF-8 of `text`, with U+FFFD for what has none."""
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
        Of the outputs, at which this one is made, still empty.
    continues
        Whether it is the rest of an output whose beginning is kept elsewhere.

    Attributes
    ----------
    changed_at
        The version at which this was made, or last changed other than by growing.
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
        """Bytes kept."""
        return len(self._data)

    @property
    def omitted(self) -> Omitted:
        """Nothing: what is cut off is counted by who cuts."""
        return Omitted()

    def append(self, data: bytes, version: int) -> None:
        """Add whole characters to the end.

        The version of the outputs must then grow from `version` by the number of bytes: so a
        version tells a length for as long as nothing but this stream changes.
        """
        length = self._cut + len(self._data)
        at, then = self._marks[-1]
        if length - then != version - at:
            self._marks.append((version, length))
        self._data += data

    def cut_front(self, count: int, reach: int) -> tuple[int, int]:
        """Drop at least `count` bytes; return how many, and how many line ends.

        The cut is at the end of a line if there is one within `reach` bytes, else of a character.
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

        The cut is at the end of a line if there is one within `reach` bytes, else of a character.
        None, and no change, if that would keep nothing.
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
        """Return the step for a reader who saw this output, at `index`, at `version`."""
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
        """Return the length at a version, counting what was cut since; None if forgotten."""
        bound = self._cut + len(self._data)
        for at, length in reversed(self._marks):
            if at <= version:
                return min(length + version - at, bound)
            bound = length
        return None
