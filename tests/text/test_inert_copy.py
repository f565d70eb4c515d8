from __future__ import annotations

from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.changes import apply_output_changes
from jupyter_agent_exec.text.inert import InertCopy, set_outputs

SCRIPT = {
    "output_type": "display_data",
    "data": {"application/javascript": "alert(1)", "text/plain": "<it>"},
    "metadata": {},
}


def stream(text: str) -> dict[str, str]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def test_steps_of_the_original_become_steps_of_the_copy():
    copy = InertCopy()
    steps = copy.feed(
        [
            OutputChange(index=0, output=stream("a\n")),
            OutputChange(index=0, append="b\n"),
            OutputChange(index=1, output=SCRIPT),
        ]
    )
    shown = apply_output_changes([], steps)
    assert shown[0] == stream("a\nb\n")
    assert "application/javascript" not in shown[1]["data"]
    assert apply_output_changes(["anything"], copy.whole()) == shown
    assert copy.held


def test_what_is_dropped_is_held_no_more():
    copy = InertCopy()
    copy.feed([OutputChange(index=0, output=SCRIPT), OutputChange(index=1, output=SCRIPT)])
    copy.feed([OutputChange(index=1, truncate=True)])
    assert copy.held
    copy.feed([OutputChange(index=0, output=stream("a"))])
    assert not copy.held
    assert apply_output_changes([], copy.whole()) == [stream("a")]


def test_an_output_that_comes_again_is_not_made_inert_again():
    copy = InertCopy()
    (step,) = copy.feed([OutputChange(index=0, output=SCRIPT)])
    _, again = copy.feed(
        [OutputChange(index=0, truncate=True), OutputChange(index=0, output=SCRIPT)]
    )
    assert again.output is step.output
    assert copy.whole()[1].output is step.output


def test_outputs_are_set_from_the_first():
    assert apply_output_changes([stream("old"), SCRIPT], set_outputs([stream("new")])) == [
        stream("new")
    ]
