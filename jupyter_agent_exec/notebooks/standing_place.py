"""Where in a notebook a cell stood that was taken out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..journal.ids import is_execution_id
from ..records import CellDiscarded
from ..types import CellId
from .changes import Position


def place_of(
    entry: CellDiscarded, order: Sequence[CellId], discarded: Mapping[CellId, CellDiscarded]
) -> Position:
    """Return where a discarded cell goes back.

    Whichever of several cells that stood together comes back first, in the end they stand as they
    did. If the cell before it is gone for good, the next of the agents' cells tells; else it goes
    to the end.

    Parameters
    ----------
    order
        The cells that are in the notebook now.
    discarded
        How cells were discarded last, by cell; some may be back.
    """
    present = set(order)
    before: CellId | None = None
    for id in _order_with_all(order, discarded):
        if id == entry.cell_id:
            if before is not None:
                return Position(after=before)
            return Position(before=order[0]) if order else Position()
        if id in present:
            before = id
    return _before_later(entry, order)


def _order_with_all(
    order: Sequence[CellId], discarded: Mapping[CellId, CellDiscarded]
) -> list[CellId]:
    """Return the order as it would be if nothing had been discarded.

    The last that was taken out is put in first: then the cell before it is there.
    """
    follows: dict[CellId | None, CellId | None] = {}
    last: CellId | None = None
    for id in (id for id in order if id not in discarded):
        follows[last], last = id, id
    follows[last] = None
    for each in sorted(discarded.values(), key=lambda each: each.n, reverse=True):
        if each.after in follows:
            follows[each.cell_id] = follows[each.after]
            follows[each.after] = each.cell_id
    ordered: list[CellId] = []
    at = follows[None]
    while at is not None:
        ordered.append(at)
        at = follows[at]
    return ordered


def _before_later(entry: CellDiscarded, order: Sequence[CellId]) -> Position:
    """Return the place before the next cell of agents; their ids are in the order of time."""
    if is_execution_id(entry.cell_id):
        for id in order:
            if is_execution_id(id) and id > entry.cell_id:
                return Position(before=id)
    return Position()
