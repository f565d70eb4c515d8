from __future__ import annotations

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.adapters.result_pieces import omitted_note, quiet
from jupyter_agent_exec.client import Result
from jupyter_agent_exec.models import Omitted
from tests.client.wire import execution


@pytest.mark.parametrize(
    ("omitted", "said"),
    [
        (Omitted(bytes=27_045_659, outputs=1), "27,045,659 bytes, 1 output; all"),
        (Omitted(lines=1, bytes=12), "1 line, 12 bytes; all"),
        (Omitted(outputs=2), "2 outputs; all"),
    ],
)
def test_of_what_was_left_out_only_that_is_said(omitted: Omitted, said: str) -> None:
    note = omitted_note(Result(execution(outputs_complete=False, omitted=omitted)))
    assert note == f"Left out: {said} of it is kept with execution x_1."
    omitted = replace(omitted, unknown=True)
    more = omitted_note(Result(execution(outputs_complete=False, omitted=omitted)))
    assert more == f"{note} What it printed last may be missing."


def test_the_note_about_a_dead_kernel_promises_no_outputs() -> None:
    note = omitted_note(Result(execution("kernel_died", outputs_complete=False)))
    assert note == "What it printed last may be missing."


def test_installations_are_quiet() -> None:
    source = "! pip install a\n%pip install -qqq b\npip install c"
    assert quiet(source) == "! pip install -qqq a\n%pip install -qqq b\npip install c"
    assert quiet("pip install c", is_shell=True) == "pip install -qqq c"
