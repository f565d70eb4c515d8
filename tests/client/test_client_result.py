from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from IPython.utils.capture import capture_output

from jupyter_agent_exec import models
from jupyter_agent_exec.client import ExecutionFailed, Result, apply
from jupyter_agent_exec.client.display import one_line, plain
from jupyter_agent_exec.models import OutputChange
from tests.client.wire import execution

PNG = b"\x89PNG not really"
PNG_OUTPUT = {
    "output_type": "display_data",
    "data": {"image/png": base64.encodebytes(PNG).decode(), "text/plain": "<Figure>"},
    "metadata": {"image/png": {"width": 10, "height": 5}},
}
TABLE = {
    "output_type": "execute_result",
    "execution_count": 1,
    "data": {"text/html": "<table></table>", "text/plain": "a b"},
    "metadata": {},
}
STREAM = {"output_type": "stream", "name": "stdout", "text": "1 < 2\x1b[2J\n"}
FAILURE = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}


def image_model(mimetype: str = "image/png") -> models.Image:
    return models.Image(mimetype=mimetype, width=10, height=5, bytes=15, url="/b", output=0)


def test_an_image_is_decoded_and_saved_with_its_suffix(tmp_path: Path) -> None:
    result = Result(execution(outputs=[PNG_OUTPUT], images=[image_model()]))
    (image,) = result.images
    assert (image.data, image.width, image.height) == (PNG, 10, 5)
    assert image.save(tmp_path / "plot") == tmp_path / "plot.png"
    assert (tmp_path / "plot.png").read_bytes() == PNG
    assert "10×5" in repr(image)


def test_an_svg_is_its_text() -> None:
    output = {**PNG_OUTPUT, "data": {"image/svg+xml": ["<svg>\n", "é</svg>"]}}
    result = Result(execution(outputs=[output], images=[image_model("image/svg+xml")]))
    assert result.images[0].data == "<svg>\né</svg>".encode()
    assert result.images[0].suffix == ".svg"


def test_raise_on_error_carries_the_result() -> None:
    error = models.ExecutionError(ename="KeyError", evalue="'x'", traceback=[])
    result = Result(execution("error", error=error))
    with pytest.raises(ExecutionFailed, match=r"error in 0\.25 s: KeyError: 'x'") as caught:
        result.raise_on_error()
    assert caught.value.result is result
    assert not result.ok
    assert Result(execution()).raise_on_error().ok


def test_a_status_that_is_no_error_says_why() -> None:
    result = Result(execution("kernel_died", reason="It ran out of memory."))
    assert result.summary == "kernel_died in 0.25 s: It ran out of memory."


def test_a_terminal_is_shown_no_control_characters() -> None:
    result = Result(execution(text="a\x1b]0;title\x07b\x1b[31mred\rover\x9b2J"))
    assert str(result) == "abred␍over\\x9b2J"
    assert repr(result).startswith("<Result [1] ok in 0.25 s>\nabred")
    assert result.text.startswith("a\x1b]0;")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand\nline", "tab\tand\nline"),
        ("crlf\r\nline", "crlf\nline"),
        ("\x1b[38;5;1mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r q\x1b\\x", "x"),
        ("\x1b]never ends", "␛]never ends"),
        ("\x07\x7f\x00", "␇␡␀"),
        ("admin\u202etxt", "admin\\u202etxt"),
        ("\ud800", "\ufffd"),
        ("é 🐧", "é 🐧"),
    ],
)
def test_plain_text_has_nothing_a_terminal_obeys(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_one_line_is_cut_to_its_width() -> None:
    assert one_line("a\nb  c", 10) == "a b c"
    assert one_line("abcdefghij", 5) == "abcd…"


@pytest.fixture
def shown() -> Iterator[Callable[[Result], list[dict[str, Any]]]]:
    """Return what IPython shows of a result: mimebundles."""
    shell = InteractiveShell.instance(history_length=0)

    def show(result: Result) -> list[dict[str, Any]]:
        with capture_output() as captured:
            display(result)
        return [output.data for output in captured.outputs]

    yield show
    shell.clear_instance()


def test_ipython_shows_the_text_and_then_whatever_is_more_than_text(
    shown: Callable[[Result], list[dict[str, Any]]],
) -> None:
    outputs = [STREAM, PNG_OUTPUT, TABLE, FAILURE]
    text, image, table = shown(Result(execution("error", outputs=outputs)))
    assert text["text/plain"].startswith("<Result [1] error")
    assert image == PNG_OUTPUT["data"]
    assert "<table>" in table["text/html"]


def test_lines_are_joined_but_json_stays_an_array(
    shown: Callable[[Result], list[dict[str, Any]]],
) -> None:
    data = {"application/json": ["a", "b"], "text/plain": ["a\n", "b"]}
    [_, output] = shown(Result(execution(outputs=[{**TABLE, "data": data}])))
    assert output == {"application/json": ["a", "b"], "text/plain": "a\nb"}


def test_an_execution_without_outputs_is_shown_by_its_status(
    shown: Callable[[Result], list[dict[str, Any]]],
) -> None:
    assert shown(Result(execution(text=""))) == [{"text/plain": "<Result [1] ok in 0.25 s>"}]


def test_changes_bring_outputs_up_to_date() -> None:
    outputs: list[dict[str, Any]] = []
    first = {"output_type": "stream", "name": "stdout", "text": "a"}
    for change in (
        OutputChange(index=0, output=first),
        OutputChange(index=0, append="b"),
        OutputChange(index=1, output=PNG_OUTPUT),
        OutputChange(index=1, output=TABLE),
        OutputChange(index=2, output=FAILURE),
        OutputChange(index=2, truncate=True),
    ):
        apply(outputs, change)
    assert outputs == [{**first, "text": "ab"}, TABLE]
    assert first["text"] == "a"
    json.dumps(outputs)
