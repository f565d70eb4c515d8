"""One open agent session: what can be asked of it, its kernels' lives, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from ..errors import (
    AlreadyFinished,
    HistoryUnavailable,
    InitFailed,
    SessionClosed,
    TooManyRequests,
)
from ..journal.session import SessionJournal
from ..kernels.kernel import Death, Kernel, KernelSource
from ..models import OutputChange, Session
from ..records import SERVER, By, Closed, ExecutionRecord, timestamp
from ..tasks import Tasks
from ..types import CloseReason, Digest, ExecutionId, Output, SessionId
from .bounds import Bounds
from .execution import LiveExecution
from .lane import Lane

END_TIMEOUT = 5.0
"""Seconds beyond the interrupt's grace time to wait, when a session closes, for its record."""


class Publish(Protocol):
    """How the rest of the server hears that something changed."""

    def __call__(
        self,
        action: Literal["opened", "closed", "kernel", "execution"],
        session: LiveSession,
        execution_id: ExecutionId | None = None,
        **told: Any,
    ) -> None:
        """Tell it."""


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
        publish: Publish,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._record = record
        self._journal = journal
        self._bounds = bounds
        self._init_source = init_source
        self._publish = publish
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(log)
        self._idle_timer: asyncio.TimerHandle | None = None
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
            kernel_changed=partial(publish, "kernel", self),
            stirred=self._stirred,
            tasks=self._tasks,
            disk=disk,
            log=log,
        )

    # -- look --------------------------------------------------------------------------------------

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._record.id

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel of the session's own is running."""
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
            return execution.finished.result()
        outputs: list[Output] = []
        if execution.run is not None and execution.held_by is not None:
            outputs = execution.held_by.connection.outputs(execution.run)
        return execution.record(self._journal.head, outputs)

    def changes(self, execution: LiveExecution, version: int) -> tuple[int, list[OutputChange]]:
        """Return the version of an execution's outputs, and how they changed since `version`."""
        if execution.run is None or execution.held_by is None:
            return version, []
        return execution.held_by.connection.changes(execution.run, version)

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

    async def open(self, kernel: Kernel) -> None:
        """Begin with a kernel that has not run anything; run the init source.

        Raises
        ------
        InitFailed
            The init source did not end well; the session is still to be closed.
        """
        self._publish("opened", self, status="open")
        await self._lane.incarnations.begin(kernel)
        self._stirred()

    def execute(
        self,
        source: str,
        *,
        by: By,
        timeout: float | None = None,
        queue_timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
        body_sha256: Digest | None = None,
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
        return self._lane.take(
            source,
            by=by,
            timeout=timeout or self._bounds.timeout,
            queue_timeout=queue_timeout or self._bounds.queue_timeout,
            max_output_bytes=max_output_bytes or self._bounds.max_output_bytes,
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
        )

    async def interrupt(self, by: By) -> None:
        """Interrupt what runs; nothing happens if nothing does."""
        self._check_open()
        if self.running is not None:
            reason = f"Interrupted by {by.named}."
            await self._lane.interrupt(self.running, ("interrupted", reason), "asked", by)

    async def cancel(self, execution: LiveExecution, by: By) -> None:
        """Take back an execution that waits, or interrupt it if it runs."""
        reason = f"Cancelled by {by.named}."
        if execution is self.running:
            await self._lane.interrupt(execution, ("interrupted", reason), "cancelled", by)
        elif not execution.finished.done():
            self._lane.give_up(execution, "cancelled", reason)
        else:
            raise AlreadyFinished("The execution has finished.", execution_id=execution.id)

    async def restart(self, by: By) -> None:
        """Give the session a fresh kernel, and say so to the next execution."""
        self._check_open()
        why = f"The kernel was restarted by {by.named}."
        await self._lane.end_kernel(Death("restarted", why), ("interrupted", why), by)
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
        if (running := self.running) is not None:
            await self._lane.interrupt(running, ("interrupted", why), "closing", by)
            await asyncio.wait({running.finished}, timeout=self._bounds.interrupt_grace)
        await self._lane.end_kernel(Death("shut_down", why), ("interrupted", why), by)
        await self._tasks.end(timeout=self._bounds.interrupt_grace + END_TIMEOUT)
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
        """Run the init source in a kernel that has not run anything."""
        self._publish("kernel", self)
        kernel.connection.on_late.add(self._lane.recorder.late)
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
        await self._lane.end_kernel(death, ("kernel_died", death.message), SERVER)

    def _changed(self, id: ExecutionId, execution: LiveExecution | None) -> None:
        if execution is None:
            self._publish("execution", self, id)
        else:
            self._publish("execution", self, id, status=execution.status, seq=execution.seq)

    def _stirred(self) -> None:
        """Note that something happened; have the kernel culled if nothing more does for long."""
        self._last_activity_at = timestamp()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._bounds.idle_timeout and not self._lane.live and not self._closing:
            self._idle_timer = self._loop.call_later(self._bounds.idle_timeout, self._cull)

    def _cull(self) -> None:
        if not self._lane.live and self.has_kernel:
            why = f"The kernel was shut down after {self._bounds.idle_timeout:g} idle seconds."
            self._tasks.start(
                self._lane.end_kernel(Death("culled", why), ("interrupted", why), SERVER),
                f"cull {self.id}",
            )

    def _check_open(self) -> None:
        if self._closing:
            raise SessionClosed("The session is closed; open another.", session_id=self.id)
