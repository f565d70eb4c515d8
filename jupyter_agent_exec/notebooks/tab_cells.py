"""Finished cells in JupyterLab tabs: whether they are saved, deleted by the user, or lost.

A tab loses cells if the user reloads the page without saving. A file loses them if the user
overwrites it from another tab. Cells that were lost are put into the tab again; cells that the user
deleted are not. Until the tab is saved, the user may undo the deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..errors import AgentExecError
from ..journal.history import History
from ..models import Document
from ..sessions.activity import Activity
from ..sessions.session_history import SessionHistory
from ..tasks import Tasks
from ..types import CellId, ExecutionId
from .backends.tab import CellReport, Tab
from .cell_writer import GONE, NewCell
from .changes import (
    Change,
    Expected,
    Moved,
    Unreachable,
    find_cell,
)
from .decisions import DecisionsBase
from .execution_cells import NotebookWriter, TabCell
from .finished_cells import finished_cell, shows

MOST_LOOKED_UP: Final = 20_000
"""How many executions to remember whose cells were not written by this server."""


DocumentChange = Callable[[Document], Document | None]
"""Returns the new state of a cell; None if it stays as it is."""


class TabCells(DecisionsBase):
    """Tracks the finished cells of open tabs; see the module's documentation."""

    def __init__(
        self,
        sessions: SessionHistory,
        history: History,
        writer: NotebookWriter,
        activity: Activity,
        *,
        log: logging.Logger,
    ) -> None:
        super().__init__(sessions, history, writer, activity, log=log)
        self._cells = writer.in_tabs
        self._being_put: set[ExecutionId] = set()
        self._looked_up: set[ExecutionId] = set()
        self._tasks = Tasks(log)

    def announced(self, report: CellReport) -> None:
        """Compare the cells that a tab has announced with those that it should have."""
        tab, is_new, is_elsewhere = report
        shown, file, path = tab.shown, tab.shown.file, tab.shown.path
        if others := self._not_looked_up(shown.deleted):
            self._tasks.start(self._look_up(others, path, _deleted), f"old cells of {path}")
        for id in shown.deleted:
            if (cell := self._cells.get(id)) is not None and cell.deleted_in is None:
                self._cells[id] = cell._replace(deleted_in=shown.panel)
                self._tasks.start(self._tell_change(id, _deleted), f"deleted cell of {id}")
        if file is None:
            return
        if is_new and not shown.dirty and (others := self._not_looked_up(file.executions)):
            self._tasks.start(self._look_up(others, path, _saved), f"old cells of {path}")
        lost: list[TabCell] = []
        for cell in list(self._cells.values()):
            id = cell.execution_id
            is_there = id not in shown.deleted and (not is_new or id in file.executions)
            if cell.deleted_in == shown.panel and is_there:
                cell = self._cells[id] = cell._replace(deleted_in=None)
                restored = partial(_restored, cell_id=cell.cell_id)
                self._tasks.start(self._tell_change(id, restored), f"restored cell of {id}")
            if id in file.executions:
                if is_new and not cell.is_saved:
                    self._cells[id] = cell._replace(is_saved=True)
                    self._tasks.start(self._tell_change(id, _saved), f"saved cell of {id}")
            elif cell.path != path or is_elsewhere or id in self._being_put:
                continue
            elif cell.deleted_in is not None:
                if is_new:
                    del self._cells[id]  # the user cannot undo that any more
            elif not cell.is_saved or (is_new and file.event == "saved"):
                lost.append(cell)
            elif is_new:
                del self._cells[id]  # something else than a tab has changed the file
        if lost:
            self._being_put.update(cell.execution_id for cell in lost)
            self._tasks.start(self._put_again(tab, lost), f"lost cells of {path}")

    async def stop(self) -> None:
        """Stop working in the background."""
        await self._tasks.end(timeout=1)

    def _not_looked_up(self, ids: Iterable[ExecutionId]) -> list[ExecutionId]:
        """Return the executions whose cells an earlier server may have left unsaved."""
        others = [
            id
            for id in ids
            if id not in self._cells
            and id not in self._looked_up
            and not self._writer.lock(id).locked()  # its cell is still being written
        ]
        if len(self._looked_up) + len(others) > MOST_LOOKED_UP:
            self._looked_up.clear()
        self._looked_up.update(others)
        return others

    async def _look_up(self, ids: list[ExecutionId], path: str, change: DocumentChange) -> None:
        """Tell what became of cells in a notebook that an earlier server has left unsaved."""
        for id in ids:
            with suppress(AgentExecError):  # such as one of another history
                await self._tell_change(id, lambda old: change(old) if old.path == path else None)

    async def _tell_change(self, id: ExecutionId, change: DocumentChange) -> None:
        """Record what became of a cell that is not being written."""
        await self._sessions.indexed()
        async with self._writer.lock(id):
            record = await self._finished(id)
            document = None if record.document is None else change(record.document)
            if document is not None:
                await self._tell(record, document)

    async def _put_again(self, tab: Tab, lost: list[TabCell]) -> None:
        try:
            await self._sessions.indexed()
            for cell in lost:
                async with self._writer.lock(cell.execution_id):
                    await self._put_one(tab, cell)
        except Unreachable:
            pass  # the tab is closed; the next one announces what it lacks
        except AgentExecError as error:
            self._log.warning("Lost cells are not put again: %s", error.message)
        finally:
            self._being_put.difference_update(cell.execution_id for cell in lost)

    async def _put_one(self, tab: Tab, cell: TabCell) -> None:
        id = cell.execution_id
        record = await self._finished(id)
        document = record.document
        there = find_cell((await tab.handle.read()).cells, cell.cell_id)
        now = self._cells.get(id)
        if now is None or now.deleted_in or document is None or document.cell_id is None:
            return  # the user has deleted it meanwhile
        if there is not None and (isinstance(cell.cell, NewCell) or shows(there, id)):
            return
        shown = await finished_cell(record)
        changes, expected = _again(cell)
        self._cells[id] = cell._replace(is_saved=False)
        try:
            await tab.handle.apply([*changes, *shown.changes(cell.cell_id)], expected)
        except Moved:
            del self._cells[id]
            document = replace(document, cell_id=None, status="not_written", reason=GONE)
        else:
            document = replace(
                document,
                path=tab.shown.path,
                via="tab",
                status="unsaved",
                outputs=shown.what,
                reason=None,
            )
        await self._tell(record, document)


def _saved(document: Document) -> Document | None:
    return replace(document, status="written") if document.status == "unsaved" else None


def _deleted(document: Document) -> Document | None:
    if document.status != "unsaved":
        return None
    return replace(document, cell_id=None, status="not_written", reason=GONE)


def _restored(document: Document, cell_id: CellId) -> Document | None:
    if (document.status, document.reason) != ("not_written", GONE):
        return None
    return replace(document, cell_id=cell_id, status="unsaved", reason=None)


def _again(cell: TabCell) -> tuple[list[Change], Expected]:
    """Return the changes that bring a cell back without its outputs, and what must hold."""
    if isinstance(cell.cell, NewCell):
        return cell.cell.put(cell.cell_id, cell.at), Expected()
    return cell.cell.put(cell.cell_id), Expected(cells={cell.cell_id: ("code", cell.cell.before)})
