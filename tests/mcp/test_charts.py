"""Charts that only a browser draws, in a line of text."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec.mcp.results import chart_text

PLOTLY = "application/vnd.plotly.v1+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"


def text(mimetype: str, spec: Any) -> str | None:
    return chart_text({"output_type": "display_data", "data": {mimetype: spec}, "metadata": {}})


def test_a_plotly_figure_is_told_by_its_title_traces_and_axes() -> None:
    figure = {
        "data": [
            {"type": "bar", "name": "north", "x": [1], "y": [2]},
            {"type": "bar", "name": "south"},
            {"x": [1]},
        ],
        "layout": {
            "title": {"text": "Sales"},
            "xaxis": {"title": {"text": "Month"}},
            "yaxis2": {"title": "EUR"},
        },
    }
    assert text(PLOTLY, figure) == (
        "plotly chart: title: Sales; traces: bar ×2, scatter; names: north, south; axes: Month, EUR"
    )


def test_a_vega_lite_chart_is_told_by_its_marks_and_fields_in_all_layers() -> None:
    spec = {
        "title": ["Rain", "by day"],
        "layer": [
            {"mark": "bar", "encoding": {"x": {"field": "day"}, "y": {"aggregate": "count"}}},
            {"mark": {"type": "rule"}, "encoding": {"x": {"field": "day"}}},
        ],
        "spec": {"mark": "point"},
    }
    assert text(VEGA_LITE, spec) == (
        "Vega chart: title: Rain by day; marks: bar, rule, point; x: day ×2; y: count"
    )


def test_a_vega_chart_is_told_by_its_marks() -> None:
    spec = {"marks": [{"type": "group", "marks": [{"type": "line"}]}]}
    assert text("application/vnd.vega.v5+json", spec) == "Vega chart: marks: group, line"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"data": None, "layout": None},
        {"data": [None, 1, {"type": 3}], "layout": {"title": 5, "xaxis": []}},
        {"title": {}, "mark": [], "encoding": [], "layer": {}, "spec": []},
    ],
)
@pytest.mark.parametrize("mimetype", [PLOTLY, VEGA_LITE])
def test_a_spec_that_makes_no_sense_is_still_a_chart(mimetype: str, spec: Any) -> None:
    told = text(mimetype, spec)
    assert told is not None
    assert "chart" in told


@pytest.mark.parametrize(
    ("mimetype", "spec"), [("text/plain", "x"), (PLOTLY, "text"), ("application/json", {})]
)
def test_what_is_no_chart_is_none(mimetype: str, spec: Any) -> None:
    assert text(mimetype, spec) is None
    assert chart_text({"output_type": "stream", "name": "stdout", "text": ""}) is None


def test_a_huge_spec_is_told_shortly() -> None:
    deep: dict[str, Any] = {"mark": "bar"}
    for index in range(500):
        deep = {
            "layer": [deep],
            "title": f"{'t' * 1000}{index}",
            "encoding": {"c" * 500: {"field": "f"}},
        }
    told = text(VEGA_LITE, deep)
    assert told is not None
    assert len(told) < 10_000
    many = {"data": [{"type": f"type {index}"} for index in range(1000)]}
    told = text(PLOTLY, many)
    assert told is not None
    assert told.endswith("980 more")
