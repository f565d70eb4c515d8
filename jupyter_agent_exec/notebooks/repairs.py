"""Reads what other tools write that is not quite nbformat 4. Pure.

A field that is missing is filled in, where it can only mean one thing, as JupyterLab does. Fields
that nbformat does not know stay. Anything else that is wrong is named by its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from nbformat import v4
from nbformat.validator import iter_validate

MAX_MESSAGE: Final = 200
"""Characters of nbformat's message, which may quote what is wrong."""

_CELLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "code": {"source": "", "execution_count": None, "outputs": []},
    "markdown": {"source": ""},
    "raw": {"source": ""},
}
_OUTPUTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "stream": {"text": ""},
    "display_data": {"data": {}, "metadata": {}},
    "execute_result": {"data": {}, "metadata": {}, "execution_count": None},
    "error": {"ename": "", "evalue": "", "traceback": []},
}


def repaired(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell with all fields that it needs; the same if it has them."""
    cell = _filled(cell, _CELLS.get(str(cell.get("cell_type")), {}))
    outputs = cell.get("outputs")
    if not isinstance(outputs, list):
        return cell
    whole = [
        _filled(output, _OUTPUTS.get(str(output.get("output_type")), {}))
        if isinstance(output, dict)
        else output
        for output in outputs
    ]
    is_whole = all(one is other for one, other in zip(whole, outputs, strict=True))
    return cell if is_whole else {**cell, "outputs": whole}


def fault(content: Any) -> str | None:
    """Return what is wrong first with a notebook, and where; None if repairs make it readable.

    Its metadata may be anything: kernelspecs that are empty or null are common.
    """
    if not isinstance(content, dict):
        return "it is not a JSON object"
    for field, kind in (
        ("nbformat", int),
        ("nbformat_minor", int),
        ("metadata", dict),
        ("cells", list),
    ):
        if not isinstance(content.get(field), kind):
            return f"{field}: it is missing, or of another type"
    if content["nbformat"] != v4.nbformat:
        return f"nbformat: {content['nbformat']} is not supported"
    minor = min(content["nbformat_minor"], v4.nbformat_minor)
    try:
        return next(_faults(content["cells"], minor), None)
    except RecursionError:
        return "cells: they are nested too deeply"


def cell_fault(cell: dict[str, Any], minor: int) -> str | None:
    """Return what is wrong first with a cell, and where; None if nothing is.

    Parameters
    ----------
    minor
        The minor version of nbformat 4.
    """
    errors = iter_validate(  # type: ignore[no-untyped-call]
        cell, f"{cell['cell_type']}_cell", 4, minor, relax_add_props=True
    )
    for error in errors:
        place = "".join(
            f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.relative_path
        )
        return f"{place.lstrip('.')}: {error.message[:MAX_MESSAGE]}".lstrip(": ")
    return None


def _faults(cells: Iterable[Any], minor: int) -> Iterator[str]:
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict) or str(cell.get("cell_type")) not in _CELLS:
            yield f"cell {index}: cell_type: it is not code, markdown or raw"
        elif not isinstance(cell.get("metadata"), dict):
            yield f"cell {index}: metadata: it is missing, or of another type"
        elif (wrong := cell_fault({**repaired(cell), "id": "named-by-us"}, minor)) is not None:
            yield f"cell {index}: {wrong}"


def _filled(part: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a notebook with values for what is missing or null."""
    missing = {
        key: value
        for key, value in defaults.items()
        if key not in part or (part[key] is None and value is not None)
    }
    return {**part, **missing} if missing else part
