"""The interpreter as an action of lagent: how it is called, and the shape of what it answers."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import lagent.actions
import pytest
from lagent.actions import ActionExecutor
from lagent.actions.ipython_interpreter import IPythonInterpreter as LagentsOwn
from lagent.agents import ReAct
from lagent.schema import ActionReturn, ActionStatusCode, ActionValidCode

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter

DISPLAY = """
from IPython.display import display
def show(mimetype, data):
    display({mimetype: data, "text/plain": "<a picture>"}, raw=True)
class Picture:
    def _repr_mimebundle_(self, **_):
        return {"image/png": %r, "text/plain": "<a picture>"}
"""
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)


def text(answer: ActionReturn) -> str:
    assert answer.state == ActionStatusCode.SUCCESS, answer.errmsg
    assert answer.result is not None
    assert [item["type"] for item in answer.result] == ["text"]
    return str(answer.result[0]["content"])


def images(answer: ActionReturn) -> list[str]:
    assert answer.state == ActionStatusCode.SUCCESS, answer.errmsg
    assert answer.result is not None
    first, *rest = answer.result
    assert first["type"] == "text"
    assert all(item["type"] == "image" for item in rest)
    return [item["content"] for item in rest]


def test_what_is_printed_and_shown_is_one_text(interpreter: IPythonInterpreter) -> None:
    answer = interpreter.run("import sys\nprint('a')\nprint('b', end='', file=sys.stderr)\n40 + 2")
    assert answer == ActionReturn(
        args={
            "text": "import sys\nprint('a')\nprint('b', end='', file=sys.stderr)\n40 + 2",
        },
        type="IPythonInterpreter",
        result=[{"type": "text", "content": "a\nb42"}],
    )


def test_the_text_comes_first_even_when_it_is_empty(interpreter: IPythonInterpreter) -> None:
    assert text(interpreter.run("nothing = None")) == ""


def test_a_failure_has_the_text_so_far_then_the_traceback(interpreter: IPythonInterpreter) -> None:
    answer = interpreter.run("print('so far')\n1 / 0")
    assert answer.result is None
    assert answer.state == ActionStatusCode.API_ERROR
    assert answer.args == {"text": "print('so far')\n1 / 0"}
    assert answer.errmsg is not None
    lines = answer.errmsg.splitlines()
    assert (lines[0], lines[-1]) == ("so far", "ZeroDivisionError: division by zero")
    assert "----> 2 1 / 0" in lines
    assert "\x1b" not in answer.errmsg


def test_escape_sequences_that_code_prints_are_its_own(interpreter: IPythonInterpreter) -> None:
    assert text(interpreter.run(r"print('\x1b[31mred\x1b[0m')")) == "\x1b[31mred\x1b[0m\n"


def test_images_are_files_in_the_folder(interpreter: IPythonInterpreter) -> None:
    interpreter.run(DISPLAY % PNG)
    answer = interpreter.run(f"show('image/png', {PNG!r})\nPicture()")
    assert answer.result is not None
    assert answer.result[0] == {"type": "text", "content": "<a picture>"}
    shown, value = images(answer)
    for path in (shown, value):
        assert re.fullmatch(r"images/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.png", path)
        assert Path(path).read_bytes() == base64.b64decode(PNG)


@pytest.mark.parametrize(
    ("mimetype", "data", "suffix"),
    [
        ("image/jpeg", "/9j/", ".jpg"),
        ("image/gif", "R0lGODlh", ".gif"),
        ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>", ".svg"),
    ],
)
def test_other_images_keep_their_type(
    interpreter: IPythonInterpreter, mimetype: str, data: str, suffix: str
) -> None:
    interpreter.run(DISPLAY % PNG)
    answer = interpreter.run(f"show({mimetype!r}, {data!r})")
    assert answer.result is not None
    assert answer.result[0]["content"] == ""
    (path,) = images(answer)
    assert Path(path).suffix == suffix
    written = Path(path).read_bytes()
    assert written in (base64.b64decode(data + "==", validate=False), data.encode())


def test_what_is_no_image_is_told_in_words(interpreter: IPythonInterpreter) -> None:
    interpreter.run(DISPLAY % PNG)
    assert text(interpreter.run("show('image/png', 'not base64!')")) == "<a picture>"
    assert text(interpreter.run("show('text/html', '<b>bold</b>')")) == "<a picture>"


def test_an_executor_takes_it_as_it_is(interpreter: IPythonInterpreter) -> None:
    executor = ActionExecutor([interpreter])
    assert executor.action_names() == ["IPythonInterpreter"]
    answer = executor("IPythonInterpreter", json.dumps({"command": "print(6 * 7)"}))
    assert text(answer) == "42\n"
    assert answer.valid == ActionValidCode.OPEN
    assert text(executor("IPythonInterpreter", '```json\n{"command": "1"}\n```')) == "1"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("print(1)", "invalid json format: print(1)"),
        ("null", "invalid arguments: null"),
        ("[1]", "unknown arguments: {1}"),
        ('{"code": "1"}', "unknown arguments: {'code'}"),
        ('{"timeout": 1}', "missing required arguments: {'command'}"),
        ('{"command": ["print(1)"]}', "command: Expected text, got list."),
        ('{"command": "1", "timeout": -1}', "timeout"),
        ('{"command": "1", "timeout": "soon"}', "timeout: Expected a number of seconds, got str."),
    ],
)
def test_wrong_arguments_are_told(
    interpreter: IPythonInterpreter, inputs: str, message: str
) -> None:
    answer = interpreter(inputs)
    assert answer.state == ActionStatusCode.ARGS_ERROR
    assert (answer.type, answer.result) == ("IPythonInterpreter", None)
    assert message in (answer.errmsg or "")


def test_models_call_nothing_but_run(interpreter: IPythonInterpreter) -> None:
    interpreter.run("kept = 1")
    executor = ActionExecutor([interpreter])
    for name in ("reset", "close", "nothing"):
        answer = executor(f"IPythonInterpreter.{name}", "{}")
        assert answer.state == ActionStatusCode.API_ERROR
        assert answer.errmsg == f"invalid API: {name}"
    assert text(interpreter.run("kept")) == "1"


def test_it_is_described_as_lagents_own(interpreter: IPythonInterpreter) -> None:
    theirs, ours = LagentsOwn().description, interpreter.description
    assert ours["name"] == theirs["name"]
    assert ours["required"] == theirs["required"]
    assert ours["parameter_description"] == theirs["parameter_description"]
    named = [[(each["name"], each["type"]) for each in d["parameters"]] for d in (ours, theirs)]
    assert named[0] == named[1]
    assert ours["description"].startswith("Run Python code in a Jupyter kernel.")
    assert not interpreter.is_toolkit


def test_both_are_in_lagents_registry(folder: Path) -> None:
    assert isinstance(lagent.actions.get_tool("IPythonInterpreter"), LagentsOwn)
    ours = lagent.actions.get_tool("jupyter_agent_exec.IPythonInterpreter", timeout=5)
    assert isinstance(ours, IPythonInterpreter)
    assert (ours.name, ours.timeout) == ("IPythonInterpreter", 5)


class Replayed:
    """A language model whose answers are known."""

    def __init__(self, *answers: str) -> None:
        self._answers = iter(answers)
        self.asked: list[list[dict[str, str]]] = []

    def chat(self, messages: list[dict[str, str]]) -> str:
        self.asked.append(list(messages))
        return next(self._answers)


def test_an_agent_works_with_it(interpreter: IPythonInterpreter) -> None:
    def asks(source: str) -> str:
        arguments = json.dumps({"command": source})
        return f"Thought: compute\nAction: IPythonInterpreter\nAction Input: {arguments}"

    model = Replayed(
        asks("total = sum(range(10))"),
        asks("total / none"),
        asks("print(total)"),
        "Thought: known\nFinal Answer: 45",
    )
    said = ReAct(llm=model, action_executor=ActionExecutor([interpreter])).chat("Sum up to 9.")
    assert said.response.strip() == "45"
    assert [action.state for action in said.actions[:3]] == [0, -1002, 0]
    assert "NameError: name 'none' is not defined" in model.asked[2][-1]["content"]
    assert model.asked[3][-2]["content"] == "Response:45\n\n"
