"""Keeps the cell of one execution in a notebook up to date.

A `CellWriter` holds the desired state of the cell. The handle of its last write gets only later
changes; any other handle gets the whole cell. So if a tab reloads, closes or opens during the
execution, no cell is written twice and none is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..errors import DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..inert import InertCopy
from ..journal.notebook import execution_metadata
from ..models import Document, OutputChange
from ..records import ExecutionRecord
from ..redaction import marks_in
from ..tasks import settle
from ..types import FINAL_STATUSES, CellId, Via
from .changes import (
    Change,
    Expected,
    Moved,
    NotebookHandle,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    Unreachable,
    find_cell,
    joined,
    new_cell,
)
from .documents import Notebooks

BATCH_DELAY = 1.0
"""Seconds for which writes to one file are collected."""


class SaveBatches:
    """Collects writes to one file, because each write saves the whole file.

    Parameters
    ----------
    delay
        Seconds from the first writer that joins a batch until the batch is written.
    """

    def __init__(self, delay: float = BATCH_DELAY) -> None:
        self._delay = delay
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._hurried: Counter[str] = Counter()

    def join(self, path: str) -> asyncio.Future[None]:
        """Return a future that is done when it is time to write. Writers keep their order."""
        loop = asyncio.get_running_loop()
        time: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(path, [])
        waiting.append(time)
        if self._hurried[path]:
            self._end_batch(path)
        elif len(waiting) == 1:
            self._timers[path] = loop.call_later(self._delay, self._end_batch, path)
        return time

    @contextmanager
    def hurrying(self, path: str) -> Iterator[None]:
        """Write to a path without delay while the context is open."""
        self._hurried[path] += 1
        self._end_batch(path)
        try:
            yield
        finally:
            self._hurried[path] -= 1
            if not self._hurried[path]:
                del self._hurried[path]

    def _end_batch(self, path: str) -> None:
        timer = self._timers.pop(path, None)
        if timer is not None:
            timer.cancel()
        for time in self._waiting.pop(path, []):
            if not time.done():
                time.set_result(None)


Changes = Callable[[int], tuple[int, list[OutputChange]]]
"""Takes a version of the outputs; 0 means no outputs. Returns the current version and the changes
since."""


class NewCell(NamedTuple):
    """A cell that is not in the notebook yet."""

    source: str
    at: Position

    def made(self, id: CellId) -> dict[str, Any]:
        """Return the cell to insert."""
        return new_cell(id, "code", self.source)


class ExistingCell(NamedTuple):
    """A cell of the notebook that is run."""

    before: str
    """Its source when it was read, or the source that has replaced it since."""
    source: str | None
    """Its new source; None if the source stays."""


Shown: TypeAlias = Literal["inert", "held", "accepted", "discarded"]
"""Which outputs a cell shows: an inert copy of all, or without those held; the originals; none."""


class CellState(Struct, frozen=True, kw_only=True):
    """The state of an execution that its cell shows, without outputs."""

    agent_exec: dict[str, Any]
    """The cell's `metadata.agent_exec` without `outputs` and `held`."""
    execution_count: int | None
    ended: bool
    """Whether the status is final."""
    has_begun: bool
    """Whether the execution was sent to the kernel."""

    @classmethod
    def of(cls, record: ExecutionRecord) -> CellState:
        """Return the state of an execution.

        The cell has the source with its secrets. The record does not, so it has no hash of it.
        """
        metadata = execution_metadata(record)
        if marks_in(record.source):
            metadata = {**metadata, "source_sha256": None}
        return cls(
            agent_exec=metadata,
            execution_count=record.execution_count,
            ended=record.status in FINAL_STATUSES,
            has_begun=record.started_at is not None,
        )

    def shown_in(self, id: CellId, outputs: Shown, held: Sequence[str]) -> SetCell:
        """Return the change that makes a cell show it.

        The cell has another execution count in itself than in `metadata.agent_exec` after the user
        runs it again.

        Parameters
        ----------
        held
            MIME types of the outputs that are held back.
        """
        told = {**self.agent_exec, "execution_count": self.execution_count, "outputs": outputs}
        return SetCell(
            cell_id=id,
            agent_exec={**told, "held": list(held)} if held else told,
            execution_count=self.execution_count,
            execution_state="idle" if self.ended else "running",
            trusted=True,
        )


MERGE_DELAY = 0.1
"""Seconds for which changes are collected before they are sent."""

RENAME_LOOKS = 10
"""How often to look for a notebook that may have been renamed, `MERGE_DELAY` apart."""

GONE = "The cell is not in the notebook any more, or is not a code cell."
CHANGED = "The cell's source was changed before its code ran, so it was left as it is."
BROKEN_OFF = "Writing the cell was broken off."


class CellWriter:
    """Keeps one cell up to date with its execution, one write at a time.

    Parameters
    ----------
    path
        Returns the current contents path of the notebook.
    state
        The state that the cell shows first; see `update`.
    changes
        Returns changes of the execution's outputs. Call `request_update` after each change.
    join_batch
        Returns a future that is done when it is time to write the file at a path.
    turn
        Done when the cell may be inserted, after the previous cell or in the same batch.
    previous
        `handed_over` of the previous cell. A batch inserts the cells in their order.
    merge_delay
        Seconds between two writes, and before the first of a new cell, so the cell of a short
        execution is written only once.
    """

    def __init__(
        self,
        documents: Notebooks,
        cell_id: CellId,
        cell: NewCell | ExistingCell,
        *,
        path: Callable[[], str],
        state: CellState,
        changes: Changes,
        join_batch: Callable[[str], asyncio.Future[None]],
        turn: asyncio.Future[Any] | None = None,
        previous: asyncio.Future[Any] | None = None,
        merge_delay: float = MERGE_DELAY,
    ) -> None:
        self._documents = documents
        self._cell = cell
        self.first = cell
        """The cell before the first write."""
        self._path = path
        self._state = state
        self._changes = changes
        self._join_batch = join_batch
        self._turn = turn
        self._previous = previous
        self._merge_delay = merge_delay
        self._copy = InertCopy()
        self._version = 0
        self._handle: NotebookHandle | None = None  # has everything up to `_version`
        self._sent_state: SetCell | None = None
        self._via: Via | None = None
        self._batch: asyncio.Future[None] | None = None  # when to write a file
        self._uncertain = False
        self._gone = False
        self._missing = False
        self._problem: str | None = None
        self._claimed = False  # the cell had the right source when the execution began
        self._claims = False  # the current write ensures that
        self._update_requested = asyncio.Event()
        self._update_requested.set()
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        self.cell_id = cell_id
        self.again_at: Position | None = None
        """Where to insert the cell again if it was lost, or if the next cell overtook it.

        None stands for its first place.
        """
        self.reached: asyncio.Future[None] = loop.create_future()
        """Done after the first attempt to reach the notebook."""
        self.placed: asyncio.Future[None] = loop.create_future()
        """Done when the cell was inserted, could not be inserted, or joined the file's batch."""
        self.handed_over: asyncio.Future[None] = loop.create_future()
        """Done when the first write was handed to a backend, or failed."""
        self.there: asyncio.Future[None] = loop.create_future()
        """Done when the cell is in the notebook, or could not be written."""
        self.written: asyncio.Future[Document] = loop.create_future()
        """Done when the cell shows the end of its execution, or never will."""

    @property
    def streams(self) -> bool:
        """Whether the notebook gets outputs as they arrive. A file does not."""
        return self._via not in (None, "contents")

    @property
    def ended(self) -> bool:
        """Whether the execution has ended."""
        return self._ended.done()

    def document(self) -> Document:
        """Return the current state of the cell."""
        if self.written.done():
            return self.written.result()
        return self._document(final=False)

    def update(self, state: CellState) -> None:
        """Show another state of the execution."""
        self._state = state
        if state.ended:
            settle(self._ended)
        self.request_update()

    def request_update(self) -> None:
        """Bring the cell up to date soon."""
        self._update_requested.set()

    async def run(self) -> None:
        """Keep the cell up to date until it shows the end of its execution."""
        try:
            if isinstance(self._cell, NewCell):
                await asyncio.wait({self._ended}, timeout=self._merge_delay)
            if self._turn is not None:
                await asyncio.wait({self._turn})
            while not self.written.done():
                await self._update_requested.wait()
                self._update_requested.clear()
                if self._state.ended:
                    await self._finish()
                else:
                    await self._flush(ended=False)
                    settle(self.placed)
                    if self._sent_state is not None or self._problem is not None:
                        settle(self.there)
                    await asyncio.wait({self._ended}, timeout=self._merge_delay)
        finally:
            for future in (self.reached, self.placed, self.handed_over, self.there):
                settle(future)
            if not self.written.done():
                self._problem = self._problem or BROKEN_OFF
                self.written.set_result(self._document(final=True))

    # -- write -------------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Write the end of the execution. Retry if the notebook is being renamed."""
        for _ in range(RENAME_LOOKS):
            await self._flush(ended=True)
            if not self._missing:
                break
            await asyncio.sleep(self._merge_delay)
        self.written.set_result(self._document(final=True))

    async def _flush(self, *, ended: bool) -> None:
        """Bring the cell up to date. A file is written only at the start and at the end."""
        if self._gone:
            return
        try:
            handle = await self._documents.find(self._path())
            first = self._via != handle.via
            if (
                not handle.streams
                and (ended or first)
                and await self._batch_is_due(handle, ended=ended)
            ):
                handle = await self._documents.find(self._path())
                await self._update_cell(handle)
            elif handle.streams:
                await self._update_cell(handle)
            self._problem, self._missing = None, False
        except Moved:
            self._gone, self._problem = True, GONE
        except DocumentChanged as error:
            self._gone, self._problem = True, error.message
            await self._release()
        except (NotebookNotFound, DocumentUnwritable) as error:
            self._handle, self._problem = None, error.message
            self._missing = isinstance(error, NotebookNotFound)
        finally:
            settle(self.reached)
            if self._sent_state is not None or self._problem is not None:
                settle(self.handed_over)

    async def _batch_is_due(self, handle: NotebookHandle, *, ended: bool) -> bool:
        """Wait until it is time to write the file; False if the execution ends first."""
        self._via = handle.via
        if self._batch is None:
            self._batch = self._join_batch(self._path())
        for future in (self.reached, self.placed):
            settle(future)
        until = {self._batch} if ended else {self._batch, self._ended}
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        if self.ended != ended or not self._batch.done():
            return False
        self._batch = None
        if self._previous is not None:
            await asyncio.wait({self._previous})
        return True

    async def _update_cell(self, handle: NotebookHandle) -> None:
        """Bring the cell up to date through this handle, or if it fails, through any other.

        Raises
        ------
        Moved
            The cell is gone.
        DocumentChanged
            The cell has another source than its execution.
        NotebookNotFound, DocumentUnwritable
        """
        whole = handle != self._handle or not handle.streams
        self._claims = self._state.has_begun and not self._claimed
        may_be_there = self._sent_state is not None or self._uncertain
        if whole and self._claims and may_be_there:
            await self._check_new_source()
        try:
            await self._send(handle, whole=whole)
        except Unreachable:
            self._uncertain = True
        except Moved:
            await self._check_source()
            await self._send_whole(put=False)
        else:
            return
        try:
            if self._claims:
                await self._check_new_source()
            await self._send_whole(put=True)
        except Moved:
            await self._check_source()
            await self._send_whole(put=False)

    async def _send(self, handle: NotebookHandle, *, whole: bool) -> None:
        """Send unsent changes through one handle, or the whole cell."""
        seen = self._sent_state
        self._via = handle.via
        settle(self.reached)
        steps = await self._take_outputs()
        told = self._state_change()
        settle(self.handed_over)  # who waits for this goes on after `apply` has taken the changes
        if whole:
            await handle.apply(self._whole_cell(told, put=True), self._expected(put=True))
        else:
            changes: list[Change] = [] if told == seen else [told]
            if steps:
                changes.append(SetOutputs(cell_id=self.cell_id, changes=steps))
            if changes:
                await handle.apply(changes, self._expected(put=False))
        self._handle = handle
        self._mark_sent(told)

    async def _send_whole(self, *, put: bool) -> None:
        """Send the whole cell through the first backend that works."""
        self._handle = None
        await self._take_outputs()
        told = self._state_change()
        changes = self._whole_cell(told, put=put)
        self._via = await self._documents.apply(self._path(), changes, self._expected(put=put))
        self._mark_sent(told)

    async def _check_new_source(self) -> None:
        """Check that a new cell that is already in the notebook has its execution's source.

        Raises
        ------
        DocumentChanged
            The user has edited its source.
        NotebookNotFound, DocumentUnwritable
        """
        if not isinstance(self._cell, NewCell):
            return
        _, notebook = await self._documents.read(self._path())
        cell = find_cell(notebook.cells, self.cell_id)
        if cell is not None and joined(cell["source"]) != self._cell.source:
            raise DocumentChanged(CHANGED)

    async def _check_source(self) -> None:
        """Check that the cell has the source of its execution after an expectation failed.

        Raises
        ------
        Moved
            The cell is gone.
        DocumentChanged
            It has another source.
        """
        if isinstance(self._cell, NewCell):
            if self._claims:
                await self._check_new_source()
            return
        if self._claimed:
            return
        _, notebook = await self._documents.read(self._path())
        cell = find_cell(notebook.cells, self.cell_id)
        if cell is None:
            raise Moved(GONE)
        source = self._cell.before if self._cell.source is None else self._cell.source
        if cell["cell_type"] != "code" or joined(cell["source"]) != source:
            raise DocumentChanged(CHANGED)
        self._cell = ExistingCell(before=source, source=None)

    async def _release(self) -> None:
        """Remove our metadata from a cell that the user has changed."""
        if self._sent_state is None and not self._uncertain:
            return
        with suppress(Moved, NotebookNotFound, DocumentUnwritable):
            _, notebook = await self._documents.read(self._path())
            cell = find_cell(notebook.cells, self.cell_id)
            if cell is not None:
                await self._documents.apply(
                    self._path(), [released_cell(self.cell_id, cell)], Expected()
                )

    # -- content -----------------------------------------------------------------------------------

    async def _take_outputs(self) -> list[OutputChange]:
        """Feed new outputs to the inert copy, and return the changes of the copy."""
        self._version, steps = self._changes(self._version)
        return await self._copy.feed_without_blocking(steps)

    def _expected(self, *, put: bool) -> Expected:
        """Return the expected source of the cell, until the execution has begun with it.

        Parameters
        ----------
        put
            Whether a missing cell is inserted. A new cell then has no expected source.
        """
        if isinstance(self._cell, ExistingCell) and not self._claimed:
            return Expected(cells={self.cell_id: ("code", self._cell.before)})
        if isinstance(self._cell, NewCell) and self._claims and not put:
            return Expected(cells={self.cell_id: ("code", self._cell.source)})
        return Expected()

    def _state_change(self) -> SetCell:
        return self._state.shown_in(self.cell_id, self._outputs_shown(), self._copy.held)

    def _outputs_shown(self) -> Literal["inert", "held"]:
        return "held" if self._copy.held else "inert"

    def _whole_cell(self, told: SetCell, *, put: bool) -> list[Change]:
        """Return the changes that write the whole cell, whatever the notebook has now."""
        changes: list[Change] = []
        if isinstance(self._cell, ExistingCell):
            if self._cell.source is not None:
                changes.append(SetSource(cell_id=self.cell_id, source=self._cell.source))
        elif put:
            is_first = self._sent_state is None
            overtaken = self.again_at is not None and self.again_at.before is not None
            at = self._cell.at if is_first and not overtaken else (self.again_at or self._cell.at)
            changes.append(PutCell(cell=self._cell.made(self.cell_id), at=at))
        return [*changes, told, SetOutputs(cell_id=self.cell_id, changes=self._copy.whole())]

    def _mark_sent(self, told: SetCell) -> None:
        self._sent_state = told
        self._claimed = self._claimed or self._claims
        if isinstance(self._cell, ExistingCell) and self._cell.source is not None:
            self._cell = ExistingCell(before=self._cell.source, source=None)

    def _document(self, *, final: bool) -> Document:
        missing = self._problem is not None
        return Document(
            path=self._path(),
            cell_id=None if missing else self.cell_id,
            via=self._via,
            status="not_written" if missing else status_in(self._via) if final else "writing",
            outputs=self._outputs_shown(),
            reason=self._problem,
        )


def status_in(via: Via | None) -> Literal["unsaved", "written"]:
    """Return the status of a complete cell that was written through a backend."""
    return "unsaved" if via == "tab" else "written"


def released_cell(id: CellId, cell: dict[str, Any]) -> SetCell:
    """Return the change that removes our metadata from a cell."""
    return SetCell(
        cell_id=id,
        agent_exec=None,
        execution_count=cell.get("execution_count"),
        execution_state="idle",
        trusted=bool(cell["metadata"].get("trusted")),
    )
