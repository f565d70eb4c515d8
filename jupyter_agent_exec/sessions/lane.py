"""The way of an execution through a session's kernel: accepted, its turn, dispatched, finished.

A session has a queue of its own, and its first asks for its turn on the kernel, which other
sessions and people may be using. All of this runs on the event loop, but for `_ended`, which the
kernel's drain calls in its own thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any

from ulid import ULID

from ..errors import AgentExecError, HistoryUnavailable
from ..journal.session import SessionJournal
from ..kernels.kernel import Death, Kernel, KernelSource
from ..kernels.people import PersonExecution
from ..kernels.run import Ended
from ..kernels.turns import Asker, Turn, Turns
from ..models import ExecutionKernel, Session, WaitingFor
from ..records import SERVER, By, Entry, ExecutionRecord, Payload, timestamp
from ..tasks import Tasks, first_of
from ..types import ExecutionId, RecordPeople, Status
from .attached import AttachedNotebook
from .bounds import Bounds
from .execution import LiveExecution
from .incarnations import Incarnations
from .interrupts import Interrupts, Reason
from .recorder import Recorder
from .sending import Sender, settle

KERNEL = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
"""What is waited for while there is no kernel, or nobody knows what it does."""

Ending = tuple[Status, str]
"""Status and reason of an execution."""


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
        self._kernel_changed = kernel_changed
        self._stirred = stirred
        self._tasks = tasks
        self._leftovers = leftovers
        self._disk = disk
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
            write=self.write,
            note=self.note,
            born=born,
            died=died,
        )
        self._interrupts = Interrupts(
            bounds, write=self.write, end_kernel=self.end_kernel, tasks=tasks
        )
        self._sender = Sender(
            journal, bounds, sent=self._tell_of, begun=self._begun, ended=self._ended
        )
        self._hear_person: Callable[[PersonExecution], None] | None = None
        self.accepted = 0
        """How many executions were accepted; the last one's `seq`."""
        self.running: LiveExecution | None = None
        """What was sent to the kernel and has not ended."""
        self.live: dict[ExecutionId, LiveExecution] = {}
        """Those that are not finished, in order."""

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
            sent = self._send(execution, kernel, turn, accept=True)
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
                sent = self._send(execution, kernel, turn, accept=True)
                await self._follow(execution, kernel, sent, turn)
            else:
                await self._accept(execution)
        except HistoryUnavailable as error:
            self._forget(execution, error)
            raise
        if turn is None:
            await self._carry_in(execution, kernel)
            if not execution.finished.done():
                self.give_up(execution, "cancelled", "Its kernel ended before it ran.")
                await self._finish_unrun(execution)
        return await execution.finished

    def give_up(self, execution: LiveExecution, status: Status, reason: str) -> None:
        """End an execution that was not sent yet."""
        if execution is not self.running and not execution.given_up.done():
            execution.ending = (status, reason)
            execution.given_up.set_result(None)

    async def interrupt(
        self, execution: LiveExecution, ending: Ending, reason: Reason, by: By
    ) -> None:
        """Interrupt what was sent; whether that is obeyed is looked at later."""
        await self._interrupts.interrupt(execution, ending, reason, by)

    async def end_kernel(self, death: Death, ending: Ending, by: By) -> None:
        """Let the kernel go; what runs in it ends as `ending` says unless somebody said before."""
        running = self.running
        kernel = await self.incarnations.end(death, by)
        if kernel is None:
            return
        if running is not None and running.held_by is kernel:
            running.ending = running.ending or ending
            kernel.connection.abandon(death.message)
            settle(running.parted)
        if death.reason == "shut_down" and not kernel.owned:
            for execution in list(self.live.values()):
                self.give_up(execution, "cancelled", f"It was not run. {death.message}")
        self._kernel_changed()
        self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")

    async def leave_kernel(self, ending: Ending, by: By) -> None:
        """Let the kernel go because the session closes; one that others use goes on."""
        running, kernel = self.running, self.incarnations.current
        if running is not None and running.is_behind and kernel is running.held_by:
            running.left_behind = True
            running.ending = running.ending or ("cancelled", ending[1])
            await self._finish_unrun(running)
            self.incarnations.leave()
            self._leftovers.start(self._clear_away(running), f"clear away {running.id}")
        elif kernel is not None and not kernel.owned:
            self.incarnations.leave()
            if running is not None:
                running.ending = running.ending or ending
                kernel.connection.abandon(ending[1])
                settle(running.parted)
            self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")
        else:
            await self.end_kernel(Death("shut_down", ending[1]), ending, by)

    def listen(self, kernel: Kernel, record_people: RecordPeople) -> None:
        """Have all recorded that the kernel tells beside what is asked of it."""
        connection = kernel.connection
        connection.on_late.add(self.recorder.late)
        if not kernel.owned:
            kernel.turns.on_change.add(self._turns_changed)
        if record_people != "off":
            self._hear_person = partial(self.recorder.person, kernel.id)
            connection.on_person.add(self._hear_person)
        if record_people == "outputs":
            connection.person_outputs_bytes = self._bounds.max_output_bytes

    def look_at_waiting(self) -> None:
        """Tell of executions that wait for something else now."""
        for execution in self.live.values():
            waiting_for = execution.waiting_for
            if waiting_for != execution.told_waiting_for:
                execution.told_waiting_for = waiting_for
                self._tell_of(execution)

    async def write(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what is to happen; HistoryUnavailable if that cannot be."""
        await self._write(partial(self._journal.append, [entry], payloads))

    async def note(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what has happened; kept if that cannot be written now."""
        await self._write(partial(self.recorder.note, [entry], payloads))

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
            sent = self._send(execution, kernel, turn, accept=True)
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
            self.running = None
            self.give_up(execution, "cancelled", f"It was not run: {error.message}")
        finally:
            timer.cancel()
            if execution.given_up.done() and not execution.finished.done():
                await self._finish_unrun(execution)
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
            await self._follow(execution, kernel, sent, turn)
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
            execution.ahead = partial(_ahead, kernel, turn)
            self.look_at_waiting()
            granted = await self._until(turn, execution)
            is_right = only is not None or await self.incarnations.confirmed() is kernel
            if granted and not turn.cancelled() and is_right and not execution.given_up.done():
                sent = self._send(execution, kernel, turn, accept=False)
                await self._follow(execution, kernel, sent, turn)
                return
            kernel.turns.leave(turn)
            if only is not None:
                return
            if turn.cancelled():
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
        await self._write(partial(self._journal.append, [entry], [source]))
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
                self.interrupt(execution, ending, "timed_out", SERVER), f"timeout {execution.id}"
            )
        else:
            self.give_up(execution, "timed_out", reason)

    async def _finish_unrun(self, execution: LiveExecution) -> None:
        await self._loop.run_in_executor(self._disk, self.recorder.unrun, execution)
        await execution.finished

    def _left(self, place: Turn) -> None:
        """Let the session's next go on."""
        self._queue.leave(place)
        self._stirred()
        self.look_at_waiting()

    # -- in the kernel -----------------------------------------------------------------------------

    def _send(
        self, execution: LiveExecution, kernel: Kernel, turn: Turn, *, accept: bool
    ) -> asyncio.Future[None]:
        """Hand an execution to the kernel's drain; what comes back tells when it was sent."""
        untold = None if execution.init else self.incarnations.untold
        told = ExecutionKernel(
            id=kernel.id,
            name=kernel.name,
            incarnation=self.incarnations.number,
            restarted=untold is not None,
            reason=untold,
        )
        self.running = execution
        execution.ahead = None if kernel.owned else partial(_ahead, kernel, turn, execution)
        execution.turn = turn
        return self._sender.send(execution, kernel, told, accept=accept)

    async def _follow(
        self, execution: LiveExecution, kernel: Kernel, sent: asyncio.Future[None], turn: Turn
    ) -> None:
        """Stay with an execution until it is recorded as finished and the kernel is free."""
        timer = self._loop.call_later(execution.timeout or 0, self._time_out, execution)
        if not kernel.owned:
            timer.cancel()  # it begins to count when the kernel takes the execution up
        try:
            await sent
            if not execution.init:
                self.incarnations.untold = None
            await execution.finished
            if kernel.owned:
                await kernel.connection.free()
            else:  # others' sessions may keep the connection open when this one lets go
                free = asyncio.create_task(kernel.connection.free(), name=f"end of {execution.id}")
                await first_of(free, execution.parted)
                free.cancel()
        finally:
            timer.cancel()
            self.running = None
            if not execution.left_behind:
                kernel.turns.leave(turn)

    def _begun(self, execution: LiveExecution) -> None:
        """Count the time from when a kernel that others use too took it up."""
        timer = self._call_later(execution.timeout, self._time_out, execution)
        execution.finished.add_done_callback(lambda _: timer.cancel())
        self._tell_of(execution)

    def _time_out(self, execution: LiveExecution) -> None:
        if execution is self.running:
            self._interrupts.time_out(execution)

    def _ended(self, execution: LiveExecution, ended: Ended) -> None:
        """Record the end of a run; in the drain's thread."""
        if execution.left_behind:
            return
        if ended.exits:
            self._on_loop(self._exits, execution, ended)
        else:
            self.recorder.ended(execution, ended)

    def _exits(self, execution: LiveExecution, ended: Ended) -> None:
        """Wait for the end of a kernel that its code asked to exit, and only then tell."""
        kernel = execution.held_by
        assert kernel is not None
        reason = "The code ended the kernel (exit); its variables are gone."
        execution.ending = ("kernel_died", reason)

        async def wait() -> None:
            gone = kernel.connection.disconnected
            await asyncio.wait({gone}, timeout=self._bounds.interrupt_grace)
            if not gone.done() and not kernel.owned:
                execution.ending = None  # it did not go
            elif not gone.done():
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
        self._changed(execution)

    async def _let_go(self, kernel: Kernel) -> None:
        await kernel.let_go()
        kernel.connection.on_late.remove(self.recorder.late)
        if self._hear_person is not None:
            kernel.connection.on_person.remove(self._hear_person)
        kernel.turns.on_change.remove(self._turns_changed)

    async def _clear_away(self, execution: LiveExecution) -> None:
        """Wait until what stands in the kernel's own queue begins, and interrupt it there."""
        kernel, run, turn = execution.held_by, execution.run, execution.turn
        assert kernel is not None
        assert run is not None
        assert turn is not None
        gone = kernel.connection.disconnected
        await first_of(execution.begun, gone)
        if kernel.connection.is_running(run):
            await kernel.interrupt()
        await kernel.connection.free()
        kernel.turns.leave(turn)
        await self._let_go(kernel)

    def _turns_changed(self, _: None) -> None:
        self.look_at_waiting()

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

    async def _write(self, write: Callable[[], Any]) -> None:
        await self._loop.run_in_executor(self._disk, write)

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)


def _ahead(kernel: Kernel, turn: Turn, execution: LiveExecution | None = None) -> WaitingFor | None:
    """Tell what an execution waits for that has asked for its turn, or was sent."""
    if execution is None:
        return kernel.turns.ahead_of(turn)
    return kernel.turns.person if execution.is_behind else None


async def _ignore(fresh: asyncio.Future[Kernel]) -> None:
    """Stay with the start of a kernel that nobody waits for any more."""
    with suppress(AgentExecError):
        await fresh
