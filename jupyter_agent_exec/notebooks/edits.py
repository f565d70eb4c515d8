"""Plans an agent's edits as changes to a notebook. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import CellNotFound, DocumentChanged, InvalidRequest
from ..models import (
    ClearOutputs,
    DeleteCell,
    Edit,
    InsertCell,
    MoveCell,
    OutputChange,
    ReplaceCell,
    SplitCell,
)
from ..records import digest_of
from ..types import CellId, CellType, Digest
from . import changes
from .cell_names import CELL_IDS_SINCE, with_names
from .changes import (
    Cell,
    Change,
    Expected,
    Notebook,
    Position,
    SetSource,
    find_cell,
    id_of,
    joined,
    new_cell,
    order_of,
)

MAX_TOLD_SOURCE = 2_000
"""Characters of each cell's source in an error's detail."""

MAX_TOLD_CELLS = 500


class CellContent(TypedDict):
    """A cell in the journal. A complete one has all other fields of nbformat besides."""

    cell_type: str
    source: str


class NotebookState(TypedDict):
    """The cells that edits touch, and the order of all cells; see `records.NotebookEdited`."""

    order: list[CellId]
    cells: dict[CellId, CellContent]


class EditPlan(Struct, frozen=True, kw_only=True):
    """The changes that edits make to a notebook."""

    changes: list[Change]
    expected: Expected
    cell_ids: list[list[CellId]]
    """For each edit, the cells that it added or changed."""
    before: NotebookState
    after: NotebookState
    hash: Digest
    """Hash of the notebook after the changes."""
    lost: dict[CellId, CellContent]
    """The complete cells that are removed, cleared or get another type."""

    @property
    def moved(self) -> set[CellId]:
        """The cells that are moved."""
        return {each.cell_id for each in self.changes if isinstance(each, changes.MoveCell)}

    @property
    def cleared(self) -> set[CellId]:
        """The cells whose outputs are cleared."""
        cleared = changes.SetOutputs | changes.SetCell
        return {each.cell_id for each in self.changes if isinstance(each, cleared)}

    @property
    def touched(self) -> set[CellId]:
        """The cells that are added, changed, moved, removed or cleared."""
        return {*self.before["cells"], *self.after["cells"]}

    @property
    def source_sha256(self) -> dict[CellId, Digest]:
        """Hashes of the new sources of the cells that are touched and remain."""
        return {id: source_hash(cell["source"]) for id, cell in self.after["cells"].items()}

    @property
    def is_code(self) -> bool:
        """Whether a code cell is added, changed, moved or removed, not only cleared."""
        code = {
            id
            for state in (self.before, self.after)
            for id, cell in state["cells"].items()
            if cell["cell_type"] == "code"
        }
        return any(
            (change.cell["id"] if isinstance(change, changes.PutCell) else change.cell_id) in code
            for change in self.changes
            if not isinstance(change, changes.SetCell | changes.SetOutputs)
        )


def plan_of(
    notebook: Notebook,
    made: Sequence[Change],
    touched: Iterable[CellId],
    *,
    relied_on: Iterable[CellId] = (),
    counts: Iterable[CellId] = (),
    cell_ids: Sequence[list[CellId]] = (),
) -> EditPlan:
    """Return the plan that makes changes to a notebook.

    Parameters
    ----------
    touched
        The cells that they add, change, move, remove or clear.
    relied_on
        Other cells that nobody may edit in between.
    counts
        Code cells that nobody may run in between.
    cell_ids
        As in the plan.
    """
    base = {id_of(cell): cell for cell in notebook.cells}
    touched = set(touched)
    made, named = _naming(notebook, made)
    now = notebook.after(made).cells
    lossy = changes.DeleteCell | changes.SetOutputs | changes.SetCell
    lost = {each.cell_id for each in made if isinstance(each, lossy)}
    return EditPlan(
        changes=made,
        expected=Expected(
            cells={
                id: (base[id]["cell_type"], joined(base[id]["source"]))
                for id in (*touched, *relied_on, *named)
                if id in base
            },
            counts={id: base[id].get("execution_count") for id in counts},
            order=order_of(notebook.cells),
        ),
        cell_ids=list(cell_ids),
        before=state_of(notebook.cells, touched),
        after=state_of(now, touched),
        hash=notebook_hash(now),
        lost={id: complete(base[id]) for id in lost if id in base},
    )


def _naming(notebook: Notebook, made: Sequence[Change]) -> tuple[list[Change], list[CellId]]:
    """Return changes after which each cell keeps its name, and the cells that they name.

    Before nbformat 4.5, cells with the same content are told apart by their order. If one of them
    is deleted or changed, the others have to hold their names.
    """
    changed = list(made)
    named: list[CellId] = []
    while notebook.nbformat_minor < CELL_IDS_SINCE:
        now = notebook.after(changed).cells
        again = zip(now, with_names(now, notebook.nbformat_minor), strict=True)
        lost = [cell for cell, renamed in again if cell["id"] != renamed["id"]]
        if not lost:
            break
        named += map(id_of, lost)
        changed += [SetSource(cell_id=id_of(each), source=joined(each["source"])) for each in lost]
    return changed, named


def notebook_hash(cells: Iterable[dict[str, Any]]) -> Digest:
    """Return the SHA-256 of types and sources. It is the same through each backend."""
    return digest_of(as_json([[cell["cell_type"], joined(cell["source"])] for cell in cells]))


def as_json(value: Any) -> bytes:
    """Return a value as JSON in ASCII, which can represent lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def as_told_edits(edits: Sequence[Edit]) -> bytes:
    """Return requested edits as JSON for the journal."""
    return as_json(msgspec.to_builtins(edits))


def source_hash(source: str) -> Digest:
    """Return the SHA-256 of a source. It may contain lone surrogates, which JSON allows."""
    return Digest(hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest())


def plan(notebook: Notebook, edits: Sequence[Edit], new_id: Callable[[], CellId]) -> EditPlan:
    """Return the changes that make edits in order. Each edit sees the effect of earlier ones.

    Parameters
    ----------
    new_id
        Returns an id for a new cell. Called again if the notebook already has that id.

    Raises
    ------
    CellNotFound, DocumentChanged
        A cell is gone, or its source differs from the edit's `source_sha256`.
    InvalidRequest
        An edit cannot be made.
    """
    planner = _Planner(notebook, new_id)
    cell_ids = planner.edit_all(edits)
    return plan_of(
        notebook,
        planner.changes,
        planner.touched,
        relied_on=planner.relied_on,
        cell_ids=cell_ids,
    )


def changes_of(
    notebook: Notebook, edits: Sequence[Edit], new_id: Callable[[], CellId]
) -> list[Change]:
    """Return only the changes of `plan`: it also hashes the whole notebook."""
    planner = _Planner(notebook, new_id)
    planner.edit_all(edits)
    return planner.changes


def content_of(cell: dict[str, Any]) -> CellContent:
    """Return the type and source of a cell."""
    return CellContent(cell_type=cell["cell_type"], source=joined(cell["source"]))


def state_of(
    cells: Sequence[Cell],
    touched: Container[CellId],
    part: Callable[[Cell], CellContent] = content_of,
) -> NotebookState:
    """Return the order of all cells, and the content, or another part, of touched cells."""
    return {
        "order": order_of(cells),
        "cells": {id: part(cell) for cell in cells if (id := id_of(cell)) in touched},
    }


def complete(cell: Cell) -> CellContent:
    """Return a cell as it is, but not trusted."""
    metadata = {key: value for key, value in cell["metadata"].items() if key != "trusted"}
    return {**cell, **content_of(cell), "metadata": metadata}  # type: ignore[typeddict-item]


def check_source(
    cell: dict[str, Any], expected: Digest | None, field: str, cells: Sequence[dict[str, Any]]
) -> None:
    """Raise DocumentChanged, with the state of its notebook, if a cell has another source."""
    if source_hash(joined(cell["source"])) != expected:
        raise DocumentChanged(
            f"{field}: cell {cell['id']!r} has another source by now; nothing was changed.",
            field=field,
            **as_told(cells),
        )


def as_told(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the state of a notebook for an error's detail."""
    described = [
        {
            "id": id_of(cell),
            "cell_type": cell["cell_type"],
            "source": (source := joined(cell["source"]))[:MAX_TOLD_SOURCE],
            "source_sha256": source_hash(source),
        }
        for cell in cells[:MAX_TOLD_CELLS]
    ]
    return {"hash": notebook_hash(cells), "cells": described, "cell_count": len(cells)}


class _Planner:
    """The notebook after the edits so far, and the changes that were made."""

    def __init__(self, notebook: Notebook, new_id: Callable[[], CellId]) -> None:
        self._base = notebook.cells
        self._new_id = new_id
        self._now = notebook
        self._taken = set(order_of(notebook.cells))
        self.changes: list[Change] = []
        self.touched: set[CellId] = set()
        self.relied_on: set[CellId] = set()
        """The cells next to which others are put."""
        self.at = ""

    def edit_all(self, edits: Sequence[Edit]) -> list[list[CellId]]:
        """Make edits in order, and return the cells that each added or changed."""
        cell_ids = []
        for index, edit in enumerate(edits):
            self.at = f"edits[{index}]"
            cell_ids.append(self.edit(edit))
        return cell_ids

    def edit(self, edit: Edit) -> list[CellId]:
        """Make an edit, and return the cells that it added or changed."""
        match edit:
            case InsertCell():
                return [self._insert(edit.cell_type, edit.source, self._position(edit))]
            case ReplaceCell():
                return self._replace(edit)
            case MoveCell():
                return self._move(edit)
            case DeleteCell():
                self._cell(edit.cell_id, edit.source_sha256)
                self.touched.add(edit.cell_id)
                self._do(changes.DeleteCell(cell_id=edit.cell_id))
                return []
            case SplitCell():
                return self._split(edit)
            case ClearOutputs():
                return self._clear(edit)

    # -- edits -------------------------------------------------------------------------------------

    def _insert(self, cell_type: CellType, source: str, at: Position) -> CellId:
        id = self._new_id()
        while id in self._taken:
            id = self._new_id()
        self._taken.add(id)
        self.touched.add(id)
        self._do(changes.PutCell(cell=new_cell(id, cell_type, source), at=at))
        return id

    def _replace(self, edit: ReplaceCell) -> list[CellId]:
        cell = self._cell(edit.cell_id, edit.source_sha256)
        source = edit.source
        if edit.find is not None:
            before = joined(cell["source"])
            if (count := before.count(edit.find)) != 1:
                raise self._invalid("find", f"this text occurs {count} times in the cell, not once")
            source = before.replace(edit.find, source)
        self._become(edit.cell_id, cell, edit.cell_type or cell["cell_type"], source)
        return [edit.cell_id]

    def _move(self, edit: MoveCell) -> list[CellId]:
        self._cell(edit.cell_id, None)
        if edit.cell_id in (edit.after, edit.before):
            field = "after" if edit.cell_id == edit.after else "before"
            raise self._invalid(field, "a cell cannot be moved next to itself")
        at = self._position(edit)
        self.touched.add(edit.cell_id)
        self._do(changes.MoveCell(cell_id=edit.cell_id, at=at))
        return [edit.cell_id]

    def _split(self, edit: SplitCell) -> list[CellId]:
        cell = self._cell(edit.cell_id, edit.source_sha256)
        first, *others = edit.parts
        self._become(edit.cell_id, cell, first.cell_type, first.source)
        ids = [edit.cell_id]
        for part in others:
            ids.append(self._insert(part.cell_type, part.source, Position(after=ids[-1])))
        return ids

    def _clear(self, edit: ClearOutputs) -> list[CellId]:
        if edit.cell_id is not None:
            cell = self._cell(edit.cell_id, None)
            if cell["cell_type"] != "code":
                raise self._invalid("cell_id", f"a {cell['cell_type']} cell has no outputs")
            cells = [cell]
        else:
            cells = [cell for cell in self._now.cells if cell["cell_type"] == "code"]
        cleared = []
        for cell in cells:
            if cell["outputs"] or cell["execution_count"] is not None:
                self._clear_one(cell, id_of(cell))
                cleared.append(id_of(cell))
        return cleared

    def _clear_one(self, cell: dict[str, Any], id: CellId) -> None:
        self.touched.add(id)
        if cell["outputs"]:
            cut = [OutputChange(index=0, truncate=True)]
            self._do(changes.SetOutputs(cell_id=id, changes=cut))
        if cell["execution_count"] is not None:
            self._do(replace(changes.as_it_is(id, cell), execution_count=None))

    def _become(self, id: CellId, cell: dict[str, Any], cell_type: str, source: str) -> None:
        """Replace the source of a cell, and its type if it differs."""
        self.touched.add(id)
        if cell_type == cell["cell_type"]:
            self._do(SetSource(cell_id=id, source=source))
            return
        kept = {
            key: value
            for key, value in cell["metadata"].items()
            if key not in ("agent_exec", "trusted", "execution")
        }
        new = {**new_cell(id, cell_type, source), "metadata": kept}
        if cell_type != "code" and "attachments" in cell:
            new["attachments"] = cell["attachments"]
        at = self._where(id)
        self._do(changes.DeleteCell(cell_id=id))
        self._do(changes.PutCell(cell=new, at=at))

    # -- helpers -----------------------------------------------------------------------------------

    def _do(self, change: Change) -> None:
        self._now = self._now.after([change])
        self.changes.append(change)

    def _where(self, id: CellId) -> Position:
        """Return the position of a cell by its neighbour."""
        order = order_of(self._now.cells)
        index = order.index(id)
        if index + 1 == len(order):
            return Position()
        return Position(before=order[index + 1])

    def _position(self, edit: InsertCell | MoveCell) -> Position:
        if edit.after is not None and edit.before is not None:
            raise self._invalid("after", "together with 'before'; say one of them")
        for field in ("after", "before"):
            id = getattr(edit, field)
            if id is not None:
                self._cell(id, None, field)
                self.relied_on.add(id)
        return Position(after=edit.after, before=edit.before)

    def _cell(
        self, id: CellId, source_sha256: Digest | None, field: str = "cell_id"
    ) -> dict[str, Any]:
        cells = self._now.cells
        cell = find_cell(cells, id)
        if cell is None:
            raise CellNotFound(
                f"{self.at}.{field}: the notebook has no cell {id!r}.",
                field=f"{self.at}.{field}",
                cell_ids=order_of(cells)[:MAX_TOLD_CELLS],
            )
        if source_sha256 is not None:
            check_source(cell, source_sha256, f"{self.at}.source_sha256", self._base)
        return cell

    def _invalid(self, field: str, message: str) -> InvalidRequest:
        return InvalidRequest(f"{self.at}.{field}: {message}.", field=f"{self.at}.{field}")
