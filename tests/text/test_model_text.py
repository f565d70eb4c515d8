"""What a language model reads."""

from __future__ import annotations

import ast
import base64
import io
import random
import re
import struct
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from tqdm import tqdm  # type: ignore[import-untyped]

from jupyter_agent_exec.text.model_text import (
    Transcript,
    images,
    model_text,
    output_size,
    transcript,
)
from jupyter_agent_exec.text.terminal import LINE_CHARACTERS, LINES, Terminal, clean
from jupyter_agent_exec.types import Output

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="3" height="4"/>'


def png(width: int, height: int) -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (width + 1) * height)
    whole = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )
    return base64.b64encode(whole).decode()


def stream(text: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: dict[str, object]) -> Output:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def error(ename: str, evalue: str, *traceback: str) -> Output:
    return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": [*traceback]}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n", "plain\n"),
        ("no end", "no end"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("long line\rshort\n", "shortline\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("abc\b\bX\n", "aXc\n"),
        ("\b\bx", "x"),
        ("long line\r\x1b[Kshort", "short"),
        ("12345\r123\x1b[1Kx", "   x5"),
        ("gone\x1b[2K\rhere", "here"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2:255:0:0mred\x1b[m", "red"),
        ("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\ on", "link on"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1bP1;2|data\x1b\\text", "text"),
        ("\x1b(Btext\x1b7\x1b=", "text"),
        ("\x1b[2Aup\x1b[?25l", "up"),
        ("a\nb\nc\x1b[2AX\x1b[BY\x1b[1E\x1b[3CZ", "aX\nb Y\nc  Z"),
        ("one\ntwo\x1b[1;2Hx\x1b[2;1Hy\x1b[3Gz", "oxe\nywz"),
        ("one\ntwo\nthree\x1b[2A\x1b[2D\x1b[J!", "one!"),
        ("one\ntwo\x1b[D\x1b[1J", "\n   "),
        ("gone\n\x1b[H\x1b[2Jhere", "gone\nhere"),
        ("\x1b[999999999Cfar\x1b[" + "9" * 5000 + "A", " " * 80 + "far[" + "9" * 5000 + "A"),
        ("stray \x1b", "stray "),
        ("stray \x1b[3", "stray "),
        ("\x1b]" + "x" * 5000 + "\n", "]" + "x" * 5000 + "\n"),
        ("nul \0 bell \x07 del \x7f", "nul \u2400 bell  del \u2421"),
        ("a\x0bb\x0cc", "a\nb\nc"),
        ("c1 \x9b31m", "c1 \ufffd31m"),
        ("\ud800 lone", "\ufffd lone"),
        ("tab\tstays é 😀", "tab\tstays é 😀"),
    ],
)
def test_text_is_what_a_terminal_shows(text: str, seen: str) -> None:
    assert clean(text) == seen


def test_it_does_not_matter_where_a_text_is_cut_into_pieces() -> None:
    rng = random.Random(1)
    parts = [
        "word ", "\n", "\r", "\r\n", "\b", "\x1b[31m", "\x1b[0m", "\x1b[K", "\x1b[2K", "\0",
        "é", "😀", "\x1b]8;;http://a/\x1b\\", "\x1b]0;t\x07", "\x1b", "[", "x" * 300,
        "\x1b(B", "\x0c", "\x1b[A", "\x1b[2B", "\x1b[C", "\x1b[3D", "\x1b[5G", "\x1b[J",
        "\x1b[2;3H",
    ]  # fmt: skip
    for _ in range(500):
        text = "".join(rng.choices(parts, k=rng.randrange(40)))
        pieces: list[str] = []
        terminal = Terminal(pieces.append)
        start = 0
        while start < len(text):
            end = start + rng.choice((1, 2, 3, 50))
            terminal.feed(text[start:end])
            start = end
        terminal.finish()
        assert "".join(pieces) == clean(text), text


def test_a_line_without_end_is_let_go_and_not_lost() -> None:
    pieces: list[str] = []
    terminal = Terminal(pieces.append)
    for _ in range(10):
        terminal.feed("x" * (LINE_CHARACTERS - 1))
    assert len("".join(pieces)) >= 8 * LINE_CHARACTERS
    terminal.feed("y\r")
    terminal.feed("new\r\n")
    terminal.feed("next\rN\n")
    terminal.finish()
    assert "".join(pieces) == "x" * 10 * (LINE_CHARACTERS - 1) + "y\nnew\nNext\n"


def test_nested_progress_bars_are_read_as_a_terminal_shows_them() -> None:
    file = io.StringIO()
    bar = partial(tqdm, file=file, ascii=True, mininterval=0, bar_format="{desc}: {n}|")
    for _ in bar(range(8), desc="main"):
        for _ in bar(range(3), desc="inner", position=1, leave=False):
            pass
    drawn = file.getvalue()
    under_way, last, _ = drawn.rpartition("inner: 3|")
    assert clean(under_way + last) == "main: 7|\ninner: 3|"
    assert clean(f"before\n{drawn}").rstrip() == "before\nmain: 8|"


def test_lines_that_have_left_the_screen_are_final() -> None:
    pieces: list[str] = []
    terminal = Terminal(pieces.append)
    numbers = "".join(f"{number}\n" for number in range(3 * LINES))
    terminal.feed(numbers)
    kept = "".join(pieces)
    assert numbers.startswith(kept)
    assert kept.count("\n") == 2 * LINES + 1
    terminal.feed("\x1b[9999Afirst")
    terminal.finish()
    top = 2 * LINES + 1
    assert "".join(pieces) == numbers.replace(f"\n{top}\n", "\nfirst\n")


def test_outputs_are_read_in_the_order_in_which_they_came() -> None:
    outputs = [
        stream("one\n"),
        stream("warned", "stderr"),
        display({"text/plain": "shown"}),
        stream("two\n"),
        {"output_type": "execute_result", "data": {"text/plain": "42"}, "metadata": {},
         "execution_count": 1},
    ]  # fmt: skip
    assert transcript(outputs) == "one\nwarned\nshown\ntwo\n42"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/plain": "   a\n0  1", "text/html": "<table></table>"}, "   a\n0  1"),
        ({"text/plain": "<IPython.core.display.HTML object>",
          "text/html": "<style>b{}</style><table><tr><th>a<th>b</tr><tr><td>1</td>\n<td>2</td></tr>"
          "</table><script>x()</script><p>end &amp; more</p>"}, "a\tb\n1\t2\nend & more"),
        ({"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "# T"}, "# T"),
        ({"text/plain": "<IPython.core.display.Latex object>", "text/latex": "$x$"}, "$x$"),
        ({"text/plain": "<IPython.core.display.JSON object>", "application/json": {"a": [1]}},
         '{\n  "a": [\n    1\n  ]\n}'),
        ({"text/plain": "<IPython.core.display.Javascript object>",
          "application/javascript": "1"}, "[application/javascript output]"),
        ({"application/vnd.plotly.v1+json": {}, "text/html": "<div>drawn by a script</div>"},
         "[application/vnd.plotly.v1+json output]"),
        ({"application/vnd.jupyter.widget-view+json": {}, "text/plain": "IntSlider(value=0)"},
         "IntSlider(value=0)"),
        ({"text/plain": "<Own object at 0x1>"}, "<Own object at 0x1>"),
        ({"text/html": "<script>only()</script>"}, "[text/html output]"),
        ({"text/html": "a <![ b"}, "a <! [ b"),
        ({"text/html": "<![if]>a<![endif]> b<![CDATA[c]]> d"}, "a b d"),
        ({"text/plain": "\x1b[31mred\x1b[0m"}, "red"),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_display_is_read_as_its_best_text(data: dict[str, object], text: str) -> None:
    assert transcript([display(data)]) == text


def test_images_are_numbered_and_described() -> None:
    outputs = [
        display({"image/png": png(64, 48), "text/plain": "<Figure size 64x48 with 1 Axes>"}),
        stream("between\n"),
        display({"image/svg+xml": SVG,
                 "image/png": png(2, 1), "text/plain": "sqrt(x)"}),
        display({"image/svg+xml": SVG}),
        display({"image/png": "not base64!"}),
    ]  # fmt: skip
    sizes = [image.bytes for image in images(outputs)]
    assert transcript(outputs) == (
        f"[image 1: 64\N{MULTIPLICATION SIGN}48 png, {sizes[0]} bytes]\nbetween\n"
        f"[image 2: 2\N{MULTIPLICATION SIGN}1 png, {sizes[1]} bytes]\nsqrt(x)\n"
        f"[image 3: 3\N{MULTIPLICATION SIGN}4 svg, {sizes[2]} bytes]\n[image/png output]"
    )
    assert [(i.mimetype, i.width, i.height, i.output) for i in images(outputs)] == [
        ("image/png", 64, 48, 0),
        ("image/png", 2, 1, 2),
        ("image/svg+xml", 3, 4, 3),
    ]
    assert images(outputs)[0].data == base64.b64decode(png(64, 48))


def test_an_error_is_read_with_its_name_and_message() -> None:
    colours = error(
        "ValueError", "bad", "\x1b[31mTraceback\x1b[0m", "\x1b[31mValueError\x1b[0m: bad"
    )
    assert transcript([colours]) == "Traceback\nValueError: bad"
    assert transcript([error("Own", "", "Traceback")]) == "Traceback\nOwn"
    assert transcript([error("Own", "why")]) == "Own: why"


def test_a_transcript_in_pieces_is_the_whole() -> None:
    pieces: list[str] = []
    whole = Transcript(pieces.append)
    for text in ("a\r", "b", "c\nd"):
        whole.stream("stdout", text)
    whole.output(display({"text/plain": "shown"}))
    whole.note("a remark")
    whole.stream("stdout", "e")
    whole.finish()
    assert "".join(pieces) == "bc\nd\nshown\n[a remark]\ne"


def read_on(offset: int) -> str:
    return f"read on at {offset}"


def test_a_long_transcript_loses_its_middle_and_says_so() -> None:
    text = "".join(f"line {i} é\n" for i in range(10_000))
    read = model_text(text, limit=1000, read_on=read_on)
    head, rest = read.split("[… ", 1)
    note, tail = rest.split(" …]\n", 1)
    count, where = note.split(" characters left out; read on at ")
    assert head.endswith("é\n")
    assert tail.startswith("line ")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(count.replace(",", "")) == len(text) - len(head) - len(tail)
    assert text.encode()[int(where) :].decode() == text[len(head) :]
    assert len(head) + len(tail) <= 1000


def test_one_long_line_is_cut_in_its_middle() -> None:
    read = model_text("x" * 5000, limit=1000, read_on=read_on)
    assert read == f"{'x' * 500}\n[… 4,000 characters left out; read on at 500 …]\n{'x' * 500}"
    assert model_text("x" * 1000, limit=1000, read_on=read_on) == "x" * 1000


def test_the_size_of_outputs_counts_text_images_tracebacks_and_json() -> None:
    figure = {"data": [{"x": [0.5] * 1000, "name": "a" * 300}]}
    error = {"output_type": "error", "ename": "E", "evalue": "b" * 200, "traceback": ["c" * 100]}
    for output, size in (
        (stream("d" * 500), 500),
        (display({"image/png": "e" * 400}), 400),
        (display({"application/vnd.plotly.v1+json": figure}), 8300),
        (error, 300),
    ):
        assert size <= output_size([output], most=100_000) < size + 50, output


def test_outputs_are_not_measured_beyond_what_is_asked() -> None:
    class Unread(dict[str, object]):
        def values(self) -> None:  # type: ignore[override]
            raise AssertionError("measured")

    assert output_size([Unread(), stream("a" * 100)], most=100) == 100


ROOT = Path(__file__).parents[2] / "jupyter_agent_exec"
NOUN = re.compile(
    r" (?:(?:more|open|other|whole) )?"
    r"(cell|chain|character|chart|edit|entr(?:y|ie)|execution|frame|image|kernel|line|notebook"
    r"|output|payload|session|tab|timestamp|variable)s\b"
)


def test_a_count_agrees_with_its_noun() -> None:
    """Whatever says how many of something there are, says it by `counted`, except of limits."""
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for value, text in pairwise(parts):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    said = ast.unparse(value.value)
                    is_limit = said.rpartition(".")[2].isupper()
                    if NOUN.match(str(text.value)) and not is_limit:
                        found.append(f"{path.name}:{node.lineno}: {{{said}}}{text.value[:30]}")
    assert found == []
