"""The way of an execution through a session's kernel: accepted, its turn, dispatched, finished.

A session has a queue of its own, and its first asks for its turn on the kernel, which other
sessions and people may be using. What happens there is told by `in_kernel.py`. All of this runs on
the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any

from ulid import ULID

from ..errors import AgentExecError, HistoryUnavailable
from ..journal.session import SessionJournal
from ..kernels.kernel import Death, Kernel, KernelSource
from ..kernels.turns import Asker, Turn, Turns
from ..models import Session, WaitingFor
from ..records import SERVER, By, ExecutionRecord, timestamp
from ..tasks import Tasks, first_of, settle
from ..types import ExecutionId, Status
from .attached import AttachedNotebook
from .bounds import Bounds
from .execution import LiveExecution
from .in_kernel import Ending, InKernel, Told, ahead_of
from .incarnations import Incarnations
from .recorder import Recorder

KERNEL = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
"""What is waited for while there is no kernel, or nobody knows what it does."""


class Lane:
    """Brings the executions of one session through its kernel, one after the other.

    Parameters
    ----------
    born
        Called with each kernel before anything else may run in it.
    died
        Called after a kernel ended by itself, or by somebody else's doing.
    changed
        Called when a live execution changed.
    late
        Called when outputs of a finished execution changed.
    kernel_changed
        Called when the kernel is gone.
    person_ran
        Called when it is recorded that a person ran something in the kernel.
    stirred
        Called whenever something begins or ends here.
    tasks
        Of the session, which waits for them when it closes.
    leftovers
        Of the server: what may go on after the session has closed.
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
        changed: Callable[[LiveExecution], None],
        late: Callable[[ExecutionId], None],
        kernel_changed: Callable[[], None],
        person_ran: Callable[[], None],
        stirred: Callable[[], None],
        tasks: Tasks,
        leftovers: Tasks,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._session = session
        self._journal = journal
        self._bounds = bounds
        self._changed = changed
        self._stirred = stirred
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._queue = Turns()
        self.recorder = Recorder(
            journal,
            finished=self._finished,
            late=late,
            person_ran=person_ran,
            disk=disk,
            log=log,
        )
        self.incarnations = Incarnations(
            kernels,
            notebook=kernels if isinstance(kernels, AttachedNotebook) else None,
            write=self.recorder.write,
            note=self.recorder.record,
            born=born,
            died=died,
        )
        self.in_kernel = InKernel(
            journal,
            self.incarnations,
            self.recorder,
            bounds=bounds,
            told=Told(
                changed=self._tell_of,
                waiting=self.look_at_waiting,
                shut_down=self._shut_down,
                gone=kernel_changed,
            ),
            tasks=tasks,
            leftovers=leftovers,
            disk=disk,
        )
        self.accepted = 0
        """How many executions were accepted; the last one's `seq`."""
        self.live: dict[ExecutionId, LiveExecution] = {}
        """Those that are not finished, in order."""

    @property
    def running(self) -> LiveExecution | None:
        """What was sent to the kernel and has not ended."""
        return self.in_kernel.execution

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return sum(execution is not self.running for execution in self.live.values())

    def take(self, source: str, *, by: By, **asked: Any) -> LiveExecution:
        """Take an execution on its way; its `accepted` tells when it is on disk."""
        execution = self._new_execution(source, by=by, **asked)
        place = self._queue.ask(self._asker(execution))
        execution.ahead = lambda: self._queue.ahead_of(place) or KERNEL
        kernel = self.incarnations.ready if place.done() else None
        turn = self._turn_at_once(execution, kernel)
        if kernel is not None and turn is not None:
            sent = self.in_kernel.send(execution, kernel, turn, accept=True)
            carry = self._carry_at_once(execution, kernel, sent, place, turn)
        else:
            carry = self._carry(execution, place)
        self._tasks.start(carry, f"execution {execution.id}")
        return execution

    async def run_first(self, source: str, kernel: Kernel, by: By) -> ExecutionRecord:
        """Run a session's init source, before anything else of the session's, in a kernel."""
        execution = self._new_execution(
            source,
            by=by,
            init=True,
            timeout=self._bounds.timeout,
            queue_timeout=self._bounds.queue_timeout,
            max_output_bytes=self._bounds.max_output_bytes,
            idempotency_key=None,
            body_sha256=None,
            placement=None,
            place=None,
        )
        turn = self._turn_at_once(execution, kernel)
        try:
            if turn is not None:
                sent = self.in_kernel.send(execution, kernel, turn, accept=True)
                await self.in_kernel.follow(execution, kernel, sent, turn)
            else:
                await self._accept(execution)
        except HistoryUnavailable as error:
            self._forget(execution, error)
            raise
        if turn is None:
            try:
                await self._carry_in(execution, kernel)
            except HistoryUnavailable as error:
                self.give_up(execution, "cancelled", f"It was not run: {error.message}")
            if not execution.finished.done():
                self.give_up(execution, "cancelled", "Its kernel ended before it ran.")
                await self.recorder.unrun(execution)
        return await execution.finished

    def give_up(self, execution: LiveExecution, status: Status, reason: str) -> None:
        """End an execution that was not sent yet."""
        if execution is not self.running and not execution.given_up.done():
            execution.ending = (status, reason)
            execution.given_up.set_result(None)

    def look_at_waiting(self) -> None:
        """Tell of executions that wait for something else now."""
        for execution in list(self.live.values()):
            waiting_for = execution.waiting_for
            if waiting_for != execution.told_waiting_for:
                execution.told_waiting_for = waiting_for
                self._tell_of(execution)

    def _shut_down(self, message: str) -> None:
        """Take back what waits: the person who shut the kernel down wants no more of it now."""
        for execution in list(self.live.values()):
            self.give_up(execution, "cancelled", f"It was not run. {message}")

    # -- on its way --------------------------------------------------------------------------------

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
            head=lambda: self._journal.head,
            **asked,
        )
        self.live[execution.id] = execution
        self.recorder.own.add(execution.id)
        self._stirred()
        return execution

    async def _carry(self, execution: LiveExecution, place: Turn) -> None:
        """Bring an execution from its acceptance to its end."""
        kernel = await self.incarnations.confirmed() if place.done() else None
        turn = self._turn_at_once(execution, kernel)
        if kernel is not None and turn is not None:
            sent = self.in_kernel.send(execution, kernel, turn, accept=True)
            await self._carry_at_once(execution, kernel, sent, place, turn)
            return
        try:
            await self._accept(execution)
        except HistoryUnavailable as error:
            self._queue.leave(place)
            self._forget(execution, error)
            return
        timer = self._call_later(execution.queue_timeout, self._waited_too_long, execution)
        try:
            if await self._until(place, execution):
                await self._carry_in(execution)
        except AgentExecError as error:
            self.give_up(execution, "cancelled", f"It was not run: {error.message}")
        finally:
            timer.cancel()
            if execution.given_up.done() and not execution.finished.done():
                await self.recorder.unrun(execution)
            self._left(place)

    async def _carry_at_once(
        self,
        execution: LiveExecution,
        kernel: Kernel,
        sent: asyncio.Future[None],
        place: Turn,
        turn: Turn,
    ) -> None:
        """Stay with an execution whose acceptance goes to disk together with its dispatch."""
        timer = self._call_later(execution.queue_timeout, self._waited_too_long, execution)
        try:
            await self.in_kernel.follow(execution, kernel, sent, turn)
        except HistoryUnavailable as error:
            self._forget(execution, error)
        finally:
            timer.cancel()
            self._left(place)

    async def _carry_in(self, execution: LiveExecution, only: Kernel | None = None) -> None:
        """Bring an execution through the kernel, after all that others have queued before.

        Parameters
        ----------
        only
            The one kernel that it is for; by default it goes on with the next when one ends.
        """
        while not execution.given_up.done():
            execution.ahead = lambda: KERNEL
            kernel = only or await self._kernel_for(execution)
            if kernel is None:
                return
            turn = kernel.turns.ask(self._asker(execution))
            execution.ahead = partial(ahead_of, kernel, turn)
            self.look_at_waiting()
            granted = await self._until(turn, execution)
            is_right = only is not None or await self.incarnations.confirmed() is kernel
            if granted and not turn.cancelled() and is_right and not execution.given_up.done():
                sent = self.in_kernel.send(execution, kernel, turn, accept=False)
                await self.in_kernel.follow(execution, kernel, sent, turn)
                return
            kernel.turns.leave(turn)
            if only is not None:
                return
            if turn.cancelled() or kernel.is_ending:
                await self.incarnations.end_of(kernel)

    async def _kernel_for(self, execution: LiveExecution) -> Kernel | None:
        """Return the kernel, a new one if there is none; None if it is given up meanwhile."""
        fresh = asyncio.create_task(self.incarnations.fresh(), name=f"kernel for {execution.id}")
        await first_of(fresh, execution.given_up)
        if fresh.done():
            return fresh.result()
        self._tasks.start(_ignore(fresh), fresh.get_name())
        return None

    def _turn_at_once(self, execution: LiveExecution, kernel: Kernel | None) -> Turn | None:
        """Return a turn on a kernel that nobody uses; None if it has to be waited for."""
        if kernel is None or not kernel.turns.free:
            return None
        turn = kernel.turns.ask(self._asker(execution))
        if turn.done() and not turn.cancelled():
            return turn
        kernel.turns.leave(turn)
        return None

    async def _accept(self, execution: LiveExecution) -> None:
        """Have it on disk before anybody is told."""
        entry, source = execution.acceptance()
        await self.recorder.write(entry, [source])
        settle(execution.accepted)
        self._tell_of(execution)

    def _forget(self, execution: LiveExecution, error: HistoryUnavailable) -> None:
        """Drop an execution that could not be recorded; whoever asked for it is told."""
        self.live.pop(execution.id, None)
        if execution.seq == self.accepted:
            self.accepted -= 1
        settle(execution.accepted, error)
        execution.tell()

    async def _until(self, turn: Turn, execution: LiveExecution) -> bool:
        """Wait for a turn; False when the execution was given up instead."""
        await first_of(turn, execution.given_up)
        return not execution.given_up.done()

    def _waited_too_long(self, execution: LiveExecution) -> None:
        """End what has not begun; if it was sent already, the kernel's queue has it."""
        if execution.begun.done() or execution.finished.done():
            return
        reason = f"It did not get its turn within {execution.queue_timeout:g} seconds."
        if execution is self.running:
            ending: Ending = ("timed_out", reason)
            self._tasks.start(
                self.in_kernel.interrupt(execution, ending, "timed_out", SERVER),
                f"timeout {execution.id}",
            )
        else:
            self.give_up(execution, "timed_out", reason)

    def _left(self, place: Turn) -> None:
        """Let the session's next go on."""
        self._queue.leave(place)
        self._stirred()
        self.look_at_waiting()

    def _finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Show an execution as finished; its final status is on disk."""
        execution.status = record.status
        self.live.pop(execution.id, None)
        self._stirred()
        execution.finished.set_result(record)
        self._tell_of(execution)

    def _tell_of(self, execution: LiveExecution) -> None:
        execution.tell()
        self._changed(execution)

    # -- helpers -----------------------------------------------------------------------------------

    def _asker(self, execution: LiveExecution) -> Asker:
        return Asker(self._session.agent.name, execution.id)

    def _call_later(
        self, delay: float | None, call: Callable[[LiveExecution], None], execution: LiveExecution
    ) -> asyncio.TimerHandle:
        """Call in `delay` seconds, or never if there is no bound."""
        timer = self._loop.call_later(delay or 0, call, execution)
        if delay is None:
            timer.cancel()
        return timer


async def _ignore(fresh: asyncio.Future[Kernel]) -> None:
    """Stay with the start of a kernel that nobody waits for any more."""
    with suppress(AgentExecError):
        await fresh
