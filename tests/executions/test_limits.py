"""The limits of executions, as the operator configures them."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.models import Caps, Limits
from jupyter_agent_exec.traits import AgentExecTraits


@pytest.mark.parametrize(
    ("default", "longest", "wall_seconds", "timeout"),
    [
        (600, 0, None, 600),
        (600, 60, None, 60),
        (30, 60, None, 30),
        (600, 0, 20, 20),
        (600, 60, 20, 20),
        (600, 60, 100, 60),
    ],
)
def test_code_without_a_timeout_runs_no_longer_than_any_other(
    default: float, longest: float, wall_seconds: float | None, timeout: float
) -> None:
    traits = AgentExecTraits(default_timeout=default, max_timeout=longest)
    settings = traits.settings_of_sessions().within(Caps(wall_seconds=wall_seconds))
    assert settings.bounds.timeout == timeout


def test_earlier_limits_are_reduced_to_those_that_hold_now() -> None:
    settings = AgentExecTraits(max_timeout=60, max_output_bytes=5000).settings_of_sessions()
    fitted = settings.fit(Limits(timeout=100, max_output_bytes=9000, queue_timeout=500))
    assert fitted == Limits(timeout=60, max_output_bytes=5000, queue_timeout=500)
    assert settings.fit(Limits()) == Limits()
