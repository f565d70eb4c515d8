from __future__ import annotations

import io
from typing import Any

from jupyter_agent_exec.cli.console import Console, LiveView
from jupyter_agent_exec.client import OutputChanged
from jupyter_agent_exec.models import OutputChange


class Screen(io.StringIO):
    """What is written to a terminal, or to a pipe."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(*changes: OutputChange, terminal: bool = False) -> str:
    screen = Screen(terminal=terminal)
    view = LiveView(Console(out=screen, err=screen))
    for change in changes:
        view.show(OutputChanged(change))
    view.end_line()
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


def test_a_progress_bar_is_overwritten_only_on_a_terminal() -> None:
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
    view = LiveView(Console(out=screen, err=screen))
    view.show(OutputChanged(OutputChange(index=0, output=stream("a\n"))))
    view.finish([stream("a\nb\n"), stream("c", "stderr")])
    assert screen.getvalue() == "a\nb\nc\n"


def test_of_a_picture_the_text_is_written() -> None:
    output = {"output_type": "display_data", "data": {"image/png": "", "text/plain": "<Figure>"}}
    assert shown(OutputChange(index=0, output=output), terminal=True) == "<Figure>\n"
