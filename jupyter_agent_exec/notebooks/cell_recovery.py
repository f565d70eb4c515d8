"""Writes cells from the record into notebooks if a killed server did not write them.

A missing cell is inserted only if nobody can have deleted it, that is, if nobody has saved the file
since the server died. Other cells do not change, and the execution's `document` gives the reason.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Final, Literal, NamedTuple

from ..errors import AgentExecError, DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..journal.history import History
from ..journal.notebook import UnwrittenCells
from ..models import Document, Placement
from ..records import SERVER, CellWritten, ExecutionRecord, timestamp
from ..redaction import may_be
from ..sessions.session_history import SessionHistory
from ..tasks import Tasks
from ..types import CellId, SessionId, Via
from .backends.contents import ContentsBackend
from .cell_writer import GONE, NewCell, Shown
from .changes import (
    Change,
    Expected,
    Notebook,
    NotebookHandle,
    Position,
    find_cell,
    id_of,
    joined,
    order_of,
)
from .execution_cells import CLOSE_TIMEOUT, NotebookWriter
from .finished_cells import LEFT_ALONE, FinishedCell, finished_cell, shows

SAVE_TIME: Final = timedelta(seconds=10)
"""How long after its last journal entry a killed server may still have saved a file."""

SAVED_SINCE: Final = (
    "The server died before it was known whether the cell is in the notebook, which was saved "
    "since, so the cell may have been deleted. You can copy it from the session."
)
IN_A_TAB: Final = (
    "The server died before it was known whether the cell is in the notebook, which was open in "
    "JupyterLab. You can copy it from the session."
)
CHANGED: Final = "The server died before the cell was written, and the cell shows something else."
MOVES: Final = "The server died before the cell was written, and the notebook keeps changing."


class _Cell(NamedTuple):
    """A cell that may have to be written."""

    record: ExecutionRecord
    placement: Placement | Literal["end"]
    was_in_a_tab: bool
    follows: tuple[CellId, ...]

    @property
    def is_new(self) -> bool:
        """Whether the agent inserted the cell."""
        return self.placement == "end" or self.placement.cell is None

    @property
    def id(self) -> CellId:
        """Its id in the notebook."""
        ran = None if self.placement == "end" else self.placement.cell
        return ran or CellId(self.record.id)

    def changes(self, shown: FinishedCell) -> list[Change]:
        """Return the changes that make the cell show its execution, and insert it if needed.

        The outputs of a lost execution stay, because they may be missing in the record.
        """
        changes = shown.changes(self.id)
        if self.record.status == "lost":
            changes = changes[:1]
        if not self.is_new:
            return changes
        at = Position()
        if self.placement != "end":
            at = Position(
                after=self.placement.after, before=self.placement.before, follows=self.follows
            )
        return [*NewCell(self.record.source, at).put(self.id), *changes]


class CellRecovery:
    """Writes missing cells once after the start of the server.

    Parameters
    ----------
    root_dir
        The server's root folder. With another one, the same path is another file.
    stored
        Returns when a notebook's file was saved.
    """

    def __init__(
        self,
        sessions: SessionHistory,
        history: History,
        writer: NotebookWriter,
        stored: ContentsBackend,
        *,
        root_dir: str,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._writer = writer
        self._stored = stored
        self._root_dir = root_dir
        self._log = log
        self._tasks = Tasks(log)

    def start(self) -> None:
        """Start. Cells of new executions wait until this is done."""
        self._writer.recovered.clear()
        self._tasks.start(self._run(), "write what dead servers did not")

    async def stop(self) -> None:
        """Wait up to `CLOSE_TIMEOUT` until it is done. The next start does the rest."""
        await self._tasks.end(timeout=CLOSE_TIMEOUT)

    async def _run(self) -> None:
        try:
            await self._all()
        finally:
            self._writer.recovered.set()

    async def _all(self) -> None:
        find = partial(self._history.unwritten_cells, self._root_dir)
        try:
            unwritten = await self._sessions.read(find)
        except AgentExecError as error:
            self._log.warning("Cells of a server that died are not written: %s", error.message)
            return
        for path in {each.path for each in unwritten.values()}:
            there = {id: each for id, each in unwritten.items() if each.path == path}
            try:
                await self._notebook(path, there)
            except AgentExecError as error:
                self._log.warning("%s: cells are not written now: %s", path, error.message)

    async def _notebook(self, path: str, unwritten: Mapping[SessionId, UnwrittenCells]) -> None:
        """Write the cells of one notebook, and record the state of each."""
        cells = await self._sessions.read(partial(self._cells, unwritten))
        died = max(datetime.fromisoformat(each.died_after) for each in unwritten.values())
        saved = await self._stored.last_modified(path)
        may_put = saved is not None and saved <= died + SAVE_TIME
        documents = await self._write(path, cells, may_put)
        for session_id in unwritten:
            entries = [
                CellWritten(at=timestamp(), by=SERVER, execution_id=cell.record.id, document=each)
                for cell, each in documents
                if cell.record.session_id == session_id
            ]
            await self._sessions.read(partial(self._history.decide, session_id, entries))
        written = sum(each.status == "written" for _, each in documents)
        self._log.info("%s: %d of %d cells written from the record", path, written, len(documents))

    def _cells(self, unwritten: Mapping[SessionId, UnwrittenCells]) -> list[_Cell]:
        """Read the executions, in the order in which they were accepted.

        Within a session this is the order of its journal, also if the clock was set back.
        """
        sessions = [
            [
                _Cell(
                    record,
                    each.placements[record.id],
                    each.via not in (None, "contents"),
                    each.follows[record.id],
                )
                for record in self._history.unwritten_executions(each)
            ]
            for each in unwritten.values()
        ]
        return list(heapq.merge(*sessions, key=lambda cell: cell.record.accepted_at))

    async def _write(
        self, path: str, cells: Sequence[_Cell], may_put: bool
    ) -> list[tuple[_Cell, Document]]:
        """Write cells in one save; return the state of each."""
        shown = [await finished_cell(cell.record) for cell in cells]
        reasons: list[str | None] = []

        def plan(notebook: Notebook, handle: NotebookHandle) -> tuple[list[Change], Expected]:
            reasons[:] = [_reason(cell, notebook, handle.via, may_put) for cell in cells]
            changes = [
                cell.changes(each)
                for cell, each, reason in zip(cells, shown, reasons, strict=True)
                if reason is None
            ]
            return [*chain.from_iterable(changes)], _as_is(notebook)

        try:
            handle = await self._writer.documents.revise(path, plan)
        except (NotebookNotFound, DocumentUnwritable, DocumentChanged) as error:
            why = MOVES if isinstance(error, DocumentChanged) else error.message
            return [(cell, _document(path, cell, None, "inert", why)) for cell in cells]
        return [
            (cell, _document(path, cell, handle.via, each.what, reason))
            for cell, each, reason in zip(cells, shown, reasons, strict=True)
        ]


def _reason(cell: _Cell, notebook: Notebook, via: Via, may_put: bool) -> str | None:
    """Return why a cell cannot be written; None if it can."""
    if cell.was_in_a_tab and via == "contents":
        return IN_A_TAB
    there = find_cell(notebook.cells, cell.id)
    if there is None and not cell.is_new:
        return GONE
    is_shown = there is not None and shows(there, cell.record.id)
    if there is not None and (
        (cell.is_new and not is_shown)
        or there["cell_type"] != "code"
        or not may_be(joined(there["source"]), cell.record.source)
        or (is_shown and there.get("execution_count") not in (None, cell.record.execution_count))
    ):
        return CHANGED
    if not is_shown and cell.record.started_at is None:
        return LEFT_ALONE
    return None if is_shown or may_put else SAVED_SINCE


def _as_is(notebook: Notebook) -> Expected:
    """Expect that nobody has changed the notebook's cells."""
    return Expected(
        order=order_of(notebook.cells),
        cells={
            id: (cell["cell_type"], joined(cell["source"]))
            for cell in notebook.cells
            if (id := id_of(cell)) is not None
        },
    )


def _document(path: str, cell: _Cell, via: Via | None, what: Shown, reason: str | None) -> Document:
    return Document(
        path=path,
        cell_id=cell.id if reason is None else None,
        via=via,
        status="written" if reason is None else "not_written",
        outputs=what,
        reason=reason,
    )
