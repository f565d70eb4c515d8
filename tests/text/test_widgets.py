"""What a language model reads of widgets."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec.text.widgets import widget_text


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ({"value": 1.5, "max": 3}, "|█████     | 1.5/3"),
        ({"value": 9, "max": 3}, "|██████████| 9/3"),
        ({"value": "nan", "max": 3}, "|          | nan/3"),
        ({"value": float("nan"), "max": 3}, "|          | nan/3"),
        ({"value": 1, "max": "inf"}, "|          | 1/inf"),
        ({"value": None, "max": None}, "|          | None/None"),
        ({"value": 2, "max": 0}, "|          | 2/0"),
    ],
)
def test_a_progress_bar_is_read_whatever_its_value_is(state: dict[str, Any], counts: str) -> None:
    models = {
        "bar": {
            "model_name": "FloatProgressModel",
            "state": {"min": 0, "description": "d", **state},
        }
    }
    assert widget_text(models, "bar") == f"d {counts}"
