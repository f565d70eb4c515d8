"""Discards agents' cells from a notebook, and restores them.

A cell is discarded only if it is exactly as the agent wrote it. The whole cell is recorded first,
so that it can be restored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import AgentExecError, CellNotFound, DocumentChanged, HistoryUnavailable
from ..inert import inert, set_outputs
from ..journal.ids import is_execution_id
from ..journal.notebook import dump
from ..models import Document
from ..records import (
    SERVER,
    By,
    CellDiscarded,
    CellRestored,
    ExecutionRecord,
    Payload,
    timestamp,
)
from ..types import CellId, Output, Via
from .cell_writer import NewCell, status_in
from .changes import (
    Cell,
    Change,
    DeleteCell,
    Expected,
    Notebook,
    NotebookHandle,
    Position,
    PutCell,
    SetOutputs,
    as_it_is,
    id_of,
    joined,
    order_of,
)
from .decisions import DecisionsBase, no_cell
from .execution_cells import TabCell
from .finished_cells import check_untouched

MOST_AT_ONCE: Final = 100
"""How many cells to discard in one change."""


class _AgentCell(NamedTuple):
    """An agent's cell in a notebook."""

    record: ExecutionRecord
    id: CellId
    cell: Cell
    after: CellId | None


class _DiscardedCell(NamedTuple):
    """A cell that was discarded."""

    entry: CellDiscarded
    discarded: dict[CellId, CellDiscarded]
    """The last discard of each cell of its session, by cell id."""
    cell: Cell
    trusted: bool

    def changes(self, order: Sequence[CellId]) -> list[Change]:
        """Return the changes that restore it among the current cells."""
        id, cell = self.entry.cell_id, self.cell
        return [
            PutCell(cell={**cell, "outputs": []}, at=place_of(self.entry, order, self.discarded)),
            replace(as_it_is(id, cell), trusted=self.trusted),
            SetOutputs(cell_id=id, changes=set_outputs(cell["outputs"])),
        ]


class CellDecisions(DecisionsBase):
    """Discards agents' cells from notebooks, and restores them."""

    async def discard(self, id: str, caller: Caller) -> ExecutionRecord:
        """Discard an execution's cell if it is as the agent left it."""
        record = await self._finished(id)
        await self._discard([record], caller, single=True)
        return await self._sessions.execution(id)

    async def discard_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Discard all cells of a session that are as the agent left them."""
        there = await self._all(session_id, _is_there)
        discarded: list[ExecutionRecord] = []
        for start in range(0, len(there), MOST_AT_ONCE):
            for record in await self._discard(
                there[start : start + MOST_AT_ONCE], caller, single=False
            ):
                discarded.append(await self._sessions.execution(record.id))
        return discarded

    async def restore(self, id: str, caller: Caller) -> ExecutionRecord:
        """Restore a discarded cell at its former place."""
        record = await self._finished(id)
        async with self._writer.lock(record.id):
            record = await self._sessions.execution(id)
            session = await self._sessions.session(record.session_id)
            find = partial(self._history.discarded_cells, session.id, [record.id])
            last, cells = await self._sessions.in_thread(find)
            entry = next((each for each in last.values() if each.execution_id == record.id), None)
            cell = cells.get(record.id)
            if record.document is None or session.path is None or not entry or cell is None:
                raise CellNotFound(
                    "No cell of this execution was discarded, or it is not kept any more.",
                    execution_id=record.id,
                    cell_ids=[],
                )
            trusted = await asyncio.to_thread(_is_harmless, cell["outputs"], record)
            kept = _DiscardedCell(entry, last, {**cell, "id": entry.cell_id}, trusted)
            await self._restore(session.path, record, record.document, kept, caller)
            return await self._sessions.execution(id)

    # -- take out ----------------------------------------------------------------------------------

    async def _discard(
        self, records: Sequence[ExecutionRecord], caller: Caller, *, single: bool
    ) -> list[ExecutionRecord]:
        """Discard cells of a session. Skip cells that cannot be discarded, unless `single`."""
        async with AsyncExitStack() as locks:
            for id in sorted(record.id for record in records):
                await locks.enter_async_context(self._writer.lock(id))
            records = [await self._sessions.execution(record.id) for record in records]
            session = await self._sessions.session(records[0].session_id)
            if session.path is None:
                raise no_cell(records[0])
            _, notebook = await self._writer.documents.read(session.path)
            standing = _standing(notebook, records, single=single)
            if not standing:
                return []
            entries, payloads = await asyncio.to_thread(
                _recorded, session.path, standing, caller.by()
            )
            await self._sessions.decide(session.id, entries, payloads)
            taken: list[_AgentCell] = []
            via: Via | None = None

            def plan(notebook: Notebook, _: NotebookHandle) -> tuple[list[Change], Expected]:
                taken[:] = _standing(notebook, [each.record for each in standing], single=single)
                return [DeleteCell(cell_id=each.id) for each in taken], _as_they_are(taken)

            try:
                via = (await self._writer.documents.revise(session.path, plan)).via
            except AgentExecError as error:
                taken = []
                if single or not isinstance(error, DocumentChanged):
                    await self._leave(session.path, standing)
                    raise
            gone = {each.id for each in taken}
            await self._leave(session.path, [each for each in standing if each.id not in gone])
            for record in (each.record for each in taken):
                assert record.document is not None
                document = replace(
                    record.document, path=session.path, cell_id=None, via=via, reason=None
                )
                await self._tell(record, replace(document, status="discarded"))
            return [each.record for each in taken]

    async def _leave(self, path: str, standing: Iterable[_AgentCell]) -> None:
        """Record that cells were not deleted."""
        for each in standing:
            record = each.record
            entry = CellRestored(at=timestamp(), by=SERVER, execution_id=record.id, path=path)
            try:
                await self._sessions.decide(record.session_id, [entry])
            except HistoryUnavailable as error:
                self._log.warning("That a cell is left is not recorded: %s", error.message)
                continue
            assert record.document is not None
            await self._tell(record, record.document)

    # -- put back ----------------------------------------------------------------------------------

    async def _restore(
        self,
        path: str,
        record: ExecutionRecord,
        document: Document,
        kept: _DiscardedCell,
        caller: Caller,
    ) -> None:
        _, notebook = await self._writer.documents.read(path)
        if _is_there(document) and kept.entry.cell_id in order_of(notebook.cells):
            return
        entry = CellRestored(at=timestamp(), by=caller.by(), execution_id=record.id, path=path)
        await self._sessions.decide(record.session_id, [entry])

        def plan(notebook: Notebook, _: NotebookHandle) -> tuple[list[Change], Expected]:
            order = order_of(notebook.cells)
            is_there = kept.entry.cell_id in order
            return [] if is_there else kept.changes(order), Expected(order=order)

        try:
            via = (await self._writer.documents.revise(path, plan)).via
        except AgentExecError:
            await self._tell(record, document)
            raise
        id, status = kept.entry.cell_id, status_in(via)
        document = replace(document, path=path, cell_id=id, via=via, status=status, reason=None)
        await self._tell(record, document)
        if status == "unsaved":
            cell = NewCell(record.source, Position(after=kept.entry.after))
            self._writer.unsaved(TabCell(record.id, id, path, cell, at=None))


def _standing(
    notebook: Notebook, records: Iterable[ExecutionRecord], *, single: bool
) -> list[_AgentCell]:
    """Return the cells that are as an agent left them, the last one first.

    Raises
    ------
    CellNotFound, DocumentChanged
        With `single`: the cell is gone or has changed.
    """
    cells: list[_AgentCell] = []
    at = {id_of(cell): index for index, cell in enumerate(notebook.cells)}
    for record in records:
        id = None if record.document is None else record.document.cell_id
        index = None if id is None else at.get(id)
        if id is None or index is None:
            if single:
                raise no_cell(record)
            continue
        try:
            check_untouched(notebook.cells[index], record)
        except DocumentChanged:
            if single:
                raise
            continue
        after = id_of(notebook.cells[index - 1]) if index else None
        cells.append(_AgentCell(record, id, notebook.cells[index], after))
    return sorted(cells, key=lambda each: at[each.id], reverse=True)


def _as_they_are(standing: Iterable[_AgentCell]) -> Expected:
    """Expect that nobody has edited or run the cells."""
    cells = {each.id: each.cell for each in standing}
    return Expected(
        cells={id: ("code", joined(cell["source"])) for id, cell in cells.items()},
        counts={id: cell.get("execution_count") for id, cell in cells.items()},
    )


def _recorded(
    path: str, standing: Iterable[_AgentCell], by: By
) -> tuple[list[CellDiscarded], list[Payload]]:
    entries, payloads = [], []
    at = timestamp()
    for each in standing:
        payload = Payload.of(dump(_without_trust(each.cell)).encode())
        payloads.append(payload)
        entries.append(
            CellDiscarded(
                at=at,
                by=by,
                execution_id=each.record.id,
                path=path,
                cell_id=each.id,
                cell=payload.digest,
                after=each.after,
            )
        )
    return entries, payloads


def _without_trust(cell: Cell) -> Cell:
    metadata = {key: value for key, value in cell["metadata"].items() if key != "trusted"}
    return {**cell, "metadata": metadata}


def _is_harmless(outputs: Iterable[Output], record: ExecutionRecord) -> bool:
    """Return whether a discarded cell's outputs are all inert, or accepted by a user.

    Not only the agent may have written them, and restored outputs that are trusted would run.
    """
    assert record.document is not None
    accepted = record.outputs if record.document.outputs == "accepted" else []
    return all(output in accepted or inert([output])[0] == [output] for output in outputs)


def place_of(
    entry: CellDiscarded, order: Sequence[CellId], discarded: Mapping[CellId, CellDiscarded]
) -> Position:
    """Return where a discarded cell is restored.

    Several cells end up in their former order, in whatever order they are restored. If the previous
    cell was deleted, the cell goes before the next cell of an agent, or else to the end.

    Parameters
    ----------
    order
        Ids of the notebook's current cells.
    discarded
        The last discard of each cell; some cells may have been restored.
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
    """Return the order as if no cell had been discarded.

    The last discarded cell is inserted first, so that the cell before each one exists.
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
    """Return the place before the next cell of an agent. Ids of such cells are ordered by time."""
    if is_execution_id(entry.cell_id):
        for id in order:
            if is_execution_id(id) and id > entry.cell_id:
                return Position(before=id)
    return Position()


def _is_there(document: Document) -> bool:
    return document.status in ("written", "unsaved")
