"""Messages become outputs, and watchers can follow them."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.models import ExecutionError, Omitted, OutputChange
from jupyter_agent_exec.records import OutputRef
from jupyter_agent_exec.types import ExecutionId, Output
from tests.kernels.feeding import CAP, clear, fail, outputs_of, say, show, update


def brief(outputs: list[Output]) -> list[str]:
    return [
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("ename", "")
        for output in outputs
    ]


def apply(watched: list[Output], changes: list[OutputChange]) -> None:
    """Do what a watcher does, with what crosses the wire."""
    for change in json.loads(msgspec.json.encode(changes)):
        index = change["index"]
        if "output" in change:
            assert index <= len(watched)
            watched[index : index + 1] = [change["output"]]
        elif "append" in change:
            watched[index]["text"] += change["append"]
        else:
            assert change["truncate"] is True
            del watched[index:]


def valid(outputs: list[Output]) -> None:
    nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=outputs)]))


def test_neighbouring_stream_messages_of_one_name_are_one_output() -> None:
    outputs = outputs_of()
    say(outputs, "a\n")
    say(outputs, "b\n")
    say(outputs, "c\n", "stderr")
    show(outputs, "d")
    say(outputs, "e\n")
    assert brief(outputs.outputs) == ["a\nb\n", "c\n", "d", "e\n"]
    valid(outputs.outputs)


def test_clearing_without_wait_is_done_at_once() -> None:
    outputs = outputs_of()
    say(outputs, "a")
    clear(outputs)
    assert outputs.outputs == []
    say(outputs, "b")
    assert brief(outputs.outputs) == ["b"]


def test_clearing_with_wait_is_done_by_the_next_output_only() -> None:
    outputs = outputs_of()
    show(outputs, "a", "d")
    clear(outputs, wait=True)
    update(outputs, "b", "d")
    outputs.feed("comm_msg", {"data": {}})
    assert brief(outputs.outputs) == ["b"]
    fail(outputs)
    assert brief(outputs.outputs) == ["E"]


def test_what_was_cleared_is_not_updated() -> None:
    outputs = outputs_of()
    show(outputs, "a", "d")
    clear(outputs)
    say(outputs, "text")
    update(outputs, "b", "d")
    assert brief(outputs.outputs) == ["text"]
    assert outputs.take_display_updates() == []


def test_an_update_reaches_all_outputs_with_its_id_and_keeps_their_type() -> None:
    outputs = outputs_of()
    show(outputs, "a", "d")
    outputs.feed(
        "execute_result",
        {"data": {"text/plain": "b"}, "metadata": {}, "execution_count": 3,
         "transient": {"display_id": "d"}},
    )  # fmt: skip
    update(outputs, "c", "d")
    assert brief(outputs.outputs) == ["c", "c"]
    assert outputs.outputs[1]["output_type"] == "execute_result"
    assert outputs.outputs[1]["execution_count"] == 3


def test_a_snapshot_does_not_change_later() -> None:
    outputs = outputs_of()
    show(outputs, "a", "d")
    say(outputs, "x")
    before = outputs.outputs
    update(outputs, "b", "d")
    say(outputs, "y")
    assert brief(before) == ["a", "x"]


def test_updates_for_earlier_executions_are_handed_out_once_and_only_the_last() -> None:
    displays = Displays()
    first = outputs_of("x_1", displays)
    say(first, "text")
    show(first, "a", "d")
    second = outputs_of("x_2", displays)
    update(second, "b", "d")
    show(second, "c", "d")
    (handed,) = second.take_display_updates()
    assert handed.display_id == "d"
    assert handed.targets == (OutputRef(ExecutionId("x_1"), 1),)
    assert handed.output == {
        "output_type": "display_data", "data": {"text/plain": "c"}, "metadata": {},
    }  # fmt: skip
    assert second.take_display_updates() == []
    assert brief(first.outputs) == ["text", "a"]
    third = outputs_of("x_3", displays)
    update(third, "e", "d")
    assert third.take_display_updates()[0].targets == (
        OutputRef(ExecutionId("x_1"), 1),
        OutputRef(ExecutionId("x_2"), 0),
    )


def test_late_output_goes_on_counting_and_updates_what_its_execution_showed() -> None:
    displays = Displays()
    first = outputs_of("x_1", displays)
    show(first, "a", "d")
    late = outputs_of("x_1", displays)
    update(late, "b", "d")
    show(late, "c", "d")
    update(late, "e", "d")
    assert brief(late.outputs) == ["e"]
    (handed,) = late.take_display_updates()
    assert handed.targets == (OutputRef(ExecutionId("x_1"), 0),)
    later = outputs_of("x_1", displays)
    clear(later)
    update(later, "f", "d")
    assert [ref.index for ref in later.take_display_updates()[0].targets] == [0, 1]


def test_display_updates_over_the_cap_are_left_out_and_counted() -> None:
    displays = Displays()
    first = outputs_of("x_1", displays)
    show(first, "a", "d")
    second = outputs_of("x_2", displays, cap=1000)
    update(second, "b" * 1001, "d")
    (handed,) = second.take_display_updates()
    assert handed.output["data"] == {"text/plain": "[1,001 bytes and 1 whole output left out]"}
    assert second.omitted == Omitted(bytes=1001, outputs=1)


def test_the_error_is_told() -> None:
    outputs = outputs_of()
    assert outputs.error is None
    fail(outputs, "line 1", "line 2")
    assert outputs.error == ExecutionError(ename="E", evalue="v", traceback=["line 1", "line 2"])


@pytest.mark.parametrize(
    ("msg_type", "content"),
    [
        ("stream", {}),
        ("stream", {"name": "stdout", "text": None}),
        ("stream", {"name": "stdout", "text": "lone \ud800"}),
        ("stream", {"name": "stdout", "text": ["a", 5, None]}),
        ("display_data", {}),
        ("display_data", {"data": None, "metadata": None, "transient": None}),
        ("display_data", {"data": {"text/plain": 5, "a/b": {"c": "\udfff"}}}),
        ("display_data", {"data": {}, "metadata": {"m": float("nan"), "\udfff": "\ud800"}}),
        ("display_data", {"data": {"text/plain": "\ud800"}, "transient": {"display_id": 5}}),
        ("display_data", {"data": {"application/json": [float("inf"), "\ud800"]}}),
        ("execute_result", {"data": {"text/plain": "x"}, "execution_count": -1}),
        ("execute_result", {"data": {"text/plain": "x"}, "execution_count": "1"}),
        ("execute_result", {"data": {"text/plain": "x"}, "execution_count": False}),
        ("error", {}),
        ("error", {"ename": None, "evalue": 5, "traceback": [1, "\ud800"]}),
        ("error", {"traceback": "text"}),
        ("clear_output", {}),
        ("comm_open", {"comm_id": "c", "data": {}}),
        ("no_such_type", {"data": {}}),
    ],
)  # fmt: skip
def test_odd_content_still_makes_valid_outputs(msg_type: str, content: dict[str, Any]) -> None:
    outputs = outputs_of()
    outputs.feed(msg_type, content)
    valid(outputs.outputs)
    json.dumps(outputs.outputs, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"payload": [{"source": "page"}, {"source": ["page"]}, 5, {}]},
         ["", "['page']]", ": None]"]),
        ({"payload": {"source": "page"}}, []),
        ({"payload": [{"source": "set_next_input", "text": 5, "replace": []}]}, ["\n5"]),
        ({"payload": [{"source": "x" * 1000}]}, ["x" * 100 + "]"]),
        ({"status": "error", "ename": "E\ud800"}, ["E\ufffd"]),
        ({"status": "error", "ename": ["E"], "evalue": 5, "traceback": 7}, []),
        ({"status": "ok", "ename": "E"}, []),
    ],
)  # fmt: skip
def test_odd_replies_still_make_valid_outputs(reply: dict[str, Any], shown: list[str]) -> None:
    outputs = outputs_of()
    outputs.feed_reply(reply)
    valid(outputs.outputs)
    assert len(outputs.outputs) == len(shown)
    assert all(map(str.endswith, brief(outputs.outputs), shown))


def test_the_last_error_is_the_one_that_the_reply_names() -> None:
    outputs = outputs_of()
    fail(outputs, "line 1")
    outputs.feed_reply({"status": "error", "ename": "E", "evalue": "v", "traceback": []})
    outputs.feed_reply({"status": "error", "ename": "NoneType", "evalue": "None"})
    assert brief(outputs.outputs) == ["E"]
    outputs.feed_reply({"status": "error", "ename": "Other", "evalue": "o", "traceback": ["t"]})
    assert outputs.error == ExecutionError(ename="Other", evalue="o", traceback=["t"])


def test_values_come_back_as_nbformat_reads_them() -> None:
    outputs = outputs_of()
    bundle = {"text/plain": ["a\n", "b"], "application/json": ["a", float("nan")]}
    outputs.feed("display_data", {"data": bundle, "metadata": {}})
    assert outputs.outputs[0]["data"] == {"text/plain": "a\nb", "application/json": ["a", "nan"]}


def test_a_stream_that_grew_is_appended_to() -> None:
    outputs = outputs_of()
    say(outputs, "é")
    version, _ = outputs.changes_since(0)
    say(outputs, "b")
    say(outputs, "ü")
    assert outputs.changes_since(version)[1] == [OutputChange(index=0, append="bü")]
    assert outputs.changes_since(outputs.version) == (outputs.version, [])


def test_a_version_that_never_was_gets_everything_anew() -> None:
    outputs = outputs_of()
    say(outputs, "a")
    watched: list[Output] = [{"output_type": "stream", "name": "stdout", "text": "other"}] * 3
    apply(watched, outputs.changes_since(10_000)[1])
    assert watched == outputs.outputs


def random_message(rng: random.Random, outputs: Outputs) -> None:
    text = rng.choice(["a", "é\n", "😀", "line\n" * 5, "x" * rng.randrange(200), ""])
    choice = rng.random()
    if choice < 0.6:
        say(outputs, text, rng.choice(["stdout", "stdout", "stdout", "stderr"]))
    elif choice < 0.75:
        show(outputs, text * rng.choice([1, 1, 5]), rng.choice([None, "d1", "d2"]))
    elif choice < 0.9:
        update(outputs, text * rng.choice([1, 1, 9]), rng.choice(["d1", "d2"]))
    elif choice < 0.95:
        fail(outputs, text, text * 3)
    elif choice < 0.98:
        clear(outputs, wait=rng.random() < 0.5)


@pytest.mark.parametrize("cap", [200, 1000, 3000, CAP])
@pytest.mark.parametrize("most", [8, 10_000])
def test_watchers_at_any_version_come_to_see_the_same(cap: int, most: int) -> None:
    for seed in range(15):
        rng = random.Random(seed)
        outputs = outputs_of(cap=cap, most=most)
        watchers: list[tuple[int, list[Output]]] = [(0, []) for _ in range(4)]
        for _ in range(120):
            random_message(rng, outputs)
            for number, (version, watched) in enumerate(watchers):
                if rng.random() < (1.0, 0.3, 0.1, 0.02)[number]:
                    version, changes = outputs.changes_since(version)
                    apply(watched, changes)
                    assert watched == outputs.outputs, (seed, number)
                    watchers[number] = version, watched
        valid(outputs.outputs)
