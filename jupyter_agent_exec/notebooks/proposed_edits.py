"""What a proposed edit does to a notebook as it is now, and whether it still fits. Pure.

A proposed edit is about one cell. It is kept, or taken back after it was kept, by changes that are
made of the notebook's current cells. So each can be decided by itself, and in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ..errors import InvalidRequest
from ..journal.proposals import KeptEdit, RecordedEdit
from ..models import (
    CellPart,
    ClearOutputs,
    Edit,
    KeepEdits,
    MoveCell,
    ProposedEdit,
    ReplaceCell,
)
from ..records import ProposedCell
from ..text.inert import inert, set_outputs
from ..text.lookalikes import lookalike_words
from ..text.redaction import marks_in, may_be
from ..types import CellId, ProposalId, ProposedEditId
from . import changes
from .changes import (
    Cell,
    Change,
    Notebook,
    Position,
    PutCell,
    SetOutputs,
    SetSource,
    execution_in,
    find_cell,
    id_of,
    joined,
    new_cell,
    order_of,
    shows,
)
from .edits import CellContent, EditPlan, changes_of, check_source, content_of


class DoesNotFit(Exception):
    """A proposed edit cannot be kept or undone. The message is a sentence for the user."""


class Step(NamedTuple):
    """What a decision about one edit does."""

    changes: list[Change]
    """Empty if the notebook is already so."""
    result: CellContent | None
    """The cell after it; None if it is deleted."""


def keeping(edit: RecordedEdit, notebook: Notebook) -> Step:
    """Return what keeping an edit does to a notebook.

    Raises
    ------
    DoesNotFit
    """
    cell = find_cell(notebook.cells, edit.cell_id)
    if edit.before is None:
        return _insert(edit, cell, notebook)
    if edit.after is None:
        return _delete(edit, cell)
    if cell is None:
        raise DoesNotFit("The cell was deleted since.")
    return _change(edit, cell, edit.before, edit.after, notebook)


def edited(edit: RecordedEdit, asked: KeepEdits, notebook: Notebook) -> RecordedEdit:
    """Return an edit with the source that the user has made of it.

    Raises
    ------
    InvalidRequest
        It gives its cell no source.
    DocumentChanged
        The cell has another source than the user saw.
    """
    after = edit.after
    if after is None or edit.before == after:
        raise InvalidRequest(
            f"source: edit {edit.id!r} gives its cell no source that could be another.",
            field="source",
        )
    cell = find_cell(notebook.cells, edit.cell_id)
    if edit.before is not None and cell is not None:
        check_source(cell, asked.source_sha256, "source_sha256", notebook.cells)
        edit = replace(edit, before=content_of(cell))
    return replace(edit, after={**after, "source": asked.source})


def undoing(edit: RecordedEdit, notebook: Notebook) -> Step:
    """Return what taking a kept edit back does to a notebook.

    Raises
    ------
    DoesNotFit
        The cell is not as the agent left it.
    """
    kept = edit.kept
    if kept is None:
        raise DoesNotFit("The record does not say what was there before.")
    cell, id = find_cell(notebook.cells, edit.cell_id), edit.cell_id
    before, place = kept.before, place_in(kept.order, id, notebook)
    if kept.after is None:
        before = _recorded(before)
        return Step(_put_back(id, before, place) if cell is None else [], content_of(before))
    if cell is None:
        if before is None:
            return Step([], None)
        raise DoesNotFit("The cell was deleted since.")
    is_same_type = kept.after["cell_type"] == cell["cell_type"]
    if not is_same_type or not may_be(joined(cell["source"]), kept.after["source"]):
        raise DoesNotFit("The cell was edited since.")
    _check_not_run(edit, kept, cell)
    if before is None:
        return Step([changes.DeleteCell(cell_id=id)], None)
    before = _recorded(before)
    made: list[Change] = []
    if before["cell_type"] != cell["cell_type"]:
        made = [changes.DeleteCell(cell_id=id), *_put_back(id, before, place)]
    else:
        if joined(before["source"]) != joined(cell["source"]):
            made.append(SetSource(cell_id=id, source=joined(before["source"])))
        if edit.moved:
            made.append(changes.MoveCell(cell_id=id, at=place))
        if edit.cleared or edit.execution_id is not None:
            made += _with_outputs(id, before)
    return Step(made, content_of(before))


def with_edits(notebook: Notebook, edits: Iterable[RecordedEdit]) -> Notebook:
    """Return a notebook with those of the edits that fit."""
    for edit in edits:
        try:
            notebook = notebook.after(keeping(edit, notebook).changes)
        except DoesNotFit:
            continue
    return notebook


def cells_to_decide(
    id: ProposalId,
    base: Notebook,
    proposed: Notebook,
    planned: EditPlan,
    open_edits: Collection[RecordedEdit],
) -> tuple[list[ProposedCell], list[ProposedEditId]]:
    """Return the edits that a proposal consists of, and the open edits that they replace.

    Parameters
    ----------
    base
        The notebook as it is.
    proposed
        The notebook with the session's open edits.
    planned
        What the request changes in `proposed`.
    """
    final = proposed.after(planned.changes)
    touched = planned.touched
    former = [edit for edit in open_edits if edit.cell_id in touched]
    moved = planned.moved | {edit.cell_id for edit in former if edit.moved}
    cleared = planned.cleared | {edit.cell_id for edit in former if edit.cleared}
    cells: list[ProposedCell] = []
    for cell_id in _in_order(touched, final, base):
        before, after = find_cell(base.cells, cell_id), find_cell(final.cells, cell_id)
        stays = before is not None and after is not None
        is_moved = stays and cell_id in moved
        is_cleared = stays and cell_id in cleared
        if is_moved or is_cleared or _maybe(before) != _maybe(after):
            edit_id = ProposedEditId(f"{id}.{len(cells)}")
            cells.append(
                ProposedCell(id=edit_id, cell_id=cell_id, moved=is_moved, cleared=is_cleared)
            )
    return cells, [edit.id for edit in former]


def merged(base: str, one: str, other: str) -> str | None:
    """Return a text with two sets of changes to a base, by lines; None if they overlap.

    They overlap if both change the same line, add lines at the same place, or one adds lines among
    those that the other replaces. Neighbours do not.
    """
    if one == other or other == base:
        return one
    if one == base:
        return other
    lines = _lines(base)
    edits = sorted({*_line_edits(lines, one), *_line_edits(lines, other)})
    for first, second in pairwise(edits):
        if second[0] < first[1] or second[:2] == first[:2]:
            return None
    for start, end, replacement in reversed(edits):
        lines[start:end] = replacement
    return "\n".join(lines)


# -- kinds of edits ------------------------------------------------------------------------------


def _insert(edit: RecordedEdit, cell: Cell | None, notebook: Notebook) -> Step:
    after = _known(edit.after)
    if cell is not None:
        return Step([], content_of(cell))
    new = new_cell(edit.cell_id, after["cell_type"], after["source"])
    return Step([PutCell(cell=new, at=place_in(edit.order, edit.cell_id, notebook))], after)


def _delete(edit: RecordedEdit, cell: Cell | None) -> Step:
    if cell is None:
        if edit.begun:  # by us, before the server died
            return Step([], None)
        raise DoesNotFit("The cell is gone already.")
    if content_of(cell) != edit.before:
        raise DoesNotFit("The cell was edited since.")
    return Step([changes.DeleteCell(cell_id=edit.cell_id)], None)


def _change(edit: RecordedEdit, cell: Cell, before: Cell, after: Cell, notebook: Notebook) -> Step:
    requests: list[Edit] = []
    now = content_of(cell)
    result = now
    if before != after and now != after:
        if now["cell_type"] != before["cell_type"]:
            raise DoesNotFit("The type of the cell was changed since.")
        source = merged(before["source"], after["source"], now["source"])
        if source is None:
            raise DoesNotFit("The same lines of the cell were edited since.")
        result = CellContent(cell_type=after["cell_type"], source=source)
        another = None if after["cell_type"] == now["cell_type"] else after["cell_type"]
        if result != now:
            requests.append(ReplaceCell(cell_id=edit.cell_id, source=source, cell_type=another))
    if edit.moved:
        at = place_in(edit.order, edit.cell_id, notebook)
        if at != place_in(order_of(notebook.cells), edit.cell_id, notebook):
            requests.append(MoveCell(cell_id=edit.cell_id, after=at.after, before=at.before))
    if edit.cleared and result["cell_type"] == cell["cell_type"] == "code":
        requests.append(ClearOutputs(cell_id=edit.cell_id))
    return Step(changes_of(notebook, requests, lambda: edit.cell_id), result)


def _check_not_run(edit: RecordedEdit, kept: KeptEdit, cell: Cell) -> None:
    """Raise DoesNotFit if taking an edit back would take away outputs that are not its own."""
    if edit.execution_id is not None:
        is_cleared = not _was_run(cell) and execution_in(cell) is None
        own = is_cleared or shows(cell, edit.execution_id, edit.execution_count)
    elif kept.after is not None and "execution_count" in kept.after:
        own = cell.get("execution_count") == kept.after["execution_count"]
    else:
        own = not _was_run(cell) or not (edit.cleared or kept.before is None)
    if not own:
        raise DoesNotFit("The cell was run since.")


def _recorded(cell: Cell | None) -> Cell:
    """Return a cell that was there before; raise DoesNotFit if the record has it not as it was."""
    if cell is None:
        raise DoesNotFit("The record of what was there is lost.")
    if marks_in(joined(cell["source"])):
        raise DoesNotFit("It had a secret before, which is not recorded.")
    return cell


def _put_back(id: CellId, cell: Cell, at: Position) -> list[Change]:
    """Return the changes that insert a complete cell, or one of which only the source is known."""
    if "metadata" not in cell:
        cell = new_cell(id, cell["cell_type"], cell["source"])
    if not _was_run(cell):
        return [PutCell(cell=cell, at=at)]
    return [PutCell(cell={**cell, "outputs": []}, at=at), *_with_outputs(id, cell)]


def _with_outputs(id: CellId, before: Cell) -> list[Change]:
    """Return the changes that give a code cell its outputs back, as an inert copy.

    So they are trusted without danger, and the trust of the notebook stays what it is. A cell of
    which only the source is known gets none.
    """
    copy, held = inert(before.get("outputs", []))
    state = replace(changes.as_it_is(id, {"metadata": {}, **before}), trusted=True)
    ours = state.agent_exec
    if isinstance(ours, dict) and ours.get("outputs") == "accepted":
        shown = {"outputs": "held", "held": sorted(held)} if held else {"outputs": "inert"}
        state = replace(state, agent_exec={**ours, **shown})
    return [state, SetOutputs(cell_id=id, changes=set_outputs(copy))]


# -- helpers -------------------------------------------------------------------------------------


def place_in(order: Sequence[CellId], id: CellId, notebook: Notebook) -> Position:
    """Return the place in a notebook of a cell of an order: beside those of the order there."""
    there = {id_of(cell) for cell in notebook.cells} - {id}
    index = order.index(id) if id in order else len(order)
    for before in reversed(order[:index]):
        if before in there:
            return Position(after=before)
    for after in order[index + 1 :]:
        if after in there:
            return Position(before=after)
    return Position()


def _in_order(touched: Collection[CellId], final: Notebook, base: Notebook) -> list[CellId]:
    """Return cells in the order of the final notebook; then those that are only in the base."""
    ordered = dict.fromkeys([*order_of(final.cells), *order_of(base.cells), *touched])
    return [id for id in ordered if id in touched]


def _maybe(cell: Cell | None) -> CellContent | None:
    return None if cell is None else content_of(cell)


def _known(cell: Cell | None) -> CellContent:
    if cell is None:
        raise DoesNotFit("The record of what was proposed is lost.")
    return content_of(cell)


def _was_run(cell: Cell) -> bool:
    return bool(cell.get("outputs")) or cell.get("execution_count") is not None


def _line_edits(base: list[str], text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    lines = _lines(text)
    matcher = SequenceMatcher(None, base, lines, autojunk=False)
    return [
        (start, end, tuple(lines[first:last]))
        for what, start, end, first, last in matcher.get_opcodes()
        if what != "equal"
    ]


def _lines(text: str) -> list[str]:
    """Return a text's lines, none of an empty text.

    They have no ends: a last line is the same whether or not another follows.
    """
    return text.split("\n") if text else []


def proposed_order(notebook: Notebook | None, edits: Iterable[RecordedEdit]) -> list[CellId]:
    """Return the ids of a notebook's cells and of proposed new ones, in their proposed order."""
    if notebook is None:
        return []
    staying = [edit for edit in edits if edit.after is not None]
    return order_of(with_edits(notebook, staying).cells)


def shown_edit(
    edit: RecordedEdit, notebook: Notebook | None, order: Sequence[CellId], why: str
) -> ProposedEdit:
    """Return an edit as it is shown to people and agents.

    Parameters
    ----------
    notebook
        The notebook as it is now; None if it cannot be read, for the reason `why`.
    order
        Its proposed order, as `proposed_order` returns it.
    """
    step: Step | None = None
    reason = edit.reason
    if notebook is None:
        reason = reason or why
    elif edit.status in ("open", "kept"):
        try:
            step = (keeping if edit.status == "open" else undoing)(edit, notebook)
        except DoesNotFit as error:
            reason = str(error)
    at = order.index(edit.cell_id) if edit.cell_id in order else 0
    cells = [] if notebook is None else notebook.cells
    there = {id_of(cell) for cell in cells}
    cell = find_cell(cells, edit.cell_id)
    current = None if cell is None else _part(content_of(cell))
    before, after = _part(edit.before), _part(edit.after)
    result = None if step is None else _part(step.result)
    return ProposedEdit(
        id=edit.id,
        cell_id=edit.cell_id,
        kind=_kind(edit),
        moved=edit.moved,
        before=before,
        after=after,
        current=current,
        result=result,
        index=at,
        follows=next((id for id in reversed(order[:at]) if id in there), None),
        status=edit.status,
        fits=step is not None,
        reason=reason,
        decided_by=None if edit.decided_by is None else edit.decided_by.named,
        decided_at=edit.decided_at,
        edited=edit.edited,
        lookalikes=lookalike_words(
            *(None if part is None else part.source for part in (before, after, current, result))
        ),
    )


def _kind(edit: RecordedEdit) -> Literal["insert", "change", "move", "delete", "clear_outputs"]:
    if edit.before is None:
        return "insert"
    if edit.after is None:
        return "delete"
    if edit.before != edit.after:
        return "change"
    return "move" if edit.moved else "clear_outputs"


def _part(content: object) -> CellPart | None:
    return None if content is None else msgspec.convert(content, CellPart)
