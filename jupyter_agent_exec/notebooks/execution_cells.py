"""Shows executions as cells of the user's notebook: finds their places, writes and reports them.

An accepted execution never fails because of its cell. If the cell cannot be written, the
execution's `document` gives the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from msgspec import structs

from ..errors import (
    CellBusy,
    CellNotFound,
    DocumentChanged,
    DocumentUnwritable,
    InvalidRequest,
    NotebookNotFound,
)
from ..executions.execution import LiveExecution
from ..executions.observer import ExecutionCells, Place
from ..journal.notebook import followed
from ..models import Document, Placement
from ..records import SERVER, By, CellWritten, ExecutionRecord, timestamp
from ..sessions.session import LiveSession
from ..tasks import Tasks
from ..types import FINAL_STATUSES, CellId, ExecutionId, SessionId, Status, Via
from .cell_writer import (
    BATCH_DELAY,
    MERGE_DELAY,
    CellState,
    CellWriter,
    ExistingCell,
    NewCell,
    SaveBatches,
)
from .changes import Notebook, Position, find_cell, id_of, joined
from .documents import Notebooks
from .edits import source_hash
from .finished_cells import LEFT_ALONE, show_late_outputs


class TabCell(NamedTuple):
    """The cell of a finished execution that was written through a tab."""

    execution_id: ExecutionId
    cell_id: CellId
    path: str
    cell: NewCell | ExistingCell
    """The cell as it was before the execution."""
    at: Position | None
    """Where to insert a new cell again; None stands for its first place."""
    is_saved: bool = False


class CellPlace(NamedTuple):
    """The place of an execution's cell, and the source that runs there."""

    source: str
    cell: NewCell | ExistingCell
    cell_id: CellId | None
    """Id of the existing cell to run; None for a new cell."""

    @property
    def replaces(self) -> str | None:
        """The source of an existing cell that the execution replaces; None if there is none."""
        cell = self.cell
        return cell.before if isinstance(cell, ExistingCell) and cell.source is not None else None

    def approved(self, source: str) -> CellPlace:
        """Return the place with the source that the user approved. The user may have edited it."""
        if isinstance(self.cell, NewCell):
            return self._replace(source=source, cell=self.cell._replace(source=source))
        becomes = None if source == self.cell.before else source
        return self._replace(source=source, cell=self.cell._replace(source=becomes))

    def following(self, ids: tuple[CellId, ...]) -> CellPlace:
        """Return the place with the cells that a new one follows."""
        if not ids or not isinstance(self.cell, NewCell):
            return self
        at = structs.replace(self.cell.at, follows=ids)
        return self._replace(cell=self.cell._replace(at=at))

    @property
    def is_at_end(self) -> bool:
        """Whether a new cell goes to the end of the notebook."""
        return isinstance(self.cell, NewCell) and self.cell.at == Position()


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
    return CellPlace(_given(source), NewCell(_given(source), Position()), None)


def named(notebook: Notebook | None, placement: Placement, source: str | None) -> CellPlace:
    """Return the place that a checked placement names.

    Parameters
    ----------
    notebook
        None if it cannot be read. Then the placement is used unchecked.

    Raises
    ------
    CellNotFound, DocumentChanged, InvalidRequest
        The notebook has no such cell, the cell has changed, or there is nothing to run.
    """
    if placement.cell is not None:
        return _cell_to_run(notebook, placement, placement.cell, source)
    for field, id in (("after", placement.after), ("before", placement.before)):
        if id is not None and notebook is not None:
            _cell(notebook, id, field)
    at = Position(after=placement.after, before=placement.before)
    return CellPlace(_given(source), NewCell(_given(source), at), None)


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


def _cell_to_run(
    notebook: Notebook | None, placement: Placement, id: CellId, source: str | None
) -> CellPlace:
    """Return the place of an existing cell that has not changed."""
    if notebook is None:
        return CellPlace(_given(source), ExistingCell("", _given(source)), id)
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
        return CellPlace(current, ExistingCell(current, None), id)
    return CellPlace(source, ExistingCell(current, source), id)


FLUSH_TIMEOUT = 2.0
"""Seconds that reading a notebook waits for cells that are being written."""

CLOSE_TIMEOUT = 5.0
"""Seconds that closing a session waits for cells that are being written."""


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
        self.save_batches = SaveBatches(batch_delay)
        self.accept_held: Callable[[ExecutionId, By], Awaitable[None]] | None = None
        """Accepts held outputs on a user's behalf; None until it is wired."""
        self.replace_edit: Callable[[LiveExecution], Coroutine[Any, Any, None]] = _nothing
        """Replaces its session's proposed edit of a cell by an execution that edits the cell."""
        self.recovered: asyncio.Future[Any] | None = None
        """Done when `CellRecovery` has written or given up the cells of a killed server."""
        self.on_unsaved: Callable[[TabCell], None] = lambda _: None
        """Called with each finished cell that a tab has, but not yet its file."""
        # By path: the writer of the last cell at the end, and of each cell, until they end.
        self._last_at_end: WeakValueDictionary[str, CellWriter] = WeakValueDictionary()
        self._by_cell: WeakValueDictionary[tuple[str, CellId], CellWriter] = WeakValueDictionary()
        self._sessions: WeakValueDictionary[SessionId, SessionCells] = WeakValueDictionary()
        self._locks: WeakValueDictionary[ExecutionId, asyncio.Lock] = WeakValueDictionary()

    def cells(self, owner: LiveSession) -> SessionCells:
        """Return the cells of a session whose target is a notebook."""
        cells = self._sessions[owner.id] = SessionCells(owner, self)
        return cells

    async def note(self, session_id: SessionId, entry: CellWritten) -> bool:
        """Record the state of a cell in a session's journal; False if the session is closed."""
        cells = self._sessions.get(session_id)
        if cells is None or cells.closing:
            return False
        await cells.owner.note(entry)
        return True

    def changed(self, session_id: SessionId, id: ExecutionId, document: Document) -> None:
        """Publish the state of a cell."""
        self.settle(document.path, document.via)
        cells = self._sessions.get(session_id)
        if cells is not None and not cells.closing:
            cells.owner.document_changed(id)

    def settle(self, path: str, via: Via | None) -> None:
        """Bring what was changed in one tab to the other tabs of the notebook."""
        if via == "tab":
            self._settle(path)

    async def flush(self, path: str) -> None:
        """Wait up to `FLUSH_TIMEOUT` until agents' cells are written to a notebook."""
        pending = {
            future
            for cells in self._sessions.values()
            if cells.owner.path == path
            for future in cells.pending()
        }
        if self.recovered is not None and not self.recovered.done():
            pending.add(self.recovered)
        if pending:
            with self.save_batches.hurrying(path):
                await asyncio.wait(pending, timeout=FLUSH_TIMEOUT)

    def busy(self, path: str) -> dict[CellId, ExecutionId]:
        """Return the cells of a notebook in which agents' executions wait or run, by cell id."""
        found: dict[CellId, ExecutionId] = {}
        for cells in self._sessions.values():
            if cells.owner.path == path:
                found |= cells.busy()
        return found

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

    def owner(self, session_id: SessionId) -> LiveSession | None:
        """Return a session that is open in a notebook; None if there is none."""
        cells = self._sessions.get(session_id)
        return None if cells is None or cells.closing else cells.owner

    def lock(self, id: ExecutionId) -> asyncio.Lock:
        """Return the lock for writing the cell of an execution."""
        return self._locks.setdefault(id, asyncio.Lock())

    def writer(
        self, path: Callable[[], str], execution: LiveExecution, found: CellPlace
    ) -> CellWriter:
        """Return the writer of an execution's cell. It starts after the writers before it."""
        now = path()
        id = found.cell_id or CellId(execution.id)
        before: CellWriter | None
        turn: asyncio.Future[Any] | None = None
        if found.cell_id is not None:
            before = self._by_cell.get((now, id))
            turn = before.written if before is not None else None
        else:
            before = self._last_at_end.get(now) if found.is_at_end else None
            turn = before.placed if before is not None else None
        writer = CellWriter(
            self.documents,
            id,
            found.cell,
            path=path,
            state=CellState.of(execution.standing()),
            changes=execution.changes,
            join_batch=self.save_batches.join,
            turn=turn or self.recovered,
            previous=before.handed_over if before is not None else None,
            merge_delay=self.merge_delay,
        )
        if found.is_at_end:
            if before is not None:
                before.again_at = Position(before=id)
                writer.again_at = Position(after=before.cell_id)
            self._last_at_end[now] = writer
        self._by_cell[now, id] = writer
        return writer


class SessionCells(ExecutionCells):
    """The cells of one session's executions; see `ExecutionCells`."""

    def __init__(self, owner: LiveSession, writer: NotebookWriter) -> None:
        self.owner = owner
        self._writer = writer
        self._tasks = Tasks(writer.log)
        self._writers: dict[ExecutionId, CellWriter] = {}
        self._shown: dict[ExecutionId, Status] = {}
        self._late: dict[ExecutionId, bool] = {}
        self._proposed: dict[ExecutionId, LiveExecution] = {}  # not in the notebook yet
        self._placements: dict[ExecutionId, Placement] = {}  # of new cells after another
        self.closing = False

    async def find(self, source: str | None, placement: Placement | Literal["end"]) -> CellPlace:
        """Find the place of a cell, before the execution is recorded."""
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
        place = named(notebook, placement, source)
        if place.replaces is not None and self.owner.gate.edit_mode == "propose":
            self._writer.check_free(self._path(), filter(None, [place.cell_id]))
        return place

    async def current(self, place: Place) -> CellPlace:
        """Return the place of an existing cell, as the notebook is now."""
        assert isinstance(place, CellPlace)
        _, notebook = await self._writer.documents.read(self._path())
        return named(notebook, Placement(cell=place.cell_id), place.source)

    def accepted(self, execution: LiveExecution) -> None:
        """Show the cell of an execution, if it has a place."""
        placement = execution.spec.placement
        if isinstance(placement, Placement) and placement.after is not None:
            self._placements[execution.id] = placement
        if execution.spec.place is not None:
            self._show(execution)
        if execution.edits_cell and self.owner.proposed:
            replaced = self._writer.replace_edit(execution)
            self._tasks.start(replaced, f"edit that {execution.id} replaces")

    def _show(self, execution: LiveExecution) -> None:
        """Begin to write a cell, unless the execution is a proposal."""
        if execution.is_proposed:
            self._proposed[execution.id] = execution
            return
        place = _place(execution).approved(execution.source).following(self._follows(execution.id))
        writer = self._writer.writer(self._path, execution, place)
        self._writers[execution.id] = writer
        self._shown[execution.id] = execution.status
        self._tasks.start(self._write(execution.id, writer), f"cell of {execution.id}")

    def changed(self, execution: LiveExecution) -> None:
        """Update the cell of an execution."""
        if self._proposed.pop(execution.id, None) is not None:
            self._show(execution)
        writer = self._writers.get(execution.id)
        if writer is None:
            return
        status = execution.status
        if status != self._shown.get(execution.id) and status not in FINAL_STATUSES:
            self._shown[execution.id] = status
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
        if execution_id in self._late:
            self._late[execution_id] = True  # again, after the current write
        elif not self.closing:
            self._late[execution_id] = False
            self._tasks.start(self._rewrite(execution_id), f"late output of {execution_id}")

    def document(self, execution_id: ExecutionId) -> Document | None:
        """Return the state of a cell; None after it was recorded with the execution."""
        proposed = self._proposed.get(execution_id)
        if proposed is not None:
            return self._proposal(proposed)
        writer = self._writers.get(execution_id)
        return None if writer is None else writer.document()

    async def written(self, execution_id: ExecutionId) -> None:
        """Wait until a cell is completely written. Does not wait for batched writes of files."""
        writer = self._writers.get(execution_id)
        if writer is not None:
            await asyncio.wait({writer.reached})
            if writer.streams:
                await asyncio.wait({writer.written})

    def pending(self) -> list[asyncio.Future[Any]]:
        """Return futures that are done when cells are up to date."""
        return [
            writer.written if writer.ended else writer.there
            for writer in self._writers.values()
            if writer.ended or not writer.there.done()
        ]

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
        with self._writer.save_batches.hurrying(self._path()):
            await self._tasks.end(timeout=CLOSE_TIMEOUT)

    # -- helpers -----------------------------------------------------------------------------------

    def _path(self) -> str:
        path = self.owner.path
        assert path is not None
        return path

    async def _write(self, id: ExecutionId, writer: CellWriter) -> None:
        async with self._writer.lock(id):
            try:
                await writer.run()
            finally:
                document = writer.document()
                if document.status == "unsaved":
                    first, at = writer.first, writer.again_at
                    self._writer.on_unsaved(TabCell(id, writer.cell_id, document.path, first, at))
                await self._note(id, document)
                del self._writers[id], self._shown[id]
                self._writer.changed(self.owner.id, id, document)
        by = self.owner.shows_outputs
        if document.outputs == "held" and by is not None and self._writer.accept_held is not None:
            await self._writer.accept_held(id, by)

    def _follows(self, id: ExecutionId) -> tuple[CellId, ...]:
        return followed(self._placements, id) if id in self._placements else ()

    def _proposal(self, execution: LiveExecution) -> Document:
        placement = execution.spec.placement
        assert placement is not None
        assert placement != "none"
        return Document(
            path=self._path(),
            cell_id=_place(execution).cell_id,
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
        await self._note(id, document)
        self._writer.changed(self.owner.id, id, document)

    async def _rewrite(self, id: ExecutionId) -> None:
        """Write late outputs into a cell, including outputs that arrive meanwhile."""
        again: bool | None = True
        try:
            while again:
                await asyncio.sleep(self._writer.merge_delay)
                async with self._writer.lock(id):
                    self._late[id] = False
                    record = await self.owner.recorded(id)
                    document = await show_late_outputs(self._writer.documents, self._path(), record)
                    if document is not None and document != record.document:
                        await self._note(id, document)
                        self._writer.changed(self.owner.id, id, document)
                again = self._late[id]
        finally:
            del self._late[id]

    async def _note(self, id: ExecutionId, document: Document) -> None:
        await self.owner.note(
            CellWritten(at=timestamp(), by=SERVER, execution_id=id, document=document)
        )


def _place(execution: LiveExecution) -> CellPlace:
    assert isinstance(execution.spec.place, CellPlace)
    return execution.spec.place


async def _nothing(_: LiveExecution) -> None:
    """Do nothing: sessions propose no edits."""
