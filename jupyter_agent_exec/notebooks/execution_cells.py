"""Shows executions as cells of the user's notebook: finds their places, writes and reports them.

An accepted execution never fails because of its cell. If the cell cannot be written, the
execution's `document` gives the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from ..errors import (
    CellBusy,
    CellNotFound,
    DocumentChanged,
    DocumentUnwritable,
    NotebookNotFound,
)
from ..executions.execution import LiveExecution
from ..executions.observer import ExecutionCells
from ..executions.spec import Place
from ..models import Document, Execute, Placement
from ..records import SERVER, CellWritten, ExecutionRecord, Payload, timestamp
from ..sessions.session import LiveSession
from ..tasks import Tasks
from ..types import FINAL_STATUSES, CellId, ExecutionId, SessionId, Via
from .cell_writer import BATCH_DELAY, MERGE_DELAY, CellState, CellWriter, NewCell, WriteLoop
from .changes import Notebook
from .documents import Notebooks
from .edits import as_json
from .finished_cells import show_finished
from .placements import CellPlace, at_end, check, named


class OpenEdits(Protocol):
    """The open edits that agents propose."""

    async def proposed(self, session_id: str, path: str, notebook: Notebook) -> Notebook:
        """Return a notebook as it would be with the open edits of a session."""

    async def replace(self, execution: LiveExecution) -> None:
        """Replace a session's open edit of a cell by an execution that edits the cell."""


FLUSH_TIMEOUT = 2.0
"""Seconds that reading a notebook waits for cells that are being written."""

CLOSE_TIMEOUT = 5.0
"""Seconds that closing a session waits for cells that are being written."""

LEFT_ALONE: Final = "It was not run, so the notebook is as it was."

MOST_FOLLOWED: Final = 8
"""How many of a session's earlier cells after the same cell are looked for."""


class NotebookWriter:
    """Writes the cells of all sessions, and tracks which cells are being written.

    Parameters
    ----------
    settle
        Called with the path of a notebook that was changed in one of its tabs.
    merge_delay
        Seconds between two writes to a cell.
    batch_delay
        Seconds for which writes to one file are collected.
    """

    def __init__(
        self,
        documents: Notebooks,
        *,
        settle: Callable[[str], None],
        log: logging.Logger,
        merge_delay: float = MERGE_DELAY,
        batch_delay: float = BATCH_DELAY,
    ) -> None:
        self.documents = documents
        self._settle = settle
        self.log = log
        self.merge_delay = merge_delay
        self._batch_delay = batch_delay
        self._tasks = Tasks(log)
        self._loops: dict[str, WriteLoop] = {}
        self._sessions: WeakValueDictionary[SessionId, SessionCells] = WeakValueDictionary()
        self._locks: WeakValueDictionary[ExecutionId, asyncio.Lock] = WeakValueDictionary()

    def cells(self, owner: LiveSession, edits: OpenEdits | None = None) -> SessionCells:
        """Return the cells of a session whose target is a notebook; see `SessionCells`."""
        cells = self._sessions[owner.id] = SessionCells(owner, self, edits)
        return cells

    def settle(self, path: str, via: Via | None) -> None:
        """Bring what was changed in one tab to the other tabs of the notebook."""
        if via == "tab":
            self._settle(path)

    async def flush(self, path: str) -> None:
        """Wait up to `FLUSH_TIMEOUT` until agents' cells are written to a notebook."""
        pending = self.hurry(path)
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_TIMEOUT):
                if pending:
                    await asyncio.wait(pending)

    def busy(self, path: str) -> dict[CellId, ExecutionId]:
        """Return the cells of a notebook in which agents' executions wait or run, by cell id."""
        busy: dict[CellId, ExecutionId] = {}
        for cells in self._sessions.values():
            if cells.owner.path == path:
                busy |= cells.busy()
        return busy

    def check_free(self, path: str, ids: Iterable[CellId]) -> None:
        """Raise CellBusy if an agent's execution waits or runs in one of these cells."""
        busy = self.busy(path)
        for id in ids:
            if id in busy:
                raise CellBusy(
                    f"Execution {busy[id]} waits or runs in cell {id!r}; nothing was changed. "
                    "Edit the cell when it has finished, or cancel it.",
                    cell_id=id,
                    execution_id=busy[id],
                )

    def of(self, session_id: SessionId) -> SessionCells | None:
        """Return the cells of a session that is open in a notebook; None if there is none."""
        cells = self._sessions.get(session_id)
        return None if cells is None or cells.closing else cells

    def lock(self, id: ExecutionId) -> asyncio.Lock:
        """Return the lock for writing the cell of an execution."""
        return self._locks.setdefault(id, asyncio.Lock())

    def hurry(self, path: str) -> list[asyncio.Future[Any]]:
        """Write a notebook without delay; return futures that are done when it is up to date."""
        return [future for loop in self._loops.values() for future in loop.hurry(path)]

    def write(
        self, path: Callable[[], str], execution: LiveExecution, place: CellPlace
    ) -> CellWriter:
        """Begin to write an execution's cell, after those before it in the same notebook."""
        now = path()
        loop = self._loops.get(now)
        if loop is None:
            loop = self._loops[now] = WriteLoop(
                self.documents,
                self.log,
                merge_delay=self.merge_delay,
                batch_delay=self._batch_delay,
            )
            self._tasks.start(self._run(now, loop), f"cells of {now}")
        return loop.add(
            CellWriter(
                loop,
                place.cell_id or CellId(execution.id),
                place.cell,
                path=path,
                state=CellState.of(execution.standing()),
                changes=execution.changes,
            )
        )

    async def _run(self, path: str, loop: WriteLoop) -> None:
        try:
            await loop.run()
        finally:
            del self._loops[path]

    async def stop(self) -> None:
        """Wait up to `CLOSE_TIMEOUT` until the cells of closed sessions are written."""
        await self._tasks.end(timeout=CLOSE_TIMEOUT)


class SessionCells(ExecutionCells):
    """The cells of one session's executions; see `ExecutionCells`.

    Parameters
    ----------
    edits
        The edits that agents propose; None if there are none.
    """

    def __init__(self, owner: LiveSession, writer: NotebookWriter, edits: OpenEdits | None) -> None:
        super().__init__()
        self.owner = owner
        self._writer = writer
        self._edits = edits
        self._tasks = Tasks(writer.log)
        self._writers: dict[ExecutionId, CellWriter] = {}
        self._late: set[ExecutionId] = set()  # not read from the record yet
        self._proposed: dict[ExecutionId, LiveExecution] = {}  # not in the notebook yet
        self._after: dict[ExecutionId, CellId] = {}  # of new cells after another
        self.closing = False

    async def place(self, request: Execute) -> Place | None:
        """Find the place of an execution's cell, before it is recorded."""
        source, placement = request.source, request.placement
        if placement == "none":
            return await super().place(request)
        if placement == "end":
            return at_end(source)
        check(placement)
        await self._writer.flush(self._path())  # `placement` may name such a cell
        try:
            _, notebook = await self._writer.documents.read(self._path())
        except (NotebookNotFound, DocumentUnwritable):
            if source is None:
                raise
            notebook = None
        proposed = None
        if self._edits is not None and self.owner.proposed and notebook is not None:
            proposed = await self._edits.proposed(self.owner.id, self._path(), notebook)
        place = named(notebook, placement, source, proposed)
        if place.edits and self.owner.gate.edit_mode == "propose":
            self._writer.check_free(self._path(), filter(None, [place.cell_id]))
        return place

    async def current(self, execution: LiveExecution) -> Place | None:
        """Return the place of a cell whose source it replaces, as the notebook is now."""
        if execution.spec.place is None or execution.spec.place.replaces is None:
            return None
        place = _place(execution)
        _, notebook = await self._writer.documents.read(self._path())
        return named(notebook, Placement(cell=place.cell_id), place.source)

    def accepted(self, execution: LiveExecution) -> None:
        """Show the cell of an execution, if it has a place."""
        placement = execution.spec.placement
        if isinstance(placement, Placement) and placement.after is not None:
            self._after[execution.id] = placement.after
        if execution.spec.place is not None:
            self._show(execution)
        if self._edits is not None and execution.edits_cell and self.owner.proposed:
            replaced = self._edits.replace(execution)
            self._tasks.start(replaced, f"edit that {execution.id} replaces")

    def _show(self, execution: LiveExecution) -> None:
        """Begin to write a cell, unless the execution is a proposal."""
        if execution.is_proposed:
            self._proposed[execution.id] = execution
            return
        place = _place(execution).approved(execution.source).following(self._follows(execution.id))
        writer = self._writers[execution.id] = self._writer.write(self._path, execution, place)
        self._tasks.start(self._write(execution.id, writer), f"cell of {execution.id}")

    def changed(self, execution: LiveExecution) -> None:
        """Update the cell of an execution."""
        if self._proposed.pop(execution.id, None) is not None:
            self._show(execution)
        writer = self._writers.get(execution.id)
        if writer is None:
            return
        status = execution.status
        if status != writer.status and status not in FINAL_STATUSES:
            writer.update(CellState.of(execution.standing()))
        else:
            writer.request_update()

    def output_changed(self, execution: LiveExecution) -> None:
        """Update the outputs in the cell of an execution."""
        self.changed(execution)

    def finished(self, record: ExecutionRecord) -> None:
        """Show the end of an execution in its cell, if it has one."""
        writer = self._writers.get(record.id)
        if writer is not None:
            writer.update(CellState.of(record))
        elif self._proposed.pop(record.id, None) is not None:
            self._tasks.start(self._left_alone(record.id), f"cell of {record.id}")

    def late(self, execution_id: ExecutionId) -> None:
        """Show late outputs of a finished execution in its cell."""
        if execution_id not in self._late and not self.closing:
            self._late.add(execution_id)
            self._tasks.start(self._rewrite(execution_id), f"late output of {execution_id}")

    def document(self, execution_id: ExecutionId) -> Document | None:
        """Return the state of a cell: the current one, or the last that was recorded."""
        proposed = self._proposed.get(execution_id)
        if proposed is not None:
            return self._proposal(proposed)
        writer = self._writers.get(execution_id)
        return super().document(execution_id) if writer is None else writer.document()

    async def until_shown(self, execution: LiveExecution, timeout: float) -> None:
        """Wait until a cell is completely written. Does not wait for batched writes of files."""
        writer = self._writers.get(execution.id)
        if writer is None or not timeout:
            return
        with suppress(NotebookNotFound, DocumentUnwritable, TimeoutError):
            async with asyncio.timeout(timeout):
                if (await self._writer.documents.find(self._path())).streams:
                    await asyncio.wait({writer.written})

    def busy(self) -> dict[CellId, ExecutionId]:
        """Return the cells in which executions wait or run, or are still being written."""
        proposed = ((_place(each).cell_id, id) for id, each in self._proposed.items())
        kept = (
            (writer.cell_id, id)
            for id, writer in self._writers.items()
            if not writer.written.done()
        )
        return {cell_id: id for cell_id, id in (*proposed, *kept) if cell_id is not None}

    async def close(self) -> None:
        """Wait up to `CLOSE_TIMEOUT` until the remaining cells are written."""
        self.closing = True
        self._writer.hurry(self._path())
        await self._tasks.end(timeout=CLOSE_TIMEOUT)

    async def tell(
        self, id: ExecutionId, document: Document, before: Payload | None = None
    ) -> None:
        """Record and publish the state of a cell.

        Parameters
        ----------
        before
            What was there before the execution; None if that is known.
        """
        entry = CellWritten(
            at=timestamp(),
            by=SERVER,
            execution_id=id,
            document=document,
            before=None if before is None else before.digest,
        )
        try:
            await self.owner.note(entry, [] if before is None else [before])
        finally:
            self._writer.settle(document.path, document.via)
            if not self.closing:
                self.owner.document_changed(id)

    # -- helpers -----------------------------------------------------------------------------------

    def _path(self) -> str:
        path = self.owner.path
        assert path is not None
        return path

    async def _write(self, id: ExecutionId, writer: CellWriter) -> None:
        async with self._writer.lock(id):
            try:
                await asyncio.wait({writer.written})
            finally:
                writer.break_off()
                is_named = writer.cell_id == CellId(id)  # so it is a new cell
                before = None if is_named else Payload.of(as_json(writer.replaced))
                await self.tell(id, writer.document(), before)
                del self._writers[id]

    def _follows(self, id: ExecutionId) -> tuple[CellId, ...]:
        """Return up to `MOST_FOLLOWED` earlier cells that go after the same cell, the last first.

        So the session's cells after one cell are in the order in which they were submitted.
        """
        earlier = takewhile(lambda each: each != id, self._after)
        there = [CellId(each) for each in earlier if self._after[each] == self._after.get(id)]
        return tuple(reversed(there[-MOST_FOLLOWED:]))

    def _proposal(self, execution: LiveExecution) -> Document:
        place, placement = _place(execution), execution.spec.placement
        assert placement != "none"
        if isinstance(place.cell, NewCell) and place.cell_id is not None:  # not there yet
            after, before = place.cell.at.after, place.cell.at.before
            placement = Placement(after=after, before=before) if after or before else "end"
        return Document(
            path=self._path(),
            cell_id=place.cell_id,
            via=None,
            status="proposed",
            outputs="inert",
            reason=None,
            placement=placement,
            follows=self._follows(execution.id),
        )

    async def _left_alone(self, id: ExecutionId) -> None:
        document = Document(
            path=self._path(),
            cell_id=None,
            via=None,
            status="not_written",
            outputs="inert",
            reason=LEFT_ALONE,
        )
        await self.tell(id, document)

    async def _rewrite(self, id: ExecutionId) -> None:
        """Write late outputs into a cell, unless the user accepted its outputs or changed it."""
        await asyncio.sleep(self._writer.merge_delay)
        async with self._writer.lock(id):
            self._late.discard(id)
            record = await self.owner.recorded(id)
            if record.document is None or record.document.outputs == "accepted":
                return
            with suppress(CellNotFound, DocumentChanged, NotebookNotFound, DocumentUnwritable):
                document = await show_finished(
                    self._writer.documents, self._path(), record, unedited=True
                )
                if document != record.document:
                    await self.tell(id, document)


def _place(execution: LiveExecution) -> CellPlace:
    assert isinstance(execution.spec.place, CellPlace)
    return execution.spec.place
