"""Decides by which id each cell of a notebook is named. Pure.

A cell is named by its id, if nbformat allows it and no earlier cell has it. Before nbformat 4.5,
cells have no ids: there a cell that we have written has its name in its metadata. Any other cell is
named by its content, so that its name is the same at each read and in each server.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

from ..types import CellId

CELL_IDS_SINCE: Final = 5
"""The nbformat 4 minor version from which on cells have ids."""

_USABLE: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MADE_UP: Final = re.compile(r"[0-9a-f]{8}")


def with_names(
    cells: Sequence[dict[str, Any]], minor: int, given: Container[str] = ()
) -> list[dict[str, Any]]:
    """Return cells whose `id` is their name. Cells that have it already are the same objects.

    Parameters
    ----------
    cells
        nbformat 4 cells as the notebook holds them. Before nbformat 4.5, their ids do not count.
    given
        Ids that count nevertheless.
    """
    own = list(_own_names(cells, minor, given))
    names = own if all(own) else _with_content(cells, own)
    return [
        cell if cell.get("id") == name else {**cell, "id": name}
        for cell, name in zip(cells, names, strict=True)
    ]


def holds_names(cells: Sequence[dict[str, Any]], minor: int) -> bool:
    """Return whether a notebook holds the names of all cells. Only needs `id` and `metadata`."""
    return all(_own_names(cells, minor, ()))


def is_made_up(id: object) -> bool:
    """Return whether nbformat may have given an id to a cell without a unique one, at reading."""
    return isinstance(id, str) and _MADE_UP.fullmatch(id) is not None


def _own_names(
    cells: Iterable[dict[str, Any]], minor: int, given: Container[str]
) -> Iterator[CellId | None]:
    """Yield the names that a notebook holds; None for a cell without one of its own."""
    seen = set()
    for cell in cells:
        id = cell.get("id")
        if minor < CELL_IDS_SINCE and id not in given:
            ours = cell["metadata"].get("agent_exec")
            ours = ours if isinstance(ours, dict) else {}
            id = ours.get("cell_id") or ours.get("execution_id")
        if not isinstance(id, str) or id in seen or _USABLE.fullmatch(id) is None:
            yield None
        else:
            seen.add(id)
            yield CellId(id)


def _with_content(
    cells: Sequence[dict[str, Any]], own: Sequence[CellId | None]
) -> Iterator[CellId]:
    """Yield names; those that are missing consist of a hash of the content, and a number.

    The number is the cell's among cells with the same content, or the next that is free.
    """
    taken = set(own)
    seen: Counter[str] = Counter()
    for cell, name in zip(cells, own, strict=True):
        content = json.dumps([cell["cell_type"], "".join(cell["source"])])
        digest = hashlib.sha256(content.encode("ascii")).hexdigest()[:12]
        seen[digest] += 1
        number = seen[digest]
        while name is None:
            name = CellId(f"{digest}-{number}")
            if name in taken:
                name, number = None, number + 1
        taken.add(name)
        yield name
