"""What a chart shows that only a browser draws: its title, marks and fields, of its spec. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from ..types import Output

_PLOTLY: Final = re.compile(r"application/vnd\.plotly\.v\d+\+json")
_VEGA: Final = re.compile(r"application/vnd\.vega(?:lite)?\.v\d+(?:\.\d+)*\+json")

_MOST: Final = 20
"""Marks or fields that are named."""

_NAME: Final = 100
"""Characters of a name, a title or a field."""

_DEPTH: Final = 20
"""Of views in views in a Vega-Lite spec."""


def chart_text(output: Output) -> str | None:
    """Return a line about the chart that an output is; None if it is none."""
    data = output.get("data")
    if not isinstance(data, Mapping):
        return None
    for mimetype, spec in data.items():
        if not isinstance(spec, Mapping):
            continue
        if _PLOTLY.fullmatch(mimetype):
            return _line("plotly chart", _plotly(spec))
        if _VEGA.fullmatch(mimetype):
            return _line("Vega chart", _vega(spec, 0))
    return None


def _line(kind: str, parts: Iterator[tuple[str, str]]) -> str:
    found: dict[str, list[str]] = {}
    for name, value in parts:
        found.setdefault(name, []).append(value)
    said = "; ".join(f"{name}: {_counted(values)}" for name, values in found.items())
    return f"{kind}: {said}" if said else kind


def _counted(values: list[str]) -> str:
    counts = Counter(values)
    named = [
        value if count == 1 else f"{value} \N{MULTIPLICATION SIGN}{count}"
        for value, count in islice(counts.items(), _MOST)
    ]
    more = len(counts) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _plotly(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    layout = spec.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    yield from _said("title", layout.get("title"))
    traces = spec.get("data")
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, Mapping):
            yield from _said("traces", trace.get("type") or "scatter")
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, Mapping):
            yield from _said("names", trace.get("name"))
    for key, axis in layout.items():
        if re.fullmatch(r"[xyz]axis\d*", key) and isinstance(axis, Mapping):
            yield from _said("axes", axis.get("title"))


def _vega(spec: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    yield from _said("title", spec.get("title"))
    mark = spec.get("mark")
    yield from _said("marks", mark.get("type") if isinstance(mark, Mapping) else mark)
    encoding = spec.get("encoding")
    for channel, value in encoding.items() if isinstance(encoding, Mapping) else ():
        if isinstance(value, Mapping):
            field = value.get("field") or value.get("aggregate")
            yield from ((f"{_cut(str(channel))}", said) for _, said in _said("", field))
    if depth == _DEPTH:
        return
    for key in ("layer", "hconcat", "vconcat", "concat", "marks"):
        views = spec.get(key)
        for view in views if isinstance(views, list) else []:
            if isinstance(view, Mapping):
                if key == "marks":
                    yield from _said("marks", view.get("type"))
                yield from _vega(view, depth + 1)
    if isinstance(spec.get("spec"), Mapping):
        yield from _vega(spec["spec"], depth + 1)


def _said(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield a name and a value that is a text, or has one."""
    if isinstance(value, Mapping):
        value = value.get("text")
    if isinstance(value, list):
        value = " ".join(part for part in value if isinstance(part, str))
    if isinstance(value, str) and value.strip():
        yield name, _cut(" ".join(value.split()))


def _cut(text: str) -> str:
    return text if len(text) <= _NAME else f"{text[:_NAME]}…"
