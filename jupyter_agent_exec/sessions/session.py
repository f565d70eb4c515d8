"""One open agent session: what can be asked of it, its kernels' lives, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from ..errors import (
    AgentExecError,
    AlreadyFinished,
    HistoryUnavailable,
    InitFailed,
    KernelNotOwned,
    SessionClosed,
    TooManyRequests,
)
from ..journal.session import SessionJournal
from ..kernels.kernel import Death, Kernel, KernelSource
from ..models import Execute, ScratchTarget, Session
from ..records import (
    SERVER,
    By,
    Closed,
    Entry,
    ExecutionRecord,
    NotebookCreated,
    NotebookMoved,
    Payload,
    timestamp,
)
from ..tasks import Tasks
from ..types import CloseReason, Digest, ExecutionId, Output, SessionId
from .attached import AttachedNotebook
from .bounds import Bounds
from .cells import Cells, MakeCells, Place
from .execution import LiveExecution
from .lane import Lane
from .publishing import Publish
from .showing import Showing

END_TIMEOUT = 5.0
"""Seconds beyond the interrupt's grace time to wait, when a session closes, for its record."""


INIT_WAIT = 30.0
"""Seconds for which opening waits for the init source in a kernel that others use too."""

NOT_OWNED = (
    "The kernel is a person's, and only a person may restart it: ask them to, or open a session "
    "with a scratch kernel."
)

SOMEBODY = By(kind="person")
"""Whoever works in JupyterLab; which of them is not known."""


class LiveSession:
    """An open agent session."""

    def __init__(
        self,
        record: Session,
        journal: SessionJournal,
        kernels: KernelSource,
        *,
        bounds: Bounds,
        init_source: str | None,
        make_cells: MakeCells,
        read: Callable[[str], ExecutionRecord],
        publish: Publish,
        leftovers: Tasks,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._record = record
        self._journal = journal
        self._bounds = bounds
        self._init_source = init_source
        self._read = read
        self._publish = publish
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(log)
        self._idle_timer: asyncio.TimerHandle | None = None
        self._notebook = kernels if isinstance(kernels, AttachedNotebook) else None
        self._last_activity_at = record.last_activity_at
        self._closing = False
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._lane = Lane(
            record,
            journal,
            kernels,
            bounds=bounds,
            born=self._born,
            died=self._died,
            changed=self._changed,
            late=self._late,
            kernel_changed=partial(publish, "kernel", self),
            person_ran=partial(publish, "person", self),
            stirred=self._stirred,
            tasks=self._tasks,
            leftovers=leftovers,
            disk=disk,
            log=log,
        )
        cells: Cells | None = None
        if self._notebook is not None:
            self._notebook.on_moved = self._moved
            cells = make_cells(self)
        self.showing = Showing(cells)

    # -- look --------------------------------------------------------------------------------------

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._record.id

    @property
    def path(self) -> str | None:
        """Contents path of its notebook now; None if its target is none."""
        return None if self._notebook is None else self._notebook.path

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel is there."""
        return self._lane.incarnations.current is not None

    @property
    def running(self) -> LiveExecution | None:
        """What runs in the kernel."""
        return self._lane.running

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return self._lane.queued

    def record(self) -> Session:
        """Return the session as it stands."""
        return replace(
            self._record,
            path=self.path,
            kernel=self._lane.incarnations.model(),
            executions=self._lane.accepted,
            last_activity_at=self._last_activity_at,
            chain=self._journal.head,
        )

    def live(self, id: ExecutionId) -> LiveExecution | None:
        """Return an execution that is not finished yet."""
        return self._lane.live.get(id)

    def execution_record(self, execution: LiveExecution) -> ExecutionRecord:
        """Return an execution as it stands."""
        if execution.finished.done():
            return self.showing.with_document(execution.finished.result())
        outputs: list[Output] = []
        if execution.started_at is not None and execution.run is not None:
            assert execution.held_by is not None
            outputs = execution.held_by.connection.outputs(execution.run)
        return self.showing.with_document(replace(execution.standing(), outputs=outputs))

    async def recorded(self, execution_id: ExecutionId) -> ExecutionRecord:
        """Return a finished execution as it is in the history."""
        read = partial(self._read, execution_id)
        return await self._loop.run_in_executor(self._disk, read)

    @contextmanager
    def watching(self, execution: LiveExecution) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever the execution, or its outputs, changed."""
        event = asyncio.Event()
        execution.watchers.add(event)
        if execution.run is not None:
            execution.run.changed = execution.tell
        try:
            yield event
        finally:
            execution.watchers.discard(event)

    # -- do ----------------------------------------------------------------------------------------

    async def open(self, kernel: Kernel, by: By) -> None:
        """Begin with a kernel; run the init source there.

        In a kernel that others use too it has to wait for its turn, and opening does not wait for
        ever.

        Raises
        ------
        InitFailed
            The init source did not end well; the session is still to be closed.
        """
        self._publish("opened", self, status="open")
        if self._notebook is not None and self._notebook.created:
            created = NotebookCreated(at=timestamp(), by=by, path=self._notebook.path)
            await self._lane.recorder.record(created)
        begun = asyncio.ensure_future(self._lane.incarnations.begin(kernel))
        await asyncio.wait({begun}, timeout=None if kernel.owned else INIT_WAIT)
        if begun.done():
            begun.result()
        else:
            self._tasks.start(self._opened_late(begun), f"open {self.id}")
        self._stirred()

    async def place(self, asked: Execute) -> Place | None:
        """Find the place of an execution's cell; None if it has none.

        Raises
        ------
        SessionClosed, InvalidRequest, CellNotFound, DocumentChanged
            Nothing is to be run.
        """
        self._check_open()
        return await self.showing.place(asked)

    def execute(
        self,
        asked: Execute,
        *,
        by: By,
        place: Place | None,
        idempotency_key: str | None,
        body_sha256: Digest | None,
    ) -> LiveExecution:
        """Take an execution on its way; `accepted` tells when it is on disk.

        Raises
        ------
        SessionClosed, TooManyRequests
            Nothing was accepted.
        """
        self._check_open()
        if self.queued >= self._bounds.max_queued:
            raise TooManyRequests(
                f"{self.queued} executions of this session wait already; wait for one to finish.",
                limit=self._bounds.max_queued,
            )
        source = asked.source if place is None else place.source
        assert source is not None
        execution = self._lane.take(
            source,
            by=by,
            timeout=asked.timeout or self._bounds.timeout,
            queue_timeout=asked.queue_timeout or self._bounds.queue_timeout,
            max_output_bytes=asked.max_output_bytes or self._bounds.max_output_bytes,
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
            placement=None if self._notebook is None else asked.placement,
            place=place,
        )
        if place is not None:
            self.showing.show(execution, place)
        return execution

    async def interrupt(self, by: By) -> None:
        """Interrupt what runs.

        In a kernel that is not its own, what waits is taken back as well: whoever stops an agent
        there wants it to keep its hands off.
        """
        self._check_open()
        reason = f"Interrupted by {by.named}."
        if not self._is_scratch:
            for execution in list(self._lane.live.values()):
                self._lane.give_up(execution, "cancelled", f"{reason} It was not run.")
        if self.running is not None:
            await self._lane.in_kernel.interrupt(self.running, ("interrupted", reason), "asked", by)

    async def cancel(self, execution: LiveExecution, by: By) -> None:
        """Take back an execution that waits, or interrupt it if it runs."""
        reason = f"Cancelled by {by.named}."
        if execution is self.running:
            await self._lane.in_kernel.interrupt(
                execution, ("interrupted", reason), "cancelled", by
            )
        elif not execution.finished.done():
            self._lane.give_up(execution, "cancelled", reason)
        else:
            raise AlreadyFinished("The execution has finished.", execution_id=execution.id)

    async def restart(self, by: By) -> None:
        """Give the session a fresh kernel, and say so to the next execution.

        Raises
        ------
        KernelNotOwned
            The kernel is a person's.
        """
        self._check_open()
        if not self._is_scratch:
            raise KernelNotOwned(NOT_OWNED)
        why = f"The kernel was restarted by {by.named}."
        await self._lane.in_kernel.end_kernel(Death("restarted", why), ("interrupted", why), by)
        await self._lane.incarnations.fresh()
        self._stirred()

    async def close(self, reason: CloseReason, by: By) -> None:
        """Take nothing new, end what runs, record it, and let the kernel go."""
        if not self._closing:
            self._closing = True
            why = "The server stopped." if reason == "server_stopped" else "The session was closed."
            for execution in list(self._lane.live.values()):
                self._lane.give_up(execution, "cancelled", why)
            self._tasks.start(self._close(reason, why, by), f"close {self.id}")
        await asyncio.shield(self._closed)

    async def _close(self, reason: CloseReason, why: str, by: By) -> None:
        self._stirred()
        if (running := self.running) is not None and not running.is_behind:
            await self._lane.in_kernel.interrupt(running, ("interrupted", why), "closing", by)
            await asyncio.wait({running.finished}, timeout=self._bounds.interrupt_grace)
        await self._lane.in_kernel.leave_kernel(("interrupted", why), by)
        await self._tasks.end(timeout=self._bounds.interrupt_grace + END_TIMEOUT)
        if self.has_kernel:  # it had just been started
            await self._lane.in_kernel.leave_kernel(("interrupted", why), by)
            await self._tasks.end(timeout=END_TIMEOUT)
        await self.showing.close()
        closed = Closed(at=timestamp(), by=by, reason=reason)
        try:
            await self._loop.run_in_executor(self._disk, self._journal.close, closed)
        except HistoryUnavailable as error:
            self._log.error("%s: its end is not recorded: %s", self.id, error.message)
        self._lane.recorder.stop()
        self._publish("closed", self, status="closed")
        self._closed.set_result(None)

    # -- what happens ------------------------------------------------------------------------------

    async def _born(self, kernel: Kernel) -> None:
        """Run the init source in a kernel that has not run anything of the session's."""
        self._publish("kernel", self)
        self._lane.in_kernel.listen(kernel, self._record.record_people)
        if self._init_source is None:
            return
        record = await self._lane.run_first(self._init_source, kernel, SERVER)
        if record.status != "ok":
            raise InitFailed(
                f"The session's init_source ended with status {record.status}.",
                session_id=self.id,
                execution_id=record.id,
                error=record.error,
                reason=record.reason,
            )

    async def _died(self, kernel: Kernel, death: Death) -> None:
        """Take note that the kernel ended by itself, or by somebody else's doing."""
        self._log.warning("%s: %s", self.id, death.message)
        await self._lane.in_kernel.end_kernel(death, ("kernel_died", death.message), SERVER)

    async def _opened_late(self, begun: asyncio.Future[None]) -> None:
        """Stay with an opening that goes on though it was answered."""
        try:
            await begun
        except AgentExecError as error:
            self._log.warning("%s: %s", self.id, error.message)

    def _moved(self, before: str, path: str) -> None:
        """Take note that the notebook has another path."""
        entry = NotebookMoved(at=timestamp(), by=SOMEBODY, path=path, before=before)

        async def note() -> None:
            await self._lane.recorder.record(entry)
            self._publish("notebook", self)

        if not self._closing:
            self._tasks.start(note(), f"notebook of {self.id} moved")

    async def write(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what is to happen; HistoryUnavailable if that cannot be."""
        await self._lane.recorder.write(entry, payloads)

    async def note(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what has happened; kept if that cannot be written now."""
        self.showing.noted(entry)
        await self._lane.recorder.record(entry, payloads)
        self._publish("notebook", self)

    def document_changed(self, execution_id: ExecutionId) -> None:
        """Tell whoever watches that an execution's `document` changed."""
        execution = self._lane.live.get(execution_id)
        if execution is None:
            self._publish("execution", self, execution_id)
        else:
            execution.wake()
            self._changed(execution)

    @property
    def _is_scratch(self) -> bool:
        return isinstance(self._record.target, ScratchTarget)

    def _changed(self, execution: LiveExecution) -> None:
        told = {"status": execution.status, "seq": execution.seq}
        self._publish("execution", self, execution.id, **told)

    def _late(self, execution_id: ExecutionId) -> None:
        self.showing.late(execution_id)
        self._publish("execution", self, execution_id)

    def _stirred(self) -> None:
        """Note that something happened; have the kernel culled if nothing more does for long."""
        self._last_activity_at = timestamp()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if (
            self._bounds.idle_timeout
            and self._is_scratch
            and not self._lane.live
            and not self._closing
        ):
            self._idle_timer = self._loop.call_later(self._bounds.idle_timeout, self._cull)

    def _cull(self) -> None:
        if not self._lane.live and self.has_kernel:
            why = f"The kernel was shut down after {self._bounds.idle_timeout:g} idle seconds."
            self._tasks.start(
                self._lane.in_kernel.end_kernel(Death("culled", why), ("interrupted", why), SERVER),
                f"cull {self.id}",
            )

    def _check_open(self) -> None:
        if self._closing:
            raise SessionClosed("The session is closed; open another.", session_id=self.id)
