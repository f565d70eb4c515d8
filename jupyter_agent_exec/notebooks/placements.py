"""Finds the place of an execution's cell in a notebook. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import structs

from ..errors import CellNotFound, DocumentChanged, InvalidRequest
from ..models import Placement
from ..types import CellId
from .cell_writer import ExistingCell, NewCell
from .changes import Notebook, Position, find_cell, id_of, joined, order_of
from .edits import source_hash
from .proposed_edits import place_in


class CellPlace(NamedTuple):
    """The place of an execution's cell."""

    cell: NewCell | ExistingCell
    cell_id: CellId | None = None
    """Id of the existing cell to run, or of a proposed one; None for another new cell."""

    @property
    def source(self) -> str:
        """The source that runs there."""
        cell = self.cell
        if isinstance(cell, ExistingCell):
            return cell.before if cell.source is None else cell.source
        return cell.source

    @property
    def edits(self) -> bool:
        """Whether the run changes the source of a cell, or adds one that was proposed."""
        is_proposed = isinstance(self.cell, NewCell) and self.cell_id is not None
        return is_proposed or self.replaces is not None

    @property
    def replaces(self) -> str | None:
        """The source of an existing cell that the execution replaces; None if there is none."""
        cell = self.cell
        return cell.before if isinstance(cell, ExistingCell) and cell.source is not None else None

    def approved(self, source: str) -> CellPlace:
        """Return the place with the source that the user approved. The user may have edited it."""
        if isinstance(self.cell, NewCell):
            return self._replace(cell=self.cell._replace(source=source))
        becomes = None if source == self.cell.before else source
        return self._replace(cell=self.cell._replace(source=becomes))

    def following(self, ids: tuple[CellId, ...]) -> CellPlace:
        """Return the place with the cells that a new one follows."""
        if not ids or not isinstance(self.cell, NewCell):
            return self
        at = structs.replace(self.cell.at, follows=ids)
        return self._replace(cell=self.cell._replace(at=at))


def check(placement: Placement) -> None:
    """Raise InvalidRequest for a placement that contradicts itself."""
    named = [name for name in ("after", "before", "cell") if getattr(placement, name) is not None]
    if len(named) != 1:
        raise InvalidRequest(
            "placement: one of after, before and cell; or 'end', or 'none'.", field="placement"
        )
    if placement.source_sha256 is not None and placement.cell is None:
        raise InvalidRequest(
            "placement.source_sha256: only together with cell.", field="placement.source_sha256"
        )


def at_end(source: str | None) -> CellPlace:
    """Return the place of a new cell at the notebook's end. Raise InvalidRequest without source."""
    return CellPlace(NewCell(_given(source), Position()))


def named(
    notebook: Notebook | None,
    placement: Placement,
    source: str | None,
    proposed: Notebook | None = None,
) -> CellPlace:
    """Return the place that a checked placement names.

    Parameters
    ----------
    notebook
        None if it cannot be read. Then the placement is used unchecked.
    proposed
        The notebook with the open edits of the agent that asks; None if it has none. A cell that
        they change or add is run as they leave it: the edit and the run become one.

    Raises
    ------
    CellNotFound, DocumentChanged, InvalidRequest
        The notebook has no such cell, the cell has changed, or there is nothing to run.
    """
    if placement.cell is not None:
        if source == "":
            raise InvalidRequest(
                "source: is empty, which would blank the cell. To run it as it is, leave it out.",
                field="source",
            )
        if notebook is not None and proposed is not None:
            return _proposed_cell_to_run(notebook, proposed, placement, placement.cell, source)
        return _cell_to_run(notebook, placement, placement.cell, source)
    for field, id in (("after", placement.after), ("before", placement.before)):
        if id is not None and notebook is not None:
            _cell(notebook, id, field)
    at = Position(after=placement.after, before=placement.before)
    return CellPlace(NewCell(_given(source), at))


def _given(source: str | None) -> str:
    if source is None:
        raise InvalidRequest(
            "source: it may be left out only if placement.cell names a cell to run.",
            field="source",
        )
    return source


def _cell(notebook: Notebook, id: CellId, field: str) -> dict[str, Any]:
    cell = find_cell(notebook.cells, id)
    if cell is None:
        raise CellNotFound(
            f"placement.{field}: the notebook has no cell {id!r}. A proposed cell is there once "
            "the user has kept it.",
            field=f"placement.{field}",
            cell_ids=[id_of(cell) for cell in notebook.cells],
        )
    return cell


def _proposed_cell_to_run(
    notebook: Notebook, proposed: Notebook, placement: Placement, id: CellId, source: str | None
) -> CellPlace:
    if find_cell(proposed.cells, id) is None:  # it is proposed to delete it
        return _cell_to_run(notebook, placement, id, source)
    source = _cell_to_run(proposed, placement, id, source).source
    if find_cell(notebook.cells, id) is None:
        at = place_in(order_of(proposed.cells), id, notebook)
        return CellPlace(NewCell(source, at), id)
    return _cell_to_run(notebook, Placement(cell=id), id, source)


def _cell_to_run(
    notebook: Notebook | None, placement: Placement, id: CellId, source: str | None
) -> CellPlace:
    """Return the place of an existing cell that has not changed."""
    if notebook is None:
        return CellPlace(ExistingCell("", _given(source)), id)
    cell = _cell(notebook, id, "cell")
    if cell["cell_type"] != "code":
        raise InvalidRequest(
            f"placement.cell: {id!r} is a {cell['cell_type']} cell; only code cells can be run.",
            field="placement.cell",
        )
    current = joined(cell["source"])
    sha256 = source_hash(current)
    if placement.source_sha256 not in (None, sha256):
        raise DocumentChanged(
            "placement.source_sha256: the cell's source is another now.",
            field="placement.source_sha256",
            cell_id=id,
            source=current,
            source_sha256=sha256,
        )
    return CellPlace(ExistingCell(current, None if source == current else source), id)
