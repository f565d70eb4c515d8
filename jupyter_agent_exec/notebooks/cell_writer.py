"""One execution's cell in a notebook, brought to what it should be by whichever way leads there.

What is kept is how the cell should be, not what was sent. A way that was used before is sent what
changed since; any other is sent the cell as a whole. So a tab that reloads, closes or opens while
the execution goes on costs no cell twice, and none is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ..errors import DocumentChanged, DocumentUnwritable, NotebookNotFound
from ..inert import InertCopy
from ..models import Document, OutputChange
from ..tasks import settle
from ..types import CellId, Via
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
"""Seconds for which writes are gathered."""


class SaveBatches:
    """Tells writers of files when to write: all that joined meanwhile, in the order in which.

    Parameters
    ----------
    delay
        Seconds from the first that joins until it is time.
    """

    def __init__(self, delay: float = BATCH_DELAY) -> None:
        self._delay = delay
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._hurried: Counter[str] = Counter()

    def join(self, path: str) -> asyncio.Future[None]:
        """Return what is done when it is time to write to a path."""
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
        """Have writes to a path made at once, for as long as somebody waits for them."""
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
"""Returns the version of the outputs, and how they changed since another; 0 is none."""


class NewCell(NamedTuple):
    """A cell that is not in the notebook yet."""

    source: str
    at: Position

    def made(self, id: CellId) -> dict[str, Any]:
        """Return the cell as it is inserted."""
        return new_cell(id, "code", self.source)


class ExistingCell(NamedTuple):
    """A cell of the notebook, which is run."""

    before: str
    """Its source when that was looked at, or as it was replaced since."""
    source: str | None
    """What its source becomes; None if it stays."""


class CellState(Struct, frozen=True, kw_only=True):
    """How an execution stands."""

    agent_exec: dict[str, Any]
    """The cell's `metadata.agent_exec`, but for what became of its outputs."""
    execution_count: int | None
    ended: bool
    """Whether this is how it stays."""
    has_begun: bool
    """Whether the kernel has got it, or had."""
    goes_on: bool
    """Whether it runs, or will when it is its turn."""


def cell_metadata(
    agent_exec: dict[str, Any],
    execution_count: int | None,
    what: Literal["inert", "held", "accepted", "discarded"],
    held: Sequence[str],
) -> dict[str, Any]:
    """Return the metadata of a cell in a notebook: the record's, and what became of its outputs.

    Parameters
    ----------
    execution_count
        Of the execution; the cell has another once a person has run it again.
    held
        What of the outputs is held back: MIME types.
    """
    told = {**agent_exec, "execution_count": execution_count, "outputs": what}
    return {**told, "held": list(held)} if held else told


MERGE_DELAY = 0.1
"""Seconds for which changes are gathered before they are sent."""

RENAME_LOOKS = 10
"""How often to look, so many seconds apart, for a notebook that is not where it was."""

GONE = "The cell is not in the notebook any more, or is no code cell."
CHANGED = "The cell's source was changed before its code ran, so it was left as it is."
BROKEN_OFF = "Writing the cell was broken off."


class CellWriter:
    """Keeps one cell as its execution stands; at most one write is under way.

    Parameters
    ----------
    path
        Returns the notebook's contents path as it is now.
    state
        How the execution stands; `show` tells when it stands otherwise.
    changes
        Of the execution's outputs; `stir` tells when there are any.
    join_batch
        Returns what is done when it is time to write to the file at a path.
    turn
        Done when the cell may be put: whichever goes before it has been, or is about to be.
    merge_delay
        Seconds between two writes.
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
        merge_delay: float = MERGE_DELAY,
    ) -> None:
        self._documents = documents
        self._cell = cell
        self._path = path
        self._state = state
        self._changes = changes
        self._join_batch = join_batch
        self._turn = turn
        self._merge_delay = merge_delay
        self._copy = InertCopy()
        self._version = 0
        self._way: NotebookHandle | None = None  # which has all but what changed since
        self._sent_state: SetCell | None = None
        self._via: Via | None = None
        self._batch: asyncio.Future[None] | None = None  # to write to a file
        self._uncertain = False
        self._gone = False
        self._missing = False
        self._problem: str | None = None
        self._dropped = False
        self._source_changed = False
        self._claimed = False  # the cell had the execution's source when that had begun
        self._claims = False  # the write that is under way sees to that
        self.sources = {cell.source} if isinstance(cell, NewCell) else set()
        """That a new cell was to have, one after the other."""
        self._update_requested = asyncio.Event()
        self._update_requested.set()
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        self.cell_id = cell_id
        self.again_at: Position | None = None
        """Where the cell goes if it was inserted and is lost, or if the next one overtook it.

        None is where it went.
        """
        self.reached: asyncio.Future[None] = loop.create_future()
        """Done when it is known whether, and by which way, the notebook can be reached."""
        self.placed: asyncio.Future[None] = loop.create_future()
        """Done when the cell has been put, or could not be, or is the next to be put in a file."""
        self.there: asyncio.Future[None] = loop.create_future()
        """Done when the cell is in the notebook, or it is known why not."""
        self.written: asyncio.Future[Document] = loop.create_future()
        """Done when the cell shows how its execution ended, or never will."""

    @property
    def streams(self) -> bool:
        """Whether the way that was used last takes outputs as they come."""
        return self._via not in (None, "contents")

    @property
    def ended(self) -> bool:
        """Whether the execution has ended, so that nothing more comes."""
        return self._ended.done()

    def document(self) -> Document:
        """Return what has become of the cell."""
        if self.written.done():
            return self.written.result()
        return self._document(final=False)

    def update(self, state: CellState) -> None:
        """Show how the execution stands now."""
        self._state = state
        if state.ended:
            settle(self._ended)
        self.request_update()

    def drop(self) -> None:
        """Write nothing more: what becomes of the cell is somebody else's affair."""
        self._dropped = True
        settle(self._ended)
        self.request_update()

    def set_source(self, source: str) -> None:
        """Give a new cell another source, which a person let run instead."""
        if isinstance(self._cell, NewCell) and source != self._cell.source:
            self._cell = self._cell._replace(source=source)
            self.sources.add(source)
            self._source_changed = True
            self.request_update()

    def request_update(self) -> None:
        """Have the cell brought up to date soon."""
        self._update_requested.set()

    async def run(self) -> None:
        """Keep the cell up to date until its execution has ended and the cell shows it."""
        try:
            if self._turn is not None:
                await asyncio.wait({self._turn})
            while not self.written.done():
                await self._update_requested.wait()
                self._update_requested.clear()
                if self._dropped:
                    self.written.set_result(self._document(final=True))
                elif self._state.ended:
                    await self._finish()
                else:
                    await self._flush(ended=False)
                    settle(self.placed)
                    if self._sent_state is not None or self._problem is not None:
                        settle(self.there)
                    await asyncio.wait({self._ended}, timeout=self._merge_delay)
        finally:
            for future in (self.reached, self.placed, self.there):
                settle(future)
            if not self.written.done():
                self._problem = self._problem or BROKEN_OFF
                self.written.set_result(self._document(final=True))

    # -- write -------------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Write how the execution ended; look again for a notebook that may just be renamed."""
        for _ in range(RENAME_LOOKS):
            await self._flush(ended=True)
            if not self._missing:
                break
            await asyncio.sleep(self._merge_delay)
        self.written.set_result(self._document(final=True))

    async def _flush(self, *, ended: bool) -> None:
        """Bring the cell up to date, if that is possible and worth it now."""
        if self._gone:
            return
        try:
            way = await self._documents.find(self._path())
            first = self._via != way.via
            if not way.streams and (ended or first) and await self._batch_is_due(way, ended=ended):
                way = await self._documents.find(self._path())
                await self._update_cell(way)
            elif way.streams:
                await self._update_cell(way)
            self._problem, self._missing = None, False
        except Moved:
            self._gone, self._problem = True, GONE
        except DocumentChanged as error:
            self._gone, self._problem = True, error.message
            await self._release()
        except (NotebookNotFound, DocumentUnwritable) as error:
            self._way, self._problem = None, error.message
            self._missing = isinstance(error, NotebookNotFound)
        finally:
            settle(self.reached)

    async def _batch_is_due(self, way: NotebookHandle, *, ended: bool) -> bool:
        """Wait until a file is to be written; False if the execution ended before."""
        self._via = way.via
        if self._batch is None or self._batch.done():
            self._batch = self._join_batch(self._path())
        for future in (self.reached, self.placed):
            settle(future)
        until = {self._batch} if ended else {self._batch, self._ended}
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        return self._batch.done()

    async def _update_cell(self, way: NotebookHandle) -> None:
        """Bring the cell up to date by this way, or, if that breaks off, by any.

        Raises
        ------
        Moved
            It is gone.
        DocumentChanged
            It has another source than its execution.
        NotebookNotFound, DocumentUnwritable
        """
        whole = way != self._way or not way.streams
        self._claims = self._state.has_begun and not self._claimed
        may_be_there = self._sent_state is not None or self._uncertain
        is_to_look = len(self.sources) > 1 or (self._claims and may_be_there)
        if self._source_changed or (whole and is_to_look):
            await self._replace_source()
        try:
            await self._send(way, whole=whole)
        except Unreachable:
            self._uncertain = True
        except Moved:
            await self._check_source()
            await self._send_whole(put=False)
        else:
            return
        try:
            if self._claims:
                await self._replace_source()
            await self._send_whole(put=True)
        except Moved:
            await self._check_source()
            await self._send_whole(put=False)

    async def _send(self, way: NotebookHandle, *, whole: bool) -> None:
        """Send by one way what it has not seen."""
        seen = self._sent_state
        self._via = way.via
        settle(self.reached)
        steps = await self._take_outputs()
        told = self._state_change()
        if whole:
            await way.apply(self._whole_cell(told, put=True), self._expected(put=True))
        else:
            changes: list[Change] = [] if told == seen else [told]
            if steps:
                changes.append(SetOutputs(cell_id=self.cell_id, changes=steps))
            if changes:
                await way.apply(changes, self._expected(put=False))
        self._way = way
        self._mark_sent(told)

    async def _send_whole(self, *, put: bool) -> None:
        """Send the cell as a whole by whichever way works."""
        self._way = None
        await self._take_outputs()
        told = self._state_change()
        changes = self._whole_cell(told, put=put)
        self._via = await self._documents.apply(self._path(), changes, self._expected(put=put))
        self._mark_sent(told)

    async def _replace_source(self) -> None:
        """Give a new cell that has been put already the source of its execution.

        Raises
        ------
        DocumentChanged
            Its source is a person's now.
        Moved, NotebookNotFound, DocumentUnwritable
        """
        if not isinstance(self._cell, NewCell):
            return
        source = self._cell.source
        _, notebook = await self._documents.read(self._path())
        cell = find_cell(notebook.cells, self.cell_id)
        found = source if cell is None else joined(cell["source"])
        if found not in self.sources:
            raise DocumentChanged(CHANGED)
        if found != source:
            await self._documents.apply(
                self._path(),
                [SetSource(cell_id=self.cell_id, source=source)],
                Expected(cells={self.cell_id: ("code", found)}),
            )
        self._source_changed = False

    async def _check_source(self) -> None:
        """Look whether the cell has its execution's source, though not as was expected.

        Raises
        ------
        Moved
            The cell is gone.
        DocumentChanged
            It has another source.
        """
        if isinstance(self._cell, NewCell):
            if self._claims:
                await self._replace_source()
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
        """Take every word of ours from a cell that is somebody else's now."""
        if self._sent_state is None and not self._uncertain:
            return
        with suppress(Moved, NotebookNotFound, DocumentUnwritable):
            _, notebook = await self._documents.read(self._path())
            cell = find_cell(notebook.cells, self.cell_id)
            if cell is not None:
                await self._documents.apply(
                    self._path(), [released_cell(self.cell_id, cell)], Expected()
                )

    # -- what is written ---------------------------------------------------------------------------

    async def _take_outputs(self) -> list[OutputChange]:
        """Take the outputs' changes into the copy; large HTML without holding up the loop."""
        self._version, steps = self._changes(self._version)
        return await self._copy.feed_without_blocking(steps)

    def _expected(self, *, put: bool) -> Expected:
        """Return what must hold: until it is known once its execution has begun, the source.

        Parameters
        ----------
        put
            Whether a new cell is put if it is not there: then nothing can be expected of it.
        """
        if isinstance(self._cell, ExistingCell) and not self._claimed:
            return Expected(cells={self.cell_id: ("code", self._cell.before)})
        if isinstance(self._cell, NewCell) and self._claims and not put:
            return Expected(cells={self.cell_id: ("code", self._cell.source)})
        return Expected()

    def _state_change(self) -> SetCell:
        return SetCell(
            cell_id=self.cell_id,
            agent_exec=cell_metadata(
                self._state.agent_exec,
                self._state.execution_count,
                self._outputs_shown(),
                self._copy.held,
            ),
            execution_count=self._state.execution_count,
            execution_state="running" if self._state.goes_on else "idle",
            trusted=True,
        )

    def _outputs_shown(self) -> Literal["inert", "held"]:
        return "held" if self._copy.held else "inert"

    def _whole_cell(self, told: SetCell, *, put: bool) -> list[Change]:
        """Return what makes any cell, or none, this one."""
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
        written: Literal["writing", "written"] = "written" if final else "writing"
        return Document(
            path=self._path(),
            cell_id=None if missing else self.cell_id,
            via=self._via,
            status="not_written" if missing else written,
            outputs=self._outputs_shown(),
            reason=self._problem,
        )


def released_cell(id: CellId, cell: dict[str, Any]) -> SetCell:
    """Return what takes every word of ours from a cell."""
    return SetCell(
        cell_id=id,
        agent_exec=None,
        execution_count=cell.get("execution_count"),
        execution_state="idle",
        trusted=bool(cell["metadata"].get("trusted")),
    )
