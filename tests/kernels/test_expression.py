"""Code of ours in a kernel."""

from __future__ import annotations

import traceback

import pytest

from jupyter_agent_exec.kernels.in_kernel.expression import RESIDENT, expression, resident_call


def test_a_traceback_through_it_can_be_formatted() -> None:
    asked = expression(RESIDENT, "take_text(lambda: 1 / 0, [])")
    with pytest.raises(ZeroDivisionError) as caught:
        eval(asked)  # as IPython does
    assert "ZeroDivisionError" in "".join(traceback.format_exception(caught.value))


def test_a_call_is_short_and_carries_its_arguments_as_they_are() -> None:
    assert len(resident_call("look")) < 150
    given = "{'x': \"1\\n\"}"
    assert resident_call("evaluate", given).endswith(f".evaluate({given!r})")
