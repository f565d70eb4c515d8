"""Keeps the cells of executions in a notebook up to date.

A `CellWriter` holds the desired state of one cell, and what the notebook has of it. A `WriteLoop`
writes all that are due in one notebook, one round at a time. The handle of a cell's last write gets
only later changes; any other handle gets the whole cell. So if a tab reloads, closes or opens
during the execution, no cell is written twice and none is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..journal.notebook import execution_metadata
from ..models import Document, OutputChange
from ..records import ExecutionRecord
from ..tasks import settle
from ..text.inert import InertCopy
from ..text.redaction import marks_in
from ..types import FINAL_STATUSES, CellId, Status, Via
from .changes import (
    Change,
    Expected,
    Moved,
    Notebook,
    NotebookHandle,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    Unreachable,
    as_it_is,
    find_cell,
    joined,
    new_cell,
)
from .documents import Notebooks
from .edits import CellContent

BATCH_DELAY = 1.0
"""Seconds for which writes to one file are collected, because each write saves the whole file."""

Changes = Callable[[int], tuple[int, list[OutputChange]]]
"""Takes a version of the outputs; 0 means no outputs. Returns the current version and the changes
since."""


Planned: TypeAlias = tuple[list[Change], dict[CellId, str]]
"""Changes of a cell, and the sources that code cells must have for them."""


class NewCell(NamedTuple):
    """A cell that is not in the notebook yet."""

    source: str
    at: Position

    def put(self, id: CellId, at: Position | None = None) -> list[Change]:
        """Return the change that inserts it, here or elsewhere."""
        return [PutCell(cell=new_cell(id, "code", self.source), at=at or self.at)]


class ExistingCell(NamedTuple):
    """A cell of the notebook that is run."""

    before: str
    """Its source when it was read, or the source that has replaced it since."""
    source: str | None
    """Its new source; None if the source stays."""

    def put(self, id: CellId) -> list[Change]:
        """Return the change that gives it its new source, if it has one."""
        return [] if self.source is None else [SetSource(cell_id=id, source=self.source)]


Shown: TypeAlias = Literal["inert", "held", "accepted"]
"""Which outputs a cell shows: an inert copy of all, or without those held; or the originals."""


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
        metadata = {**self.agent_exec, "execution_count": self.execution_count, "outputs": outputs}
        return SetCell(
            cell_id=id,
            agent_exec={**metadata, "held": list(held)} if held else metadata,
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


class WriteLoop:
    """Brings the cells of one notebook up to date, in the order in which they were added.

    Parameters
    ----------
    merge_delay
        Seconds between two rounds, and before the first write of a new cell, so that the cell of a
        short execution is written only once. The end of an execution does not wait.
    batch_delay
        Seconds that a round waits before it saves a file. Other cells may join it meanwhile.
    """

    def __init__(
        self,
        documents: Notebooks,
        log: logging.Logger,
        *,
        merge_delay: float = MERGE_DELAY,
        batch_delay: float = BATCH_DELAY,
    ) -> None:
        self._documents = documents
        self._log = log
        self._merge_delay = merge_delay
        self._batch_delay = batch_delay
        self._cells: list[CellWriter] = []
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._hurried = asyncio.Event()
        self._not_before = 0.0  # by the event loop's clock

    def add(self, writer: CellWriter) -> CellWriter:
        """Begin to write a cell."""
        if writer.is_at_end:
            before = next((each for each in reversed(self._cells) if each.is_at_end), None)
            if before is not None:
                before.again_at = Position(before=writer.cell_id)
                writer.again_at = Position(after=before.cell_id)
        if isinstance(writer.first, NewCell) and not self._changed.is_set():
            self._delay()
        self._cells.append(writer)
        self._changed.set()
        return writer

    def wake(self, *, urgent: bool) -> None:
        """Start a round, after the delay unless it is `urgent`."""
        self._changed.set()
        if urgent:
            self._urgent.set()

    def hurry(self, path: str) -> list[asyncio.Future[Any]]:
        """Write what is due at a path without delay; return futures that are done when it is."""
        pending = [
            cell.written if cell.ended else cell.there
            for cell in self._cells
            if cell.path() == path and (cell.ended or not cell.there.done())
        ]
        if pending:
            self._hurried.set()
            self.wake(urgent=True)
        return pending

    async def run(self) -> None:
        """Write until all cells are written or broken off."""
        try:
            while self._cells:
                await self._changed.wait()
                await _first(self._urgent, self._not_before - asyncio.get_running_loop().time())
                self._changed.clear()
                self._urgent.clear()
                paths = dict.fromkeys(cell.path() for cell in self._due())  # several after a rename
                for path in paths:
                    await self._write(path)
                if any(cell.path() not in paths for cell in self._due()):
                    self._changed.set()  # the notebook is being renamed
                self._delay()
                left = [cell for cell in self._cells if not cell.written.done()]
                if len(left) < len(self._cells):
                    self._changed.set()  # another may run the same cell
                self._cells = left
        finally:
            for cell in self._cells:
                cell.break_off()

    def _delay(self) -> None:
        self._not_before = asyncio.get_running_loop().time() + self._merge_delay

    def _due(self) -> list[CellWriter]:
        """Return the cells to write; of those that run the same cell, only the first may."""
        first: dict[CellId, CellWriter] = {}
        for cell in self._cells:
            if not cell.written.done():
                first.setdefault(cell.cell_id, cell)
        return [cell for cell in first.values() if cell.is_due]

    async def _write(self, path: str) -> None:
        """Write the cells that are due. A file gets only the start and the end of an execution."""
        due = [cell for cell in self._due() if cell.path() == path]
        if not due:  # renamed since
            return
        try:
            handle = await self._documents.find(path)
            if not handle.streams:
                await _first(self._hurried, self._batch_delay)
                self._hurried.clear()
                path = due[0].path()  # it may have been renamed
                handle = await self._documents.find(path)
                due = [
                    cell
                    for cell in self._due()
                    if cell.path() == path and (handle.streams or cell.is_due_in_file)
                ]
        except (NotebookNotFound, DocumentUnwritable) as error:
            for cell in due:
                cell.fail(error)
            return
        try:
            for cell in due:
                await cell.take(handle)
            await self._send(path, handle, due)
        except Exception:
            self._log.exception("Cells of %s cannot be written", path)
            for cell in due:
                cell.break_off()

    async def _send(self, path: str, handle: NotebookHandle, cells: Sequence[CellWriter]) -> None:
        """Write cells through this handle, or if that fails, through any other."""
        try:
            try:
                if any(cell.is_unclear(handle) for cell in cells):
                    raise Moved
                changes, expected = _together(cell.changes(handle) for cell in cells)
                if changes:
                    await handle.apply(changes, expected)
            except (Moved, Unreachable):
                handle = await self._documents.revise(
                    path,
                    lambda notebook, handle: _together(
                        cell.plan(notebook, handle) for cell in cells
                    ),
                )
        except (NotebookNotFound, DocumentUnwritable, DocumentChanged) as error:
            if len(cells) == 1:
                cells[0].fail(error)
                return
            for cell in cells:  # one may be at fault for all
                await self._send(path, handle, [cell])
        else:
            for cell in cells:
                cell.sent(handle)


async def _first(event: asyncio.Event, timeout: float) -> None:
    """Wait until an event is set, but no longer than `timeout` seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)


def _together(planned: Iterable[Planned]) -> tuple[list[Change], Expected]:
    changes: list[Change] = []
    cells: dict[CellId, tuple[str, str]] = {}
    for some, expected in planned:
        changes += some
        cells |= {id: ("code", source) for id, source in expected.items()}
    return changes, Expected(cells=cells)


class CellWriter:
    """What the cell of an execution shall show, and what the notebook has of it.

    Parameters
    ----------
    path
        Returns the current contents path of the notebook.
    state
        The state that the cell shows first; see `update`.
    changes
        Returns changes of the execution's outputs. Call `request_update` after each change.
    """

    def __init__(
        self,
        loop: WriteLoop,
        cell_id: CellId,
        cell: NewCell | ExistingCell,
        *,
        path: Callable[[], str],
        state: CellState,
        changes: Changes,
    ) -> None:
        self._loop = loop
        self.cell_id = cell_id
        self._cell = cell
        self.first = cell
        """The cell before the first write."""
        self.path = path
        self._state = state
        self._taken = state  # what the current write shows
        self._changes = changes
        self._copy = InertCopy()
        self._version = 0
        self._steps: list[OutputChange] = []  # of the copy, to send next
        self._handle: NotebookHandle | None = None  # has everything before `_steps`
        self._sent_state: SetCell | None = None
        self._via: Via | None = None
        self._in_file = False  # the last attempt was to write the file
        self._is_tried = False  # it may be in the notebook
        self._gone = False
        self._looks = RENAME_LOOKS
        self._problem: str | None = None
        self._claimed = False  # the cell had the right source when the execution began
        self._requested = True
        self.again_at: Position | None = None
        """Where to insert the cell again if it was lost, or if the next cell overtook it.

        None stands for its first place.
        """
        create_future = asyncio.get_running_loop().create_future
        self.there: asyncio.Future[None] = create_future()
        """Done when the cell is in the notebook, or could not be written."""
        self.written: asyncio.Future[Document] = create_future()
        """Done when the cell shows the end of its execution, or never will."""

    @property
    def replaced(self) -> CellContent | None:
        """The cell as it was before the execution; None if it is a new one."""
        first = self.first
        return (
            None
            if isinstance(first, NewCell)
            else CellContent(cell_type="code", source=first.before)
        )

    @property
    def status(self) -> Status:
        """The status that the cell shows."""
        status: Status = self._state.agent_exec["status"]
        return status

    @property
    def ended(self) -> bool:
        """Whether the execution has ended."""
        return self._state.ended

    @property
    def is_at_end(self) -> bool:
        """Whether it is a new cell at the end of the notebook."""
        return isinstance(self.first, NewCell) and self.first.at == Position()

    @property
    def is_due(self) -> bool:
        """Whether there is something to write: to a cell that was gone, only the end."""
        return self._requested and (self.ended or not self._gone) and not self.written.done()

    @property
    def is_due_in_file(self) -> bool:
        """Whether it is to be saved in a file."""
        return self.ended or not self._in_file

    def document(self) -> Document:
        """Return the current state of the cell."""
        if self.written.done():
            return self.written.result()
        return self._document(final=False)

    def update(self, state: CellState) -> None:
        """Show another state of the execution."""
        self._state = state
        self.request_update()

    def request_update(self) -> None:
        """Bring the cell up to date soon."""
        self._requested = True
        self._loop.wake(urgent=self.ended)

    def break_off(self) -> None:
        """Write no more, if the cell does not show the end of its execution yet."""
        if not self.written.done():
            self._problem = self._problem or BROKEN_OFF
            self._end()
            self._loop.wake(urgent=True)

    # -- write -------------------------------------------------------------------------------------

    async def take(self, handle: NotebookHandle) -> None:
        """Take the state and new outputs for a write through this handle."""
        self._via, self._in_file = handle.via, not handle.streams
        self._requested, self._taken = False, self._state
        self._version, steps = self._changes(self._version)
        self._steps = await self._copy.feed_without_blocking(steps)

    def is_unclear(self, handle: NotebookHandle) -> bool:
        """Whether a new cell may have another source, now that its execution has begun with it."""
        is_new = isinstance(self._cell, NewCell) and self._claims and self._is_tried
        return self._gone or (is_new and not self._is_current(handle))

    def changes(self, handle: NotebookHandle) -> Planned:
        """Return what to send through a handle."""
        is_current = self._is_current(handle)
        expected = self._expected(is_there=is_current)
        if not is_current:
            return self._whole(put=True), expected
        state = self._told()
        changes: list[Change] = [] if state == self._sent_state else [state]
        if self._steps:
            changes.append(SetOutputs(cell_id=self.cell_id, changes=self._steps))
        return changes, expected

    def plan(self, notebook: Notebook, handle: NotebookHandle) -> Planned:
        """Return what to send through a handle that has read the notebook.

        A cell that the user deleted stays deleted, unless the user undoes that. One that the user
        changed before its code ran is left alone, without our metadata.
        """
        was_gone, self._gone, self._problem = self._gone, False, None
        cell = find_cell(notebook.cells, self.cell_id)
        if cell is None:
            if isinstance(self._cell, NewCell) and not self._is_current(handle) and not was_gone:
                return self._whole(put=True), {}
            self._gone, self._problem = True, GONE
            return [], {}
        source = joined(cell["source"])
        if source == self._cell.source:
            self._set_source()
        expected = self._expected(is_there=True)
        is_as_expected = source == expected.get(self.cell_id, source)
        if is_as_expected and cell["cell_type"] == "code":
            return self._whole(put=False), expected
        self._gone, self._problem = True, GONE if is_as_expected else CHANGED
        without_ours = replace(as_it_is(self.cell_id, cell), agent_exec=None)
        return [without_ours] if self._is_tried else [], {}

    def sent(self, handle: NotebookHandle) -> None:
        """Note that what was returned last is in the notebook."""
        if not self._gone:
            self._handle, self._via, self._problem = handle, handle.via, None
            self._sent_state = self._told()
            self._claimed = self._claimed or self._claims
            self._set_source()
        settle(self.there)
        if self._taken.ended or (self.ended and self._gone):
            self._end()

    def fail(self, error: NotebookNotFound | DocumentUnwritable | DocumentChanged) -> None:
        """Note that the notebook cannot be written. Try again at the end, and if it is renamed."""
        self._handle = None
        self._problem = self._problem if self._gone else error.message
        settle(self.there)
        if self.ended:
            self._looks -= 1
            if self._looks and isinstance(error, NotebookNotFound):
                self._requested = True
                self._loop.wake(urgent=False)
            else:
                self._end()

    def _end(self) -> None:
        if not self.written.done():
            settle(self.there)
            self.written.set_result(self._document(final=True))

    # -- content -----------------------------------------------------------------------------------

    @property
    def _claims(self) -> bool:
        """Whether the current write ensures that the cell has the source that runs."""
        return self._taken.has_begun and not self._claimed

    def _set_source(self) -> None:
        """Note that an existing cell has its new source."""
        if isinstance(self._cell, ExistingCell) and self._cell.source is not None:
            self._cell = ExistingCell(before=self._cell.source, source=None)

    def _expected(self, *, is_there: bool) -> dict[CellId, str]:
        """Return the source that the cell must have, until the execution has begun with it.

        Parameters
        ----------
        is_there
            Whether a new cell is in the notebook already.
        """
        if isinstance(self._cell, ExistingCell):
            return {} if self._claimed else {self.cell_id: self._cell.before}
        return {self.cell_id: self._cell.source} if self._claims and is_there else {}

    def _is_current(self, handle: NotebookHandle) -> bool:
        """Whether a handle needs only what is new."""
        return handle == self._handle and handle.streams

    def _told(self) -> SetCell:
        return self._taken.shown_in(self.cell_id, self._outputs_shown(), self._copy.held)

    def _outputs_shown(self) -> Literal["inert", "held"]:
        return "held" if self._copy.held else "inert"

    def _whole(self, *, put: bool) -> list[Change]:
        """Return the changes that write the whole cell, whatever the notebook has now."""
        changes: list[Change] = []
        if isinstance(self._cell, ExistingCell):
            changes = self._cell.put(self.cell_id)
        elif put:
            overtaken = self.again_at is not None and self.again_at.before is not None
            is_again = self._sent_state is not None or overtaken
            changes = self._cell.put(self.cell_id, self.again_at if is_again else None)
        self._is_tried = True
        outputs = SetOutputs(cell_id=self.cell_id, changes=self._copy.whole())
        return [*changes, self._told(), outputs]

    def _document(self, *, final: bool) -> Document:
        missing = self._problem is not None
        return Document(
            path=self.path(),
            cell_id=None if missing else self.cell_id,
            via=self._via,
            status="not_written" if missing else "written" if final else "writing",
            outputs=self._outputs_shown(),
            reason=self._problem,
        )
