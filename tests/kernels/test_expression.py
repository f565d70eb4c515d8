"""Code of ours in a kernel."""

from __future__ import annotations

import platform
import traceback

import pytest

from jupyter_agent_exec.kernels.in_kernel.expression import expression

KERNEL_INFO = {
    "implementation": "ipython",
    "language_info": {"version": platform.python_version()},
}


def test_a_traceback_through_it_can_be_formatted() -> None:
    asked = expression(KERNEL_INFO, ("ipykernel_workarounds",), "take_text(lambda: 1 / 0, [])")
    assert "marshal" in asked
    with pytest.raises(ZeroDivisionError) as caught:
        eval(asked)  # as IPython does
    assert "ZeroDivisionError" in "".join(traceback.format_exception(caught.value))
