from __future__ import annotations

import base64
import io
from typing import Any

import pytest

from jupyter_agent_exec.cli.console import Console, LiveView, protocol_of, sequence
from jupyter_agent_exec.client import OutputChanged
from jupyter_agent_exec.models import OutputChange

PNG = base64.b64encode(b"\x89PNG").decode()


class Screen(io.StringIO):
    """What is written to a terminal, or to a pipe."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(*changes: OutputChange, terminal: bool = False, pictures: Any = None) -> str:
    screen = Screen(terminal=terminal)
    view = LiveView(Console(out=screen, err=screen), pictures)
    for change in changes:
        view.show(OutputChanged(change))
    view.close()
    return screen.getvalue()


def test_text_that_is_added_is_written_once() -> None:
    assert (
        shown(
            OutputChange(index=0, output=stream("a\n")),
            OutputChange(index=0, append="b"),
            OutputChange(index=0, append="c\n"),
        )
        == "a\nbc\n"
    )


def test_an_output_after_an_open_line_begins_its_own() -> None:
    assert (
        shown(
            OutputChange(index=0, output=stream("a")),
            OutputChange(index=1, output=stream("b", "stderr")),
            OutputChange(
                index=2, output={"output_type": "display_data", "data": {"text/plain": "c"}}
            ),
        )
        == "a\nb\nc\n"
    )


def test_a_progress_bar_is_written_over_on_a_terminal_and_once_in_a_pipe() -> None:
    by_return = [
        OutputChange(index=0, output=stream("head\n 0%")),
        OutputChange(index=0, append="\r50%"),
        OutputChange(index=0, append="\r100%\n"),
    ]
    assert shown(*by_return) == "head\n100%\n"
    assert shown(*by_return, terminal=True) == "head\n 0%\r50%\r100%\n"
    by_replacing = [
        OutputChange(index=0, output=stream("head\n0%")),
        OutputChange(index=0, output=stream("head\n100%\n")),
    ]
    assert shown(*by_replacing) == "head\n100%\n"
    assert shown(*by_replacing, terminal=True) == "head\n0%\r\x1b[K100%\n"


def test_output_that_is_replaced_is_written_again() -> None:
    assert (
        shown(
            OutputChange(index=0, output=stream("one\n")),
            OutputChange(index=0, truncate=True),
            OutputChange(index=0, output=stream("two\n")),
            OutputChange(index=0, output=stream("three\n")),
        )
        == "one\ntwo\nthree\n"
    )


def test_a_traceback_is_shown_without_its_colours() -> None:
    output = {
        "output_type": "error",
        "ename": "E",
        "evalue": "",
        "traceback": ["\x1b[31mTrace", "back"],
    }
    assert shown(OutputChange(index=0, output=output)) == "Trace\nback\n"


def test_what_was_missed_is_written_at_the_end() -> None:
    screen = Screen(terminal=False)
    view = LiveView(Console(out=screen, err=screen), None)
    view.show(OutputChanged(OutputChange(index=0, output=stream("a\n"))))
    view.finish([stream("a\nb\n"), stream("c", "stderr")])
    assert screen.getvalue() == "a\nb\nc\n"


def test_a_picture_is_shown_where_the_terminal_can_else_its_text() -> None:
    output = {"output_type": "display_data", "data": {"image/png": PNG, "text/plain": "<Figure>"}}
    change = OutputChange(index=0, output=output)
    assert shown(change) == "<Figure>\n"
    assert shown(change, terminal=True, pictures="iterm2") == (
        f"\x1b]1337;File=inline=1;size=4:{PNG}\x07\n"
    )


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_the_terminal_tells_what_it_can(environ: dict[str, str], protocol: str | None) -> None:
    assert protocol_of(environ) == protocol


def test_a_large_picture_goes_to_kitty_in_pieces() -> None:
    data = bytes(range(256)) * 40
    shown = sequence("kitty", "image/png", data)
    assert shown is not None
    pieces = shown.rstrip("\n").removesuffix("\x1b\\").split("\x1b\\")
    controls, payloads = zip(
        *(piece.removeprefix("\x1b_G").split(";") for piece in pieces), strict=True
    )
    assert controls == ("a=T,f=100,q=2,m=1", "m=1", "m=1", "m=0")
    assert base64.b64decode("".join(payloads)) == data


def test_what_a_terminal_cannot_show_is_not_sent() -> None:
    assert sequence("kitty", "image/jpeg", b"x") is None
    assert sequence("iterm2", "image/svg+xml", b"x") is None
