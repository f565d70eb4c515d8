"""The way of an execution through a session's kernel: accepted, its turn, dispatched, finished.

All of this runs on the event loop, but for `_in_drain_dispatch` and `_ended`, which the kernel's
drain calls in its own thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Literal

from ulid import ULID

from ..errors import AgentExecError, HistoryUnavailable
from ..journal.session import SessionJournal
from ..kernels.connection import Ended, Run
from ..kernels.kernel import Death, Kernel, KernelSource
from ..kernels.turns import Turn, Turns
from ..models import ExecutionKernel, Session
from ..records import (
    SERVER,
    By,
    Dispatched,
    Entry,
    ExecutionRecord,
    Interrupted,
    timestamp,
)
from ..tasks import Tasks
from ..types import ExecutionId, Status
from .bounds import Bounds
from .execution import LiveExecution
from .incarnations import Incarnations
from .recorder import Recorder


class Lane:
    """Brings the executions of one session through its kernel, one after the other.

    Parameters
    ----------
    born
        Called with each kernel before anything else may run in it.
    died
        Called after a kernel ended by itself, or by somebody else's doing.
    changed
        Called when an execution changed: its id, and the execution itself while it is live.
    kernel_changed
        Called when the kernel is gone.
    stirred
        Called whenever something begins or ends here.
    tasks
        Of the session, which waits for them when it closes.
    disk
        Where blocking writes go that have no thread of their own.
    """

    def __init__(
        self,
        session: Session,
        journal: SessionJournal,
        kernels: KernelSource,
        *,
        bounds: Bounds,
        born: Callable[[Kernel], Awaitable[None]],
        died: Callable[[Kernel, Death], Awaitable[None]],
        changed: Callable[[ExecutionId, LiveExecution | None], None],
        kernel_changed: Callable[[], None],
        stirred: Callable[[], None],
        tasks: Tasks,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._session = session
        self._journal = journal
        self._bounds = bounds
        self._changed = changed
        self._kernel_changed = kernel_changed
        self._stirred = stirred
        self._tasks = tasks
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._queue = Turns()
        self.recorder = Recorder(
            journal,
            finished=self._finished,
            changed=lambda id: changed(id, None),
            disk=disk,
            log=log,
        )
        self.incarnations = Incarnations(
            kernels, write=self.write, note=self.note, born=born, died=died
        )
        self.accepted = 0
        """How many executions were accepted; the last one's `seq`."""
        self.running: LiveExecution | None = None
        self.live: dict[ExecutionId, LiveExecution] = {}
        """Those that are not finished, in order."""

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return len(self._queue)

    def take(self, source: str, *, by: By, **asked: Any) -> LiveExecution:
        """Take an execution on its way; its `accepted` tells when it is on disk."""
        execution = self._new_execution(source, by=by, **asked)
        place = self._queue.ask()
        kernel = self.incarnations.ready
        if place.done() and kernel is not None and kernel.turns.free:
            turn = kernel.turns.ask()
            sent = self._send(execution, kernel, accept=True)
            carry = self._carry_at_once(execution, kernel, sent, place, turn)
        else:
            carry = self._carry(execution, place)
        self._tasks.start(carry, f"execution {execution.id}")
        return execution

    async def run_first(self, source: str, kernel: Kernel, by: By) -> ExecutionRecord:
        """Run a session's init source in a kernel that nothing else has run in."""
        execution = self._new_execution(
            source,
            by=by,
            init=True,
            timeout=self._bounds.timeout,
            queue_timeout=None,
            max_output_bytes=self._bounds.max_output_bytes,
            idempotency_key=None,
            body_sha256=None,
        )
        try:
            await self._follow(execution, kernel, self._send(execution, kernel, accept=True))
        except HistoryUnavailable as error:
            self._forget(execution, error)
            raise
        return execution.finished.result()

    def give_up(self, execution: LiveExecution, status: Status, reason: str) -> None:
        """End an execution that does not run yet."""
        if execution is not self.running and not execution.given_up.done():
            execution.ending = (status, reason)
            execution.given_up.set_result(None)

    async def end_kernel(self, death: Death, ending: tuple[Status, str], by: By) -> None:
        """Let the kernel go; what runs in it ends as `ending` says unless somebody said before."""
        running = self.running
        kernel = await self.incarnations.end(death, by)
        if kernel is None:
            return
        if running is not None and running.held_by is kernel:
            running.ending = running.ending or ending
        kernel.connection.abandon(death.message)
        self._kernel_changed()
        self._tasks.start(kernel.let_go(), f"let go of {kernel.id}")

    def _new_execution(
        self, source: str, *, by: By, init: bool = False, **asked: Any
    ) -> LiveExecution:
        self.accepted += 1
        execution = LiveExecution(
            id=ExecutionId(f"x_{ULID()}"),
            session_id=self._session.id,
            seq=self.accepted,
            source=source,
            init=init,
            agent=self._session.agent,
            username=self._session.username,
            by=by,
            accepted_at=timestamp(),
            **asked,
        )
        self.live[execution.id] = execution
        self._stirred()
        return execution

    async def _carry_at_once(
        self,
        execution: LiveExecution,
        kernel: Kernel,
        sent: asyncio.Future[None],
        place: Turn,
        turn: Turn,
    ) -> None:
        """Stay with an execution whose acceptance goes to disk together with its dispatch."""
        try:
            await self._follow(execution, kernel, sent)
        except HistoryUnavailable as error:
            self._forget(execution, error)
        finally:
            kernel.turns.leave(turn)
            self._queue.leave(place)
            self._stirred()

    async def _carry(self, execution: LiveExecution, place: Turn) -> None:
        """Bring an execution from its acceptance to its end."""
        try:
            await self._accept(execution)
        except HistoryUnavailable as error:
            self._queue.leave(place)
            self._forget(execution, error)
            return
        try:
            if await self._wait_for(place, execution):
                await self._carry_in(execution, await self.incarnations.fresh())
        except AgentExecError as error:
            self.running = None
            self.give_up(execution, "cancelled", f"It was not run: {error.message}")
        finally:
            if execution.given_up.done():
                await self._finish_unrun(execution)
            self._queue.leave(place)
            self._stirred()

    async def _carry_in(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Bring an execution through a kernel that others may be using."""
        turn = kernel.turns.ask()
        try:
            if await self._wait_for(turn, execution):
                await self._follow(execution, kernel, self._send(execution, kernel, accept=False))
        finally:
            kernel.turns.leave(turn)

    async def _accept(self, execution: LiveExecution) -> None:
        """Have it on disk before anybody is told."""
        entry, source = execution.acceptance()
        await self._write(partial(self._journal.append, [entry], [source]))
        _settle(execution.accepted)
        self._tell_of(execution)

    def _forget(self, execution: LiveExecution, error: HistoryUnavailable) -> None:
        """Drop an execution that could not be recorded; whoever asked for it is told."""
        self.live.pop(execution.id, None)
        if execution.seq == self.accepted:
            self.accepted -= 1
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
            self.give_up(execution, "timed_out", reason)
        return not execution.given_up.done()

    async def _finish_unrun(self, execution: LiveExecution) -> None:
        await self._loop.run_in_executor(self._disk, self.recorder.unrun, execution)
        await execution.finished

    def _send(
        self, execution: LiveExecution, kernel: Kernel, *, accept: bool
    ) -> asyncio.Future[None]:
        """Hand an execution to the kernel's drain; what comes back tells when it was sent."""
        untold = None if execution.init else self.incarnations.untold
        execution.kernel = ExecutionKernel(
            id=kernel.id,
            name=kernel.name,
            incarnation=self.incarnations.number,
            restarted=untold is not None,
            reason=untold,
        )
        sent: asyncio.Future[None] = self._loop.create_future()
        execution.held_by = kernel
        execution.spill = self._journal.new_text_spill(self._bounds.max_text_bytes)
        execution.run = Run(
            id=execution.id,
            source=execution.source,
            store_history=not execution.init,
            max_output_bytes=execution.max_output_bytes,
            sink=execution.spill,
            before=partial(self._in_drain_dispatch, execution, accept, sent),
            sent=partial(self._on_loop, self._sent, execution, sent),
            after=partial(self._ended, execution),
            changed=execution.tell if execution.watchers else None,
        )
        self.running = execution
        kernel.connection.start(execution.run)
        return sent

    async def _follow(
        self, execution: LiveExecution, kernel: Kernel, sent: asyncio.Future[None]
    ) -> None:
        """Stay with an execution until it is recorded as finished and the kernel is free."""
        timer = self._loop.call_later(execution.timeout or 0, self._time_out, execution)
        try:
            await sent
            if not execution.init:
                self.incarnations.untold = None
            await execution.finished
            await kernel.connection.free()
        finally:
            timer.cancel()
            self.running = None

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
            entry, source = execution.acceptance()
            entries.insert(0, entry)
            payloads.append(source)
        try:
            self._journal.append(entries, payloads)
        except HistoryUnavailable as error:
            self._on_loop(_settle, sent, error)
            return False
        execution.started_at = at
        return True

    def _sent(self, execution: LiveExecution, sent: asyncio.Future[None]) -> None:
        if not execution.finished.done():
            execution.status = "running"
        _settle(sent)
        _settle(execution.accepted)
        self._tell_of(execution)

    def _ended(self, execution: LiveExecution, ended: Ended) -> None:
        """Record the end of a run; in the drain's thread."""
        if ended.exits:
            self._on_loop(self._exits, execution, ended)
        else:
            self.recorder.ended(execution, ended)

    def _exits(self, execution: LiveExecution, ended: Ended) -> None:
        """Wait for the end of a kernel that its code asked to exit, and only then tell."""
        reason = "The code ended the kernel (exit); its variables are gone."
        execution.ending = ("kernel_died", reason)

        async def wait() -> None:
            assert execution.held_by is not None
            gone = execution.held_by.connection.disconnected
            await asyncio.wait({gone}, timeout=self._bounds.interrupt_grace)
            if not gone.done():
                await self.end_kernel(Death("died", reason), ("kernel_died", reason), SERVER)
            await self._loop.run_in_executor(self._disk, self.recorder.ended, execution, ended)

        self._tasks.start(wait(), f"exit {execution.id}")

    def _finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Show an execution as finished; its final status is on disk."""
        execution.status = record.status
        self.live.pop(execution.id, None)
        self._stirred()
        execution.finished.set_result(record)
        self._tell_of(execution)

    def _tell_of(self, execution: LiveExecution) -> None:
        execution.tell()
        self._changed(execution.id, execution)

    def _time_out(self, execution: LiveExecution) -> None:
        if execution is self.running and not execution.finished.done():
            reason = f"It was interrupted after its timeout of {execution.timeout:g} seconds."
            self._tasks.start(
                self.interrupt(execution, ("timed_out", reason), "timed_out", SERVER),
                f"timeout {execution.id}",
            )

    async def interrupt(
        self,
        execution: LiveExecution,
        ending: tuple[Status, str],
        reason: Literal["asked", "cancelled", "timed_out", "closing"],
        by: By,
    ) -> None:
        """Interrupt what runs; whether that is obeyed is looked at later."""
        kernel = execution.held_by
        assert kernel is not None
        execution.ending = execution.ending or ending
        await self.write(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution is self.running and kernel is self.incarnations.current:
            await kernel.interrupt()
            self._tasks.start(self._look_after(execution, kernel), f"interrupt {execution.id}")

    async def _look_after(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Say so if an interrupt is ignored, and do what the limits say then."""
        await asyncio.wait({execution.finished}, timeout=self._bounds.interrupt_grace)
        if execution.finished.done() or kernel is not self.incarnations.current:
            return
        execution.interrupt_ignored = True
        execution.tell()
        assert execution.ending is not None
        if self._bounds.restart_if_interrupt_ignored:
            why = "The code ignored the interrupt, so its kernel was replaced."
            await self.end_kernel(Death("interrupt_ignored", why), execution.ending, SERVER)
        elif execution.ending[0] == "timed_out":
            kernel.connection.abandon(execution.ending[1])

    async def write(self, entry: Entry) -> None:
        """Write an entry about what is to happen; HistoryUnavailable if that cannot be."""
        await self._write(partial(self._journal.append, [entry]))

    async def note(self, entry: Entry) -> None:
        """Write an entry about what has happened; kept if that cannot be written now."""
        await self._write(partial(self.recorder.note, [entry]))

    async def _write(self, write: Callable[[], Any]) -> None:
        await self._loop.run_in_executor(self._disk, write)

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
