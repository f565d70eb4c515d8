"""The module's functions, beside lagent's own, and which code is run."""

from __future__ import annotations

import base64
import builtins
import io
import sys
from pathlib import Path

import pytest
from lagent.actions import ipython_interpreter as theirs
from PIL import Image

from jupyter_agent_exec.adapters import lagent as ours
from jupyter_agent_exec.adapters.lagent.action_returns import code_in

TEXTS = [
    "print(1)",
    "Here it is:\n```python\nprint(1)\n```\nand\n```\nprint(2)\n```",
    "```\nprint(1)\n```",
    "```sql\nselect 1\n```",
    "run `print(1)` or `print(2)`",
    '{"code": "print(1)"}',
    "{code: 'print(1)', // with a remark\n}",
    '{"source": "print(1)"}',
    "[1, 2]",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_code_is_extracted_as_lagent_does(text: str) -> None:
    assert ours.extract_code(text) == theirs.extract_code(text)


@pytest.mark.parametrize(
    "source",
    [
        "print('`a` and `b`')",
        'doc = """\n```python\nprint(1)\n```\n"""',
        "%matplotlib inline\nx = '`'  # `y`",
        "%%bash\necho `date`",
        "await asyncio.sleep(0)  # `now`",
        "text = {'code': 'print(1)'}",
        "",
    ],
)
def test_what_is_python_already_is_run_as_it_is(source: str) -> None:
    assert code_in(source) == source


@pytest.mark.parametrize(
    ("command", "source"),
    [
        ("Look:\n```python\nprint(1)\n```", "print(1)\n"),
        ("`print(1)`", "print(1)"),
        ('{"code": "print(1)"}', "print(1)"),
        ('{"code": 5}', '{"code": 5}'),
        ('{"other": 1}', '{"other": 1}'),
        ("1 +", "1 +"),
        ("(" * 10_000, "(" * 10_000),
    ],
)
def test_what_is_not_is_looked_through(command: str, source: str) -> None:
    assert code_in(command) == source


def test_the_code_that_a_text_holds_is_run(interpreter: ours.IPythonInterpreter) -> None:
    command = "It is:\n```python\nprint(`1`)\n```".replace("`1`", "1")
    answer = interpreter.run(command)
    assert answer.args == {"text": command}
    assert answer.result == [{"type": "text", "content": "1\n"}]
    answer = interpreter.run("'`kept`'")
    assert answer.result == [{"type": "text", "content": "'`kept`'"}]


def test_escape_sequences_go_as_lagents() -> None:
    line = "\x1b[0;31mZeroDivisionError\x1b[0m: \x1b[38;5;241mx\x1b[39m \x1b[1mbold"
    assert ours.escape_ansi(line) == theirs.escape_ansi(line) == "ZeroDivisionError: x bold"


def image(format: str) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(buffer, format)
    return base64.b64encode(buffer.getvalue()).decode()


def test_a_png_is_published_as_it_is(tmp_path: Path) -> None:
    data = base64.b64decode(image("png")) + b"what Pillow would drop"
    published = ours.publish_image_to_local(base64.b64encode(data).decode(), str(tmp_path / "new"))
    assert Path(published).parent == tmp_path / "new"
    assert Path(published).read_bytes() == data


def test_other_images_are_published_as_png(tmp_path: Path) -> None:
    path = ours.publish_image_to_local(image("jpeg"), str(tmp_path))
    assert path.endswith(".png")
    with Image.open(path) as read:
        assert (read.format, read.size) == ("PNG", (3, 2))


@pytest.mark.parametrize("data", ["A", base64.b64encode(b"no image").decode()])
def test_what_is_no_image_is_not_published(tmp_path: Path, data: str) -> None:
    with pytest.raises((ValueError, OSError)):
        ours.publish_image_to_local(data, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_lines_are_read_until_input_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("x = 1\n\nprint(x)\n"))
    assert ours.get_multiline_input("Your code:") == "x = 1\n\nprint(x)"
    assert capsys.readouterr().out.startswith("Your code:\n")
    assert ours.get_multiline_input("Again:") == ""


def test_the_module_has_what_lagents_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert ours.TimeoutError is builtins.TimeoutError
    assert ours.START_CODE.format("x = 1").endswith("x = 1\n")
    assert not (tmp_path / "work_dir").exists()
    assert isinstance(ours.code_interpreter, ours.IPythonInterpreter)
    assert ours.code_interpreter is ours.code_interpreter
    assert (tmp_path / "work_dir" / "tmp_dir").is_dir()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ours.nothing
