"""Models of widgets, followed by comm messages: what is kept, what is left out."""

from __future__ import annotations

import base64
from typing import Any

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.kernels.widget_models import CAPTURED_BYTES, WidgetModels, WidgetStates
from jupyter_agent_exec.text.redaction import Redactor
from jupyter_agent_exec.text.widgets import VIEW
from jupyter_agent_exec.types import ExecutionId

CAP = 100_000


class Kernel:
    """What a kernel says, and what follows it."""

    def __init__(self, max_bytes: int = CAP, redactor: Redactor | None = None) -> None:
        self.displays = Displays()
        self.models = WidgetModels(self.displays, redactor or Redactor(), max_bytes)
        self.outputs = Outputs(ExecutionId("x_1"), self.displays, max_output_bytes=CAP, sink=None)
        self.known: dict[str, tuple[int, int]] = {}

    def open(self, id: str, name: str = "Text", **state: Any) -> None:
        state = {"_model_name": f"{name}Model", "_model_module": "m", **state}
        data = {"state": state, "buffer_paths": []}
        content = {"comm_id": id, "target_name": "jupyter.widget", "data": data}
        self.models.take("comm_open", content)

    def update(self, id: str, state: Any, paths: Any = (), buffers: Any = ()) -> None:
        data = {"method": "update", "state": state, "buffer_paths": list(paths)}
        self.models.take("comm_msg", {"comm_id": id, "data": data}, buffers)

    def close(self, id: str) -> None:
        self.models.take("comm_close", {"comm_id": id, "data": {}})

    def say(self, text: str) -> None:
        self.outputs.feed("stream", {"name": "stdout", "text": text})

    def states(self, *roots: str, max_bytes: int = CAP) -> WidgetStates:
        return self.models.states(roots, self.known, max_bytes)

    def state(self, id: str) -> Any:
        self.known.clear()
        model = self.states(id).models[id]
        assert model is not None
        return model["state"]


def texts(outputs: Any) -> list[str]:
    return [output.get("text") or output.get("ename") for output in outputs]


def test_only_models_that_are_reached_and_changed_are_told() -> None:
    kernel = Kernel()
    kernel.open("box", "HBox", children=["IPY_MODEL_part"])
    kernel.open("part", value=1)
    kernel.open("other", value=2)
    assert kernel.states("box").models.keys() == {"box", "part"}
    assert kernel.states("box").models == {}
    kernel.update("other", {"value": 3})
    kernel.update("part", {"value": 4})
    told = kernel.states("box").models
    assert told.keys() == {"part"}
    assert told["part"] is not None
    assert told["part"]["state"]["value"] == 4
    kernel.update("box", {"children": []})
    kernel.update("part", {"value": 5})
    assert kernel.states("box").models.keys() == {"box"}


def test_a_widget_that_an_output_widget_shows_is_reached() -> None:
    kernel = Kernel()
    view = {"output_type": "display_data", "data": {VIEW: {"model_id": "in"}}, "metadata": {}}
    kernel.open("out", "Output", outputs=[view], msg_id="")
    kernel.open("in", value=1)
    assert kernel.states("out").models.keys() == {"out", "in"}


def test_a_closed_one_is_told_once_and_an_unknown_one_is_left_out() -> None:
    kernel = Kernel()
    kernel.open("w", value=1)
    kernel.states("w")
    kernel.close("w")
    assert kernel.states("w").models == {"w": None}
    assert kernel.states("w") == WidgetStates({}, [], 0, 0, {})
    kernel.update("before", {"value": 1})
    assert kernel.states("before").left_out == ["before"]


def test_binary_parts_are_replaced_with_their_value() -> None:
    kernel = Kernel()
    kernel.open("w")
    kernel.update("w", {}, [["value"], ["deep", 0]], [b"one", memoryview(b"two")])
    model = kernel.states("w").models["w"]
    assert model is not None
    assert [(each["path"], base64.b64decode(each["data"])) for each in model["buffers"]] == [
        (["value"], b"one"), (["deep", 0], b"two"),
    ]  # fmt: skip
    kernel.update("w", {"value": None, "deep": 1})
    told = kernel.states("w").models["w"]
    assert told is not None
    assert "buffers" not in told
    kernel.update("w", {}, [["value"]])  # its buffer did not come
    assert kernel.states("w").left_out == ["w"]


def test_the_last_of_nested_output_widgets_captures() -> None:
    kernel = Kernel()
    for id in ("a", "b"):
        kernel.open(id, "Output", outputs=[], msg_id="")
    kernel.say("cell\n")
    kernel.update("a", {"msg_id": "x_1"})
    kernel.say("a\n")
    kernel.update("b", {"msg_id": "x_1"})
    kernel.say("b\n")
    kernel.outputs.feed("error", {"ename": "E", "evalue": "", "traceback": []})
    kernel.update("b", {"msg_id": ""})
    kernel.outputs.feed("clear_output", {"wait": True})
    kernel.say("a again\n")
    kernel.update("a", {"msg_id": ""})
    kernel.say("cell again\n")
    assert texts(kernel.outputs.outputs) == ["cell\ncell again\n"]
    assert texts(kernel.state("a")["outputs"]) == ["a again\n"]
    assert texts(kernel.state("b")["outputs"]) == ["b\n", "E"]
    assert kernel.outputs.captured == {"a", "b"}
    assert kernel.displays.captures == {}


def test_what_another_request_captures_or_a_closed_widget_did_stays_in_the_cell() -> None:
    kernel = Kernel()
    kernel.open("a", "Output", outputs=[], msg_id="x_2")
    kernel.open("b", "Output", outputs=[], msg_id="x_1")
    kernel.open("text", msg_id="x_1")
    kernel.close("b")
    kernel.say("here")
    assert texts(kernel.outputs.outputs) == ["here"]


def test_a_kernel_can_replace_what_was_captured() -> None:
    kernel = Kernel()
    kernel.open("a", "Output", outputs=[], msg_id="x_1")
    kernel.say("one\n")
    kernel.update("a", {"outputs": [{"output_type": "stream", "name": "stdout", "text": "two\n"}]})
    kernel.say("three\n")
    assert texts(kernel.state("a")["outputs"]) == ["two\nthree\n"]


def test_captured_output_has_a_limit_and_says_what_is_left_out() -> None:
    kernel = Kernel(max_bytes=10 * CAPTURED_BYTES)
    kernel.open("a", "Output", outputs=[], msg_id="x_1")
    for _ in range(30):
        kernel.say("z" * 100_000 + "\n")
    told = kernel.models.states(["a"], {}, 2 * CAPTURED_BYTES).models["a"]
    assert told is not None
    assert len(str(told)) < 1.1 * CAPTURED_BYTES
    assert "left out]" in str(told)


def test_captured_output_of_all_widgets_has_a_limit_together() -> None:
    kernel = Kernel(max_bytes=10_000)
    for id in ("first", "second", "third"):
        kernel.open(id, "Output", outputs=[], msg_id="x_1")
        kernel.say("z" * 6000)
        kernel.update(id, {"msg_id": ""})
    told = kernel.models.states(["first", "second", "third"], {}, CAP)
    assert (list(told.models), told.left_out) == (["second", "first"], ["third"])
    assert kernel.models.captured("third") == []
    kernel.close("first")
    kernel.update("second", {"outputs": []})
    kernel.open("next", "Output", outputs=[], msg_id="x_1")
    kernel.say("here")
    assert texts(kernel.state("next")["outputs"]) == ["here"]


def test_models_of_a_kernel_have_a_limit_together() -> None:
    kernel = Kernel(max_bytes=10_000)
    for n in range(20):
        kernel.open(f"w{n}", value="z" * 1000)
    told = kernel.states(*(f"w{n}" for n in range(20)))
    assert 0 < len(told.models) < 10
    assert len(told.models) + len(told.left_out) == 20
    assert told.omitted_bytes > 0
    kernel.close("w0")
    kernel.open("new", value="z" * 1000)
    assert kernel.states("new").left_out == []


def test_what_is_too_large_for_the_execution_is_left_out() -> None:
    kernel = Kernel()
    kernel.open("small", value=1)
    kernel.open("large", value="z" * 5000)
    told = kernel.states("large", "small", max_bytes=2000)
    assert (list(told.models), told.left_out) == (["small"], ["large"])
    assert told.omitted_bytes > 5000


def test_secrets_are_replaced_in_states_and_texts() -> None:
    token = f"jaex_t_{'01J0AB' * 4}0Z_{'0123456789abcdef' * 4}"
    kernel = Kernel()
    kernel.open("w", "Label", value=f"key: {token}")
    kernel.open("a", "Output", outputs=[], msg_id="x_1")
    kernel.say(token[:20])
    kernel.say(token[20:])
    told = kernel.models.states(["w", "a"], {}, CAP, shown=["w"], captured=["a"])
    assert token[20:] not in str(told)
    assert told.redacted == 1
    assert told.texts.keys() == {"w", "a"}


def test_strange_messages_do_no_harm() -> None:
    kernel = Kernel()
    kernel.open("w", value=float("nan"), text="\ud800")
    for content in ({}, {"comm_id": 1}, {"comm_id": "w", "data": None},
                    {"comm_id": "w", "data": {"state": []}},
                    {"comm_id": "w", "data": {"state": {"value": 1}, "buffer_paths": [[], [[]]]}},
                    {"comm_id": "w", "data": {"state": {"msg_id": 5}}}):  # fmt: skip
        for msg_type in ("comm_open", "comm_msg"):
            kernel.models.take(msg_type, content)
    kernel.open("a", "Output", outputs=[1, {"output_type": "stream"}], msg_id=None)
    assert kernel.state("w")["text"] == "\ufffd"
    assert kernel.state("a")["outputs"] == []
