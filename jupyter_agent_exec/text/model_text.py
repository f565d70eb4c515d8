"""Convert an execution's outputs to text and images for a language model. Pure.

One output gives at most one image: its raster image, or else its SVG.
"""

from __future__ import annotations

import binascii
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, BinaryIO, Final, Protocol, TypeAlias

import imagesize  # type: ignore[import-untyped]

from ..types import IMAGE_TYPES, Output
from .counts import counted, size_in_words
from .terminal import Terminal, clean

ReadOn: TypeAlias = Callable[[int], str]
"""Returns a sentence that says how to read the text from a byte offset on."""

_STAND_IN = re.compile(r"<[^<>\n]*>(?:\n|$)")
"""Text with only the name of an object, which libraries send beside the real content."""

NUMBER_SIZE: Final = 8
"""Assumed characters of a number in a mimebundle."""

_JSON_TYPES: Final = ("application/json", "application/geo+json")
_TOO_LARGE: Final = 2**31
"""No image has so many pixels in a line."""

_DROPPED: Final = frozenset({"script", "style", "template", "head", "noscript", "svg"})
# fmt: off
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table",
    "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")


class TextSink(Protocol):
    """Receives a text piece by piece."""

    @property
    def is_full(self) -> bool:
        """Whether the next piece should wait, because the sink has not stored enough yet."""

    def write(self, text: str) -> object:
        """Take the next piece. Does not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """An image among outputs."""

    mimetype: str
    width: int | None
    """Pixels; None if the data does not contain the size."""
    height: int | None
    data: bytes
    """The decoded image, not base64."""
    output: int
    """Index of the output that holds the image."""

    @property
    def bytes(self) -> int:
        """Size of `data`."""
        return len(self.data)

    @property
    def kind(self) -> str:
        """The image format, such as ``png``."""
        return self.mimetype.removeprefix("image/").removesuffix("+xml")

    @property
    def in_words(self) -> str:
        """The image's size and format for a sentence."""
        pixels = (
            f"{self.width}\N{MULTIPLICATION SIGN}{self.height} " if self.width is not None else ""
        )
        return f"{pixels}{self.kind}, {size_in_words(self.bytes)}"


def transcript(outputs: Iterable[Output]) -> str:
    """Return the whole text of outputs, in their order.

    Streams appear as in a terminal, results as their text, errors with their tracebacks, and images
    as notes.
    """
    pieces: list[str] = []
    whole = Transcript(pieces.append)
    for output in outputs:
        whole.output(output)
    whole.finish()
    text = "".join(pieces)
    pieces.clear()  # a transcript refers to itself, so it lives until a garbage collection
    return text


class Transcript:
    """Write a transcript piece by piece; see `transcript`.

    Parameters
    ----------
    write
        Called with each piece of text. The unfinished line of a stream is written only when other
        output follows, or by `finish`.
    image_note
        Returns the note for an image, given its number.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        image_note: Callable[[int, FoundImage], str] | None = None,
    ) -> None:
        self._write_on = write
        self._image_note = image_note or _image_note
        self._terminal = Terminal(self._write)
        self._stream: str | None = None
        self._written = "\n"
        self._images = 0

    def output(self, output: Output) -> None:
        """Add an output. `stream` may continue a stream."""
        kind = output.get("output_type")
        if kind == "stream":
            self.stream(output["name"], output["text"])
        elif kind == "error":
            self._error(_error_text(output))
        else:
            self._block(self._display_text(output))

    def stream(self, name: str, text: str) -> None:
        """Add text of a stream. It continues the last output if that was the same stream."""
        if name != self._stream:
            self._next_line()
            self._stream = name
        self._terminal.feed(text)

    def note(self, text: str) -> None:
        """Add a note that is not the code's output."""
        self._block(f"[{text}]")

    def finish(self) -> None:
        """Write the unfinished line."""
        self._terminal.finish()

    def _write(self, text: str) -> None:
        self._written = text
        self._write_on(text)

    def _next_line(self) -> None:
        self._terminal.finish()
        if not self._written.endswith("\n"):
            self._write("\n")

    def _error(self, text: str) -> None:
        """Add an error, unless a stream has just said the same, as IPython's of wrong usage."""
        self._terminal.finish()
        is_said = self._stream is not None and self._written.rstrip("\n").endswith(text)
        self._block("" if is_said else text)

    def _block(self, text: str) -> None:
        self._next_line()
        self._stream = None
        if text:
            self._write(text)

    def _display_text(self, output: Output) -> str:
        data: dict[str, Any] = output.get("data", {})
        notes = []
        image = _image_of(output, 0)
        if image is not None:
            self._images += 1
            notes = [self._image_note(self._images, image)]
        text = _bundle_text(data, with_image=image is not None)
        return "\n".join([*notes, *([text] if text else [])])


def images(outputs: Sequence[Output]) -> list[FoundImage]:
    """Return the images in the order of their numbers in `transcript`."""
    found = (_image_of(output, index) for index, output in enumerate(outputs))
    return [image for image in found if image is not None]


_LIBRARY_FRAME = re.compile(
    r"File (?P<path>\S*(?:/(?:site|dist)-packages/|/lib/python3[^/]*/|[\\/]Lib[\\/])\S*|<frozen \S*"
    r"|\S+\.pyx:\d+)(?P<where>[^\n]*)"
)
"""The first line of a frame in code that was installed, in IPython's tracebacks."""

_RULE = re.compile(r"-{20,}\s*")


def without_library_frames(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs whose tracebacks have one line in place of frames in installed libraries."""
    return [
        {**output, "traceback": list(_folded(output["traceback"]))}
        if output.get("output_type") == "error"
        else output
        for output in outputs
    ]


def _folded(traceback: Iterable[str]) -> Iterator[str]:
    count, last = 0, ""
    for part in traceback:
        plain = clean(part)
        if (frame := _LIBRARY_FRAME.match(plain)) is not None:
            count += 1
            name = "/".join(re.split(r"[\\/]", frame["path"])[-2:])
            last = f"{name}{frame['where'].partition('(')[0]}"
            continue
        if count:
            yield f"[{counted(count, 'frame')} in libraries, the last: {last}]"
            count = 0
        if not _RULE.fullmatch(plain):
            yield part
    if count:
        yield f"[{counted(count, 'frame')} in libraries, the last: {last}]"


def output_size(outputs: Iterable[Output], *, most: int) -> int:
    """Return the approximate characters of outputs as JSON. Counting stops at `most`."""
    size = 0
    left: list[Any] = list(outputs)
    while left and size < most:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        else:
            size += len(value) if isinstance(value, str) else NUMBER_SIZE
    return size


def model_text(transcript: str, *, limit: int = 10_000, read_on: ReadOn | None) -> str:
    """Return the start and the end of a transcript, together about `limit` characters.

    Cuts are made at line ends if there are any nearby. A note between the parts gives the number of
    missing characters and, with `read_on`, how to read them.
    """
    if len(transcript) <= limit:
        return transcript
    half = limit // 2
    head_end = half
    line_end = transcript.rfind("\n", half - half // 4, half)
    if line_end >= 0:
        head_end = line_end + 1
    tail_start = len(transcript) - half
    line_end = transcript.find("\n", tail_start - 1, tail_start + half // 4)
    if line_end >= 0:
        tail_start = line_end + 1
    head, tail = transcript[:head_end], transcript[tail_start:]
    left_out = len(transcript) - len(head) - len(tail)
    more = "" if read_on is None else f"; {read_on(len(head.encode()))}"
    note = f"[… {counted(left_out, 'character')} left out{more} …]"
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{note}\n{tail}"


def _image_of(output: Output, index: int) -> FoundImage | None:
    data = output.get("data", {})
    for mimetype in IMAGE_TYPES:
        value = data.get(mimetype)
        if not isinstance(value, str) or not value:
            continue
        try:
            raw = value.encode() if mimetype == "image/svg+xml" else binascii.a2b_base64(value)
        except ValueError:
            continue
        width, height = pixels(io.BytesIO(raw))
        return FoundImage(mimetype=mimetype, width=width, height=height, data=raw, output=index)
    return None


def pixels(image: BinaryIO) -> tuple[int, int] | tuple[None, None]:
    """Return an image's width and height; None if it tells none. It may tell any number."""
    width, height = imagesize.get(image)
    is_told = 0 < width < _TOO_LARGE and 0 < height < _TOO_LARGE
    return (round(width), round(height)) if is_told else (None, None)


def _image_note(number: int, image: FoundImage) -> str:
    return f"[image {number}: {image.in_words}]"


def _bundle_text(data: dict[str, Any], *, with_image: bool) -> str:
    """Return the best text of a mimebundle, or a note with its type."""
    plain = data.get("text/plain")
    plain = clean(plain) if isinstance(plain, str) else ""
    stand_in = _STAND_IN.match(plain) is not None
    if plain.strip() and not stand_in:
        return plain
    for mimetype in ("text/markdown", "text/latex"):
        if isinstance(data.get(mimetype), str) and data[mimetype].strip():
            return clean(data[mimetype])
    for mimetype in _JSON_TYPES:
        if mimetype in data:
            return clean(json.dumps(data[mimetype], indent=2, ensure_ascii=False))
    if isinstance(data.get("text/html"), str):
        text = clean(html_text(data["text/html"]))
        if text and not _interactive(data):
            return text
    if with_image:
        return ""
    for mimetype, value in data.items():
        if mimetype.startswith("text/") and mimetype not in ("text/plain", "text/html"):
            return clean(value) if isinstance(value, str) else ""
    types = [mimetype for mimetype in data if mimetype != "text/plain"]
    interactive = [mimetype for mimetype in types if mimetype != "text/html"]
    if types:
        return f"[{(interactive or types)[0]} output]"
    return plain


def _interactive(data: dict[str, Any]) -> bool:
    """Whether the HTML is only a fallback for an interactive output."""
    return any(mimetype.startswith("application/vnd.") for mimetype in data)


def _error_text(output: Output) -> str:
    """Return the traceback, and the error itself if that does not name it.

    The message of a SyntaxError says where it is; its traceback says that elsewhere.
    """
    ename, evalue = clean(output["ename"]), clean(output["evalue"]).strip("\n")
    text = clean("\n".join(output["traceback"])).rstrip("\n")
    by_name = re.search(rf"^{re.escape(ename)}(?::|$)", text, re.MULTILINE) if ename else None
    begins = evalue and text.startswith(evalue)
    if (ename in text and evalue in text) or by_name or begins:
        return text
    said = f"{ename}: {evalue}" if evalue else ename
    return f"{text}\n{said}" if text else said


def html_text(html: str) -> str:
    """Return the visible text of `html`."""
    reader = _Reader()
    reader.feed(html.replace("<![", "<! ["))  # else "<![ x" raises AssertionError
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[list[str]] = [[]]
        self._dropped = 0
        self._preformatted = 0
        self._row_begun = False

    def text(self) -> str:
        lines = ("".join(line).rstrip(" ") for line in self._lines)
        return "\n".join(line for line in lines if line.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped += 1
        elif tag in _BLOCKS:
            self._lines.append([])
            self._preformatted += tag == "pre"
            if tag == "li":
                self._lines[-1].append("- ")
        elif tag in ("td", "th") and self._row_begun:
            line = self._lines[-1]
            while line and line[-1].endswith(" "):
                line[-1] = line[-1].rstrip(" ")
                if line[-1]:
                    break
                line.pop()
            line.append("\t")
        elif tag == "img" and not self._dropped:
            self._lines[-1].append(dict(attrs).get("alt") or "")
        if tag in ("td", "th"):
            self._row_begun = True
        elif tag == "tr":
            self._row_begun = False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            self._dropped = max(0, self._dropped - 1)
        elif tag in _BLOCKS:
            self._lines.append([])
            if tag == "pre":
                self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._preformatted:
            first, *others = data.split("\n")
            self._lines[-1].append(first)
            self._lines += [[line] for line in others]
            return
        line = self._lines[-1]
        text = _SPACE.sub(" ", data)
        if not line or line[-1].endswith((" ", "\t")):
            text = text.lstrip(" ")
        if text:
            line.append(text)
