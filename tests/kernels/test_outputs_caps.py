"""What is over the cap loses its middle, and head + omitted + tail is everything."""

from __future__ import annotations

import random

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.models import Omitted
from jupyter_agent_exec.text.model_text import transcript
from jupyter_agent_exec.types import ExecutionId, Output
from tests.kernels.feeding import clear, fail, outputs_of, say, show, update

WHOLE = 1 << 30


class Sink:
    is_full = False

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def write(self, text: str) -> None:
        self.pieces.append(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def told(output: Output) -> Omitted | None:
    note = output.get("metadata", {}).get("agent_exec")
    return None if note is None else Omitted(**note["omitted"])


def size(outputs: list[Output]) -> int:
    total = 0
    for output in outputs:
        if told(output) is None:
            kept = [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
            kept += [output.get("ename", ""), output.get("evalue", "")]
            kept += output.get("traceback", [])
            total += sum(len(text.encode()) for text in kept)
    return total


def parts(outputs: list[Output]) -> tuple[str, str]:
    """Return the streams' text before and after the only note."""
    (at,) = [index for index, output in enumerate(outputs) if told(output) is not None]
    before, after = outputs[:at], outputs[at + 1 :]
    return "".join(o["text"] for o in before), "".join(o["text"] for o in after)


@pytest.mark.parametrize("cap", [1000, 1001, 4096])
@pytest.mark.parametrize(
    "chunks",
    [
        ["x" * 100_000],
        ["é€😀" * 30_000],
        ["😀" * 10_000, "a", "é\n" * 3000],
        [f"line {i}\n" for i in range(5000)],
        ["é"] * 20_000,
        ["short\n", "y" * 50_000, "end\n"],
        [f"\r{i} %" for i in range(5000)],
        ["x" * 1000, "y" * 3097],
    ],
    ids=["one line", "wide", "mixed", "lines", "tiny", "huge between", "progress", "just over"],
)
def test_head_and_omitted_and_tail_are_the_whole_text(cap: int, chunks: list[str]) -> None:
    outputs = outputs_of(cap=cap)
    whole = "".join(chunks)
    for chunk in chunks:
        say(outputs, chunk)
        assert size(outputs.outputs) <= cap or len(chunks) > 100
    if len(whole.encode()) <= cap:
        assert outputs.omitted == Omitted()
        return
    head, tail = parts(outputs.outputs)
    omitted = outputs.omitted
    assert whole.startswith(head)
    assert whole.endswith(tail)
    gap = whole[len(head) : len(whole) - len(tail)]
    assert omitted == Omitted(bytes=len(gap.encode()), lines=gap.count("\n"), outputs=0)
    assert outputs.omitted != Omitted()
    assert cap // 2 - cap // 32 - 3 <= len(head.encode()) <= cap // 2
    assert cap // 4 < len(tail.encode()) <= cap - len(head.encode())


def test_what_fits_exactly_is_kept_whole() -> None:
    outputs = outputs_of(cap=1000)
    say(outputs, "x" * 600)
    show(outputs, "é" * 150)
    say(outputs, "y" * 100)
    assert outputs.omitted == Omitted()
    assert len(outputs.outputs) == 3
    say(outputs, "z")
    assert outputs.omitted != Omitted()


def test_the_note_stands_between_and_tells_exactly() -> None:
    outputs = outputs_of(cap=1000)
    for index in range(1000):
        say(outputs, f"{index:4}\n")
    before, note, after = outputs.outputs
    omitted = outputs.omitted
    assert note == {
        "output_type": "display_data",
        "data": {"text/plain": f"[{omitted.bytes:,} bytes in {omitted.lines:,} lines left out]"},
        "metadata": {
            "agent_exec": {
                "omitted": {"bytes": omitted.bytes, "lines": omitted.lines, "outputs": 0}
            }
        },
    }
    assert before["text"].endswith("\n")
    assert after["text"].endswith(" 999\n")
    assert size(outputs.outputs) + omitted.bytes == 5000


def test_a_large_display_is_left_out_alone() -> None:
    outputs = outputs_of(cap=1000)
    say(outputs, "before\n")
    show(outputs, "x" * 5000)
    say(outputs, "after\n")
    assert [o.get("text") or o["data"]["text/plain"] for o in outputs.outputs] == [
        "before\n", "[5,000 bytes and 1 whole output left out]", "after\n",
    ]  # fmt: skip
    assert outputs.omitted == Omitted(bytes=5000, lines=0, outputs=1)


def test_a_display_that_just_fits_is_kept() -> None:
    outputs = outputs_of(cap=1000)
    say(outputs, "x" * 900)
    show(outputs, "y" * 490)
    assert outputs.outputs[-1]["data"] == {"text/plain": "y" * 490}
    assert outputs.omitted == Omitted(bytes=400)


def test_a_large_display_that_becomes_small_is_shown_and_no_more_omitted() -> None:
    outputs = outputs_of(cap=1000)
    show(outputs, "x" * 5000, "d")
    update(outputs, "small", "d")
    assert outputs.outputs[0]["data"] == {"text/plain": "small"}
    assert outputs.omitted == Omitted()
    update(outputs, "y" * 3000, "d")
    assert outputs.omitted == Omitted(bytes=3000, outputs=1)


def test_metadata_and_json_count_as_well() -> None:
    outputs = outputs_of(cap=1000)
    outputs.feed("display_data", {"data": {}, "metadata": {"m": "x" * 2000}})
    outputs.feed("display_data", {"data": {"application/json": ["x" * 2000]}, "metadata": {}})
    assert outputs.omitted == Omitted(bytes=2009 + 2004, outputs=2)


def test_the_error_at_the_end_survives() -> None:
    outputs = outputs_of(cap=1000)
    for _ in range(100):
        say(outputs, "x" * 99 + "\n")
    fail(outputs, "Traceback", "the end")
    assert outputs.outputs[-1]["traceback"] == ["Traceback", "the end"]
    assert outputs.error is not None


@pytest.mark.parametrize(
    ("traceback", "evalue"),
    [
        ([f"frame {i}" for i in range(1000)], "v"),
        (["x" * 10_000], "v"),
        (["first", "é" * 10_000, "last"], "v"),
        (["Traceback"], "😀" * 10_000),
        ([], "v" * 10_000),
    ],
)
def test_a_huge_error_loses_its_middle(traceback: list[str], evalue: str) -> None:
    outputs = outputs_of(cap=4000)
    fail(outputs, *traceback, evalue=evalue)
    (output,) = outputs.outputs
    whole = len("E") + len(evalue.encode()) + sum(len(line.encode()) for line in traceback)
    notes = [output["evalue"], *output["traceback"]]
    kept = sum(len(text.encode()) for text in notes) + 1
    assert kept <= 1000 + 100
    assert whole - 1000 <= outputs.omitted.bytes < whole
    assert "bytes left out" in "".join(notes)
    assert outputs.omitted.outputs == 0


def test_what_was_cleared_is_not_omitted() -> None:
    outputs = outputs_of(cap=1000)
    say(outputs, "x" * 5000)
    show(outputs, "y" * 5000)
    outputs.feed("clear_output", {"wait": True})
    assert outputs.omitted != Omitted()
    say(outputs, "fresh")
    assert outputs.omitted == Omitted()
    assert outputs.outputs == [{"output_type": "stream", "name": "stdout", "text": "fresh"}]


def test_too_many_outputs_lose_their_middle() -> None:
    outputs = outputs_of(cap=WHOLE, most=20)
    for index in range(100):
        show(outputs, f"{index:2}")
    shown = [output["data"]["text/plain"] for output in outputs.outputs]
    assert len(shown) <= 21
    assert shown[:10] == [f"{index:2}" for index in range(10)]
    assert shown[-5:] == [str(index) for index in range(95, 100)]
    assert outputs.omitted == Omitted(bytes=2 * (101 - len(shown)), outputs=101 - len(shown))


def test_displays_behind_the_cap_are_still_found() -> None:
    displays = Displays()
    first = outputs_of("x_1", displays, cap=1000)
    show(first, "in the head", "head")
    show(first, "left out", "gone")
    for _ in range(100):
        say(first, "x" * 99 + "\n")
    show(first, "in the tail", "tail")
    gone = first.omitted.bytes
    while first.omitted.bytes == gone:
        say(first, "x" * 9 + "\n")
    second = outputs_of("x_2", displays, cap=1000)
    for display_id in ("head", "tail"):
        update(second, "new", display_id)
    indexes = [handed.targets[0].index for handed in second.take_display_updates()]
    assert [first.outputs[i]["data"]["text/plain"] for i in indexes] == [
        "in the head", "in the tail",
    ]  # fmt: skip


def random_feed(rng: random.Random, feeds: list[Outputs]) -> None:
    text = rng.choice(["a\n", "é", "😀\n", "x" * rng.randrange(300), "", "\r50 %", "line\n" * 20])
    choice = rng.random()
    for outputs in feeds:
        if choice < 0.8:
            say(outputs, text, "stdout" if choice < 0.6 else "stderr")
        elif choice < 0.95:
            show(outputs, text)
        elif choice < 0.98:
            fail(outputs, text[:50])
        elif choice < 0.985:
            outputs.feed("clear_output", {"wait": choice < 0.983})


@pytest.mark.parametrize("cap", [400, 1000, 2500])
@pytest.mark.parametrize("most", [12, 10_000])
def test_random_outputs_are_counted_exactly(cap: int, most: int) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        outputs, whole = outputs_of(cap=cap, most=most), outputs_of(cap=WHOLE)
        for _ in range(rng.randrange(200)):
            random_feed(rng, [outputs, whole])
            assert size(outputs.outputs) <= cap
        omitted, everything = outputs.omitted, whole.outputs
        assert size(outputs.outputs) + omitted.bytes == size(everything), seed
        assert lines(outputs.outputs) + omitted.lines == lines(everything), seed
        split = bool(omitted.bytes or omitted.outputs) and continued(outputs.outputs, everything)
        kept = sum(told(output) is None for output in outputs.outputs)
        assert kept - split + omitted.outputs == len(everything), seed
        nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=outputs.outputs)]))


def lines(outputs: list[Output]) -> int:
    return sum(output.get("text", "").count("\n") for output in outputs)


def continued(outputs: list[Output], everything: list[Output]) -> bool:
    """Whether one stream output has a part on each side of the gap."""
    for at in range(1, len(outputs) - 1):
        before, after = outputs[at - 1], outputs[at + 1]
        if told(outputs[at]) and before["output_type"] == after["output_type"] == "stream":
            whole = everything[at - 1]
            behind = len(outputs) - at - 1
            return whole != before and len(everything) - behind == at - 1
    return False


def test_the_sink_is_given_the_whole_text_from_the_start() -> None:
    sink, whole = Sink(), outputs_of(cap=WHOLE)
    outputs = outputs_of(cap=1000, sink=sink)
    rng = random.Random(3)
    for _ in range(500):
        text = rng.choice(["line\n", "\x1b[31mred\x1b[0m", "\r50 %", "😀" * 30, "x" * 100 + "\n"])
        choice = rng.random()
        for each in (outputs, whole):
            if choice < 0.8:
                say(each, text)
            elif choice < 0.9:
                show(each, text)
            else:
                fail(each, text * 50)
    assert outputs.omitted != Omitted()
    outputs.finish()
    assert sink.text == transcript(whole.outputs)


def test_the_sink_is_given_nothing_while_nothing_is_left_out() -> None:
    sink = Sink()
    outputs = outputs_of(cap=1000, sink=sink)
    say(outputs, "x" * 1000)
    outputs.finish()
    assert sink.pieces == []


def test_a_traceback_that_is_cut_is_whole_in_the_sink() -> None:
    sink = Sink()
    outputs = outputs_of(cap=4000, sink=sink)
    say(outputs, "before\n")
    fail(outputs, "x" * 2000)
    outputs.finish()
    assert sink.text == "before\n" + "x" * 2000 + "\nE: v"


def test_a_display_id_that_nothing_shows_any_more_is_forgotten() -> None:
    displays = Displays()
    first, second = outputs_of("x_1", displays, most=20), outputs_of("x_2", displays)
    for number in range(1000):
        show(first, "here", str(number))
    show(second, "here", "0")
    clear(second)
    assert len(displays._shown) == len(first.outputs) - 1  # one is the note
    show(second, "here", "late")
    displays.forget(ExecutionId("x_2"))
    assert displays._shown.keys() < {str(number) for number in range(1000)}
    clear(first)
    assert not displays._shown
