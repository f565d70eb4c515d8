"""One open agent session: its kernel, whose turn it is, and the way of its executions.

All of this runs on the event loop, but for `_in_drain_dispatch`, which the kernel's drain calls in
its own thread, as it calls the recorder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from msgspec.structs import replace
from ulid import ULID

from ..errors import (
    AgentExecError,
    AlreadyFinished,
    HistoryUnavailable,
    InitFailed,
    SessionClosed,
    TooManyRequests,
)
from ..journal.session import SessionJournal
from ..kernels.connection import Ended, Run
from ..kernels.scratch import Death, ScratchKernel, ScratchKernels, Spec
from ..kernels.turns import Turn, Turns
from ..models import ExecutionKernel, OutputChange
from ..records import (
    By,
    Closed,
    Dispatched,
    Entry,
    ExecutionRecord,
    Interrupted,
    Payload,
    SessionRecord,
    timestamp,
)
from ..types import CloseReason, Digest, ExecutionId, Output, SessionId, Status
from .execution import LiveExecution
from .incarnations import Incarnations
from .recorder import SERVER, Recorder


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Limits of a session, with the server's own filled in. Seconds and bytes."""

    timeout: float
    queue_timeout: float | None
    max_output_bytes: int
    max_text_bytes: int
    max_queued: int
    interrupt_grace: float
    restart_if_interrupt_ignored: bool
    idle_timeout: float


class LiveSession:
    """An open agent session with a scratch kernel."""

    def __init__(
        self,
        record: SessionRecord,
        journal: SessionJournal,
        kernels: ScratchKernels,
        spec: Spec,
        *,
        bounds: Bounds,
        init_source: str | None,
        publish: Publish,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._record = record
        self._journal = journal
        self._kernels = kernels
        self._spec = spec
        self.bounds = bounds
        self._init_source = init_source
        self._publish = publish
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._recorder = Recorder(
            journal, finished=self._finished, changed=self._changed, disk=disk, log=log
        )
        self._turns = Turns()
        self._incarnations = Incarnations(
            kernels,
            spec,
            write=self._write_entry,
            note=self._note,
            born=self._born,
            died=self._died,
        )
        self._seq = 0
        self._running: LiveExecution | None = None
        self._live: dict[ExecutionId, LiveExecution] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_activity_at = record.last_activity_at
        self._closing = False
        self._closed: asyncio.Future[None] = self._loop.create_future()

    # -- look --------------------------------------------------------------------------------------

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._record.id

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel of the session's own is running."""
        return self._incarnations.current is not None

    @property
    def running(self) -> LiveExecution | None:
        """What runs in the kernel."""
        return self._running

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return len(self._turns)

    def record(self) -> SessionRecord:
        """Return the session as it stands."""
        return replace(
            self._record,
            kernel=self._incarnations.model(),
            executions=self._seq,
            last_activity_at=self._last_activity_at,
            chain=self._journal.head,
        )

    def live(self, id: ExecutionId) -> LiveExecution | None:
        """Return an execution that is not finished yet."""
        return self._live.get(id)

    def lives(self) -> list[LiveExecution]:
        """Return the executions that are not finished yet, in order."""
        return list(self._live.values())

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

    def watch(self, execution: LiveExecution) -> asyncio.Event:
        """Return an event that is set whenever the execution changes; see `unwatch`."""
        event = asyncio.Event()
        execution.watchers.add(event)
        if execution.run is not None:
            execution.run.changed = execution.tell
        return event

    def unwatch(self, execution: LiveExecution, event: asyncio.Event) -> None:
        """Watch no more."""
        execution.watchers.discard(event)

    # -- do ----------------------------------------------------------------------------------------

    async def open(self, kernel: ScratchKernel) -> None:
        """Begin with a kernel that has not run anything; run the init source.

        Raises
        ------
        InitFailed
            The init source did not end well; the session is still to be closed.
        """
        self._publish("opened", self, status="open")
        await self._incarnations.begin(kernel)
        self._rest()

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
        if self.queued >= self.bounds.max_queued:
            raise TooManyRequests(
                f"{self.queued} executions of this session wait already; wait for one to finish.",
                limit=self.bounds.max_queued,
            )
        execution = self._new_execution(
            source,
            by=by,
            timeout=timeout or self.bounds.timeout,
            queue_timeout=queue_timeout or self.bounds.queue_timeout,
            max_output_bytes=max_output_bytes or self.bounds.max_output_bytes,
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
        )
        self._own(self._carry(execution), f"execution {execution.id}")
        return execution

    async def interrupt(self, by: By) -> None:
        """Interrupt what runs; nothing happens if nothing does."""
        self._check_open()
        if self._running is not None:
            reason = f"Interrupted by {by.username}."
            await self._interrupt(self._running, ("interrupted", reason), "asked", by)

    async def cancel(self, execution: LiveExecution, by: By) -> None:
        """Take back an execution that waits, or interrupt it if it runs."""
        reason = f"Cancelled by {by.username}."
        if execution is self._running:
            await self._interrupt(execution, ("interrupted", reason), "cancelled", by)
        elif not execution.finished.done():
            self._give_up(execution, "cancelled", reason)
        else:
            raise AlreadyFinished("The execution has finished.", execution_id=execution.id)

    async def restart(self, by: By) -> None:
        """Give the session a fresh kernel, and say so to the next execution."""
        self._check_open()
        why = f"The kernel was restarted by {by.username}."
        await self._end_kernel(Death("restarted", why), ("interrupted", why), by)
        await self._incarnations.fresh()
        self._rest()

    async def close(self, reason: CloseReason, by: By) -> None:
        """Take nothing new, end what runs, record it, and let the kernel go."""
        if not self._closing:
            self._closing = True
            why = "The server stopped." if reason == "server_stopped" else "The session was closed."
            for execution in self.lives():
                self._give_up(execution, "cancelled", why)
            self._own(self._close(reason, why, by), f"close {self.id}")
        await asyncio.shield(self._closed)

    async def _close(self, reason: CloseReason, why: str, by: By) -> None:
        running = self._running
        if running is not None:
            await self._interrupt(running, ("interrupted", why), "server_stopping", by)
            await asyncio.wait({running.finished}, timeout=self.bounds.interrupt_grace)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await self._end_kernel(Death("shut_down", why), ("interrupted", why), by)
        while others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)
        try:
            await self._write(
                partial(self._journal.close, Closed(at=timestamp(), by=by, reason=reason))
            )
        except HistoryUnavailable as error:
            self._log.error("%s: its end is not recorded: %s", self.id, error.message)
        self._recorder.stop()
        self._publish("closed", self, status="closed")
        self._closed.set_result(None)

    # -- the way of an execution -------------------------------------------------------------------

    def _new_execution(
        self, source: str, *, by: By, init: bool = False, **asked: Any
    ) -> LiveExecution:
        self._seq += 1
        execution = LiveExecution(
            id=ExecutionId(f"x_{ULID()}"),
            session_id=self.id,
            seq=self._seq,
            source=source,
            init=init,
            agent=self._record.agent,
            username=self._record.username,
            by=by,
            accepted_at=timestamp(),
            **asked,
        )
        self._live[execution.id] = execution
        self._stir()
        return execution

    async def _carry(self, execution: LiveExecution) -> None:
        """Bring an execution from its acceptance to its end."""
        turn = self._turns.ask()
        try:
            at_once = turn.done() and self._incarnations.ready
            if not at_once:
                await self._accept(execution)
                if not await self._wait_for(turn, execution):
                    return
            try:
                kernel = await self._incarnations.fresh()
            except AgentExecError as error:
                self._give_up(execution, "cancelled", f"It was not run: {error.message}")
                await self._finish_unrun(execution)
                return
            if execution.given_up.done():
                await self._finish_unrun(execution)
                return
            await self._run(execution, kernel, accept=at_once)
        except HistoryUnavailable as error:
            self._forget(execution, error)
        finally:
            self._turns.leave(turn)
            self._rest()

    async def _accept(self, execution: LiveExecution) -> None:
        """Have it on disk before anybody is told."""
        payload = Payload.of(execution.source.encode())
        await self._write(partial(self._journal.append, [execution.entry()], [payload]))
        _settle(execution.accepted)
        self._tell_of(execution)

    def _forget(self, execution: LiveExecution, error: HistoryUnavailable) -> None:
        """Drop an execution that could not be recorded; whoever asked for it is told."""
        self._live.pop(execution.id, None)
        if execution.seq == self._seq:
            self._seq -= 1
        _settle(execution.accepted, error)
        execution.tell()

    async def _wait_for(self, turn: Turn, execution: LiveExecution) -> bool:
        """Wait for the turn; False when the execution was given up instead."""
        await asyncio.wait(
            {turn, execution.given_up},
            timeout=execution.queue_timeout,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not turn.done() and not execution.given_up.done():
            reason = f"It did not get its turn within {execution.queue_timeout:g} seconds."
            self._give_up(execution, "timed_out", reason)
        if execution.given_up.done():
            await self._finish_unrun(execution)
            return False
        return True

    def _give_up(self, execution: LiveExecution, status: Status, reason: str) -> None:
        if execution is not self._running and not execution.given_up.done():
            execution.ending = (status, reason)
            execution.given_up.set_result(None)

    async def _finish_unrun(self, execution: LiveExecution) -> None:
        await self._loop.run_in_executor(self._disk, self._recorder.unrun, execution)
        await execution.finished

    async def _run(self, execution: LiveExecution, kernel: ScratchKernel, *, accept: bool) -> None:
        """Send an execution to the kernel and stay with it until it is recorded as finished."""
        untold = None if execution.init else self._incarnations.untold
        execution.kernel = ExecutionKernel(
            id=kernel.id,
            name=kernel.spec.kernel_name,
            incarnation=self._incarnations.number,
            restarted=untold is not None,
            reason=untold,
        )
        sent: asyncio.Future[None] = self._loop.create_future()
        execution.held_by = kernel
        execution.spill = self._journal.new_text_spill(self.bounds.max_text_bytes)
        execution.run = Run(
            id=execution.id,
            source=execution.source,
            store_history=not execution.init,
            max_output_bytes=execution.max_output_bytes,
            sink=execution.spill,
            before=partial(self._in_drain_dispatch, execution, accept, sent),
            after=partial(self._ended, execution),
            changed=execution.tell if execution.watchers else None,
        )
        self._running = execution
        timer = self._loop.call_later(execution.timeout or 0, self._time_out, execution)
        try:
            kernel.connection.start(execution.run)
            await sent
            if not execution.init:
                self._incarnations.untold = None
            await execution.finished
            await kernel.connection.free()
        except HistoryUnavailable as error:
            if accept:
                raise
            self._running = None
            self._give_up(execution, "cancelled", f"It was not run: {error.message}")
            await self._finish_unrun(execution)
        finally:
            timer.cancel()
            self._running = None

    def _in_drain_dispatch(
        self, execution: LiveExecution, accept: bool, sent: asyncio.Future[None]
    ) -> bool:
        """Have it on disk that the execution is about to be sent; False if that cannot be."""
        assert execution.kernel is not None
        assert execution.run is not None
        at = timestamp(execution.run.started_at)
        entries: list[Entry] = [
            Dispatched(at=at, by=SERVER, execution_id=execution.id, kernel=execution.kernel)
        ]
        payloads = []
        if accept:
            entries.insert(0, execution.entry())
            payloads.append(Payload.of(execution.source.encode()))
        try:
            self._journal.append(entries, payloads)
        except HistoryUnavailable as error:
            self._on_loop(_settle, sent, error)
            return False
        self._on_loop(self._sent, execution, sent, at)
        return True

    def _sent(self, execution: LiveExecution, sent: asyncio.Future[None], at: str) -> None:
        if not execution.finished.done():
            execution.status, execution.started_at = "running", at
        _settle(sent)
        _settle(execution.accepted)
        self._tell_of(execution)

    def _ended(self, execution: LiveExecution, ended: Ended) -> None:
        """Record the end of a run; in the drain's thread."""
        if ended.exits:
            self._on_loop(self._exits, execution, ended)
        else:
            self._recorder.ended(execution, ended)

    def _exits(self, execution: LiveExecution, ended: Ended) -> None:
        """Wait for the end of a kernel that its code asked to exit, and only then tell."""
        reason = "The code ended the kernel (exit); its variables are gone."
        execution.ending = ("kernel_died", reason)

        async def wait() -> None:
            assert execution.held_by is not None
            gone = execution.held_by.connection.disconnected
            await asyncio.wait({gone}, timeout=self.bounds.interrupt_grace)
            if not gone.done():
                await self._end_kernel(Death("died", reason), execution.ending, SERVER)
            await self._loop.run_in_executor(self._disk, self._recorder.ended, execution, ended)

        self._own(wait(), f"exit {execution.id}")

    def _finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Show an execution as finished; its final status is on disk."""
        execution.status = record.status
        self._live.pop(execution.id, None)
        self._stir()
        execution.finished.set_result(record)
        self._tell_of(execution)

    def _tell_of(self, execution: LiveExecution) -> None:
        execution.tell()
        self._publish("execution", self, execution.id, status=execution.status, seq=execution.seq)

    def _changed(self, execution_id: ExecutionId) -> None:
        self._publish("execution", self, execution_id)

    # -- interrupts and timeouts -------------------------------------------------------------------

    def _time_out(self, execution: LiveExecution) -> None:
        if execution is self._running and not execution.finished.done():
            reason = f"It was interrupted after its timeout of {execution.timeout:g} seconds."
            self._own(
                self._interrupt(execution, ("timed_out", reason), "timed_out", SERVER),
                f"timeout {execution.id}",
            )

    async def _interrupt(
        self,
        execution: LiveExecution,
        ending: tuple[Status, str],
        reason: Literal["asked", "cancelled", "timed_out", "server_stopping"],
        by: By,
    ) -> None:
        """Interrupt what runs; whether that is obeyed is looked at later."""
        kernel = execution.held_by
        assert kernel is not None
        execution.ending = execution.ending or ending
        await self._write_entry(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution is self._running and kernel is self._incarnations.current:
            await kernel.interrupt()
            self._own(self._look_after(execution, kernel), f"interrupt {execution.id}")

    async def _look_after(self, execution: LiveExecution, kernel: ScratchKernel) -> None:
        """Say so if an interrupt is ignored, and do what the limits say then."""
        await asyncio.wait({execution.finished}, timeout=self.bounds.interrupt_grace)
        if execution.finished.done() or kernel is not self._incarnations.current:
            return
        execution.interrupt_ignored = True
        execution.tell()
        assert execution.ending is not None
        if self.bounds.restart_if_interrupt_ignored:
            why = "The code ignored the interrupt, so its kernel was replaced."
            await self._end_kernel(Death("interrupt_ignored", why), execution.ending, SERVER)
        elif execution.ending[0] == "timed_out":
            kernel.connection.abandon(execution.ending[1])

    # -- the kernel --------------------------------------------------------------------------------

    async def _born(self, kernel: ScratchKernel) -> None:
        """Run the init source in a kernel that has not run anything."""
        self._publish("kernel", self)
        kernel.connection.on_late = self._recorder.late
        if self._init_source is None:
            return
        execution = self._new_execution(
            self._init_source,
            by=SERVER,
            init=True,
            timeout=self.bounds.timeout,
            queue_timeout=None,
            max_output_bytes=self.bounds.max_output_bytes,
            idempotency_key=None,
            body_sha256=None,
        )
        await self._run(execution, kernel, accept=True)
        record = execution.finished.result()
        if record.status != "ok":
            raise InitFailed(
                f"The session's init_source ended with status {record.status}.",
                session_id=self.id,
                execution_id=execution.id,
                error=record.error,
                reason=record.reason,
            )

    async def _died(self, kernel: ScratchKernel, death: Death) -> None:
        """Take note that the kernel ended by itself, or by somebody else's doing."""
        self._log.warning("%s: %s", self.id, death.message)
        ending: tuple[Status, str] = ("kernel_died", death.message)
        await self._end_kernel(death, ending, SERVER)

    async def _end_kernel(self, death: Death, ending: tuple[Status, str], by: By) -> None:
        """Let the kernel go; what runs in it ends as `ending` says unless somebody said before."""
        running = self._running
        kernel = await self._incarnations.end(death, by)
        if kernel is None:
            return
        if running is not None and running.held_by is kernel:
            running.ending = running.ending or ending
        kernel.connection.abandon(death.message)
        self._publish("kernel", self)
        self._own(kernel.shut_down(), f"shut down {kernel.id}")

    def _stir(self) -> None:
        """Note that something happens here."""
        self._last_activity_at = timestamp()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _rest(self) -> None:
        """Have the kernel culled if nothing happens for long."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self.bounds.idle_timeout and not self._live and not self._closing:
            self._idle_timer = self._loop.call_later(self.bounds.idle_timeout, self._cull)

    def _cull(self) -> None:
        if not self._live and self.has_kernel:
            why = f"The kernel was shut down after {self.bounds.idle_timeout:g} idle seconds."
            self._own(
                self._end_kernel(Death("culled", why), ("interrupted", why), SERVER),
                f"cull {self.id}",
            )

    # -- helpers -----------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closing:
            raise SessionClosed("The session is closed; open another.", session_id=self.id)

    async def _write_entry(self, entry: Entry) -> None:
        await self._write(partial(self._journal.append, [entry]))

    async def _note(self, entry: Entry) -> None:
        await self._write(partial(self._recorder.note, [entry]))

    async def _write(self, write: Callable[[], Any]) -> None:
        await self._loop.run_in_executor(self._disk, write)

    def _own(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Start a task that this session waits for when it closes."""
        task = self._loop.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._disown)

    def _disown(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("%s: %s failed", self.id, task.get_name(), exc_info=task.exception())

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)


def _settle(future: asyncio.Future[None], error: Exception | None = None) -> None:
    """Set a future's result, or its exception, if it has none."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
