"""Where in a notebook an execution's cell goes, and what is run there. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import CellNotFound, DocumentChanged, InvalidRequest
from ..models import Placement
from ..types import CellId
from .applying import find_cell, id_of, joined
from .changes import Notebook, Position
from .edits import source_hash
from .kept_cell import NewCell, OldCell


class Found(NamedTuple):
    """Where an execution's cell goes, and what is run there."""

    source: str
    cell: NewCell | OldCell
    cell_id: CellId | None
    """Of a cell that is run; None for a new one."""

    @property
    def replaces(self) -> str | None:
        """The source that a cell has and is to lose; None if none does."""
        cell = self.cell
        return cell.before if isinstance(cell, OldCell) and cell.source is not None else None

    def approved(self, source: str) -> Found:
        """Return the place with the source that is run, which a person may have changed."""
        if isinstance(self.cell, NewCell):
            return self._replace(source=source, cell=self.cell._replace(source=source))
        becomes = None if source == self.cell.before else source
        return self._replace(source=source, cell=self.cell._replace(source=becomes))

    @property
    def is_at_end(self) -> bool:
        """Whether it goes to the notebook's end."""
        return isinstance(self.cell, NewCell) and self.cell.at == Position()


def check(placement: Placement) -> None:
    """Refuse a placement that contradicts itself."""
    named = [name for name in ("after", "before", "cell") if getattr(placement, name) is not None]
    if len(named) != 1:
        raise InvalidRequest(
            "placement: one of after, before and cell; or 'end', or 'none'.", field="placement"
        )
    if placement.source_sha256 is not None and placement.cell is None:
        raise InvalidRequest(
            "placement.source_sha256: only together with cell.", field="placement.source_sha256"
        )


def at_end(source: str | None) -> Found:
    """Return the place of a new cell at the notebook's end; InvalidRequest without a source."""
    return Found(_given(source), NewCell(_given(source), Position()), None)


def named(notebook: Notebook | None, placement: Placement, source: str | None) -> Found:
    """Return the place that is named, which `check` let pass.

    Parameters
    ----------
    notebook
        None if it cannot be read: the place is then taken as it is named.

    Raises
    ------
    CellNotFound, DocumentChanged, InvalidRequest
        The notebook has no such cell, or it is not as it was; or there is nothing to run.
    """
    if placement.cell is not None:
        return _cell_to_run(notebook, placement, placement.cell, source)
    for field, id in (("after", placement.after), ("before", placement.before)):
        if id is not None and notebook is not None:
            _cell(notebook, id, field)
    at = Position(after=placement.after, before=placement.before)
    return Found(_given(source), NewCell(_given(source), at), None)


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
            f"placement.{field}: the notebook has no cell {id!r}.",
            field=f"placement.{field}",
            cell_ids=[id_of(cell) for cell in notebook.cells],
        )
    return cell


def _cell_to_run(
    notebook: Notebook | None, placement: Placement, id: CellId, source: str | None
) -> Found:
    """Return the place of a cell that is there, and is as it was."""
    if notebook is None:
        return Found(_given(source), OldCell("", _given(source)), id)
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
    if source is None or source == current:
        return Found(current, OldCell(current, None), id)
    return Found(source, OldCell(current, source), id)
