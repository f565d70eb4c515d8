"""What a session has sent to its kernel: followed to its end, interrupted, and parted from.

All of this runs on the event loop, but for `_ended`, which the kernel's drain calls in its own
thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

from ..journal.session import SessionJournal
from ..kernels.execute_request import Ended
from ..kernels.kernel import Death, Kernel
from ..kernels.kernel_queue import Turn
from ..kernels.person_executions import PersonExecution
from ..models import ExecutionKernel, WaitingFor
from ..records import SERVER, By
from ..tasks import Tasks, first_of, settle
from ..types import RecordPeople, Status
from .dispatch import Sender
from .execution import LiveExecution
from .incarnations import Incarnations
from .inputs import Inputs
from .interrupts import Interrupts, Reason
from .limits import Bounds
from .recorder import Recorder
from .written_files import WrittenFiles

Ending = tuple[Status, str]
"""Status and reason of an execution."""


class Told(NamedTuple):
    """Who is told of what goes on in the kernel; all are called on the loop."""

    changed: Callable[[LiveExecution], None]
    """That an execution changed."""
    waiting: Callable[[], None]
    """That those that wait may wait for something else."""
    shut_down: Callable[[str], None]
    """That a person shut the kernel down, and in which words to say so."""
    gone: Callable[[], None]
    """That the kernel is gone."""


class InKernel:
    """What a session has sent to its kernel, one execution at a time.

    Parameters
    ----------
    allow_stdin
        Whether its code may ask for input.
    tasks
        Of the session, which waits for them when it closes.
    leftovers
        Of the server: what may go on after the session has closed.
    """

    def __init__(
        self,
        journal: SessionJournal,
        incarnations: Incarnations,
        recorder: Recorder,
        *,
        bounds: Bounds,
        told: Told,
        allow_stdin: bool,
        tasks: Tasks,
        leftovers: Tasks,
        disk: Executor,
    ) -> None:
        self._incarnations = incarnations
        self._recorder = recorder
        self._bounds = bounds
        self._told = told
        self._tasks = tasks
        self._leftovers = leftovers
        self._disk = disk
        self._loop = asyncio.get_running_loop()
        self.inputs = Inputs(journal, note=recorder.note, changed=told.changed)
        """What the code asks for while it runs."""
        self._interrupts = Interrupts(
            bounds,
            record=recorder.record,
            interrupting=self.inputs.withdraw,
            end_kernel=self.end_kernel,
            tasks=tasks,
        )
        self._sender = Sender(
            journal,
            bounds,
            sent=told.changed,
            begun=self._begun,
            ended=self._ended,
            asks=self.inputs.asked if allow_stdin else None,
        )
        self.files = WrittenFiles(
            recorder, told.changed, leave_out=journal.history_dir, tasks=tasks, disk=disk
        )
        """What executions wrote in the kernel's folder."""
        self._hear_person: Callable[[PersonExecution], None] | None = None
        self.execution: LiveExecution | None = None
        """What was sent and has not ended."""

    def send(
        self, execution: LiveExecution, kernel: Kernel, turn: Turn, *, accept: bool
    ) -> asyncio.Future[None]:
        """Hand an execution to the kernel's drain; what comes back tells when it was sent."""
        untold = None if execution.init else self._incarnations.untold
        told = ExecutionKernel(
            id=kernel.id,
            name=kernel.name,
            incarnation=self._incarnations.number,
            restarted=untold is not None,
            reason=untold,
        )
        self.execution = execution
        self._recorder.own.add(execution.id)
        execution.ahead = None if kernel.owned else partial(ahead_of, kernel, turn, execution)
        execution.turn = turn
        return self._sender.send(execution, kernel, told, accept=accept)

    async def follow(
        self, execution: LiveExecution, kernel: Kernel, sent: asyncio.Future[None], turn: Turn
    ) -> None:
        """Stay with an execution until it is recorded as finished and the kernel is free."""
        timer = self._loop.call_later(execution.timeout or 0, self._time_out, execution)
        if not kernel.owned:
            timer.cancel()  # it begins to count when the kernel takes the execution up
        try:
            await execution.unless_failed(sent)
            if not execution.init:
                self._incarnations.untold = None
            await execution.unless_failed(execution.finished)
            self._look_for_files(execution)
            if kernel.owned:
                await kernel.connection.free()
            else:  # others' sessions may keep the connection open when this one lets go
                free = asyncio.create_task(kernel.connection.free(), name=f"end of {execution.id}")
                await first_of(free, execution.parted)
                free.cancel()
        finally:
            timer.cancel()
            self.execution = None
            if not execution.left_behind:
                kernel.turns.leave(turn)

    async def interrupt(
        self, execution: LiveExecution, ending: Ending, reason: Reason, by: By
    ) -> None:
        """Interrupt what was sent; whether that is obeyed is looked at later."""
        await self._interrupts.interrupt(execution, ending, reason, by)

    async def end_kernel(self, death: Death, ending: Ending, by: By) -> None:
        """Let the kernel go; what runs in it ends as `ending` says unless somebody said before."""
        running, kernel = self.execution, self._incarnations.current
        if kernel is None:
            return
        if death.reason == "shut_down" and not kernel.owned:
            self._told.shut_down(death.message)  # at once: what is asked from now on may go on
        await self._incarnations.end(death, by)
        if running is not None and running.held_by is kernel:
            running.ending = running.ending or ending
            self.inputs.withdraw(running)
            kernel.connection.abandon(death.message)
            settle(running.parted)
        self._told.gone()
        self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")

    async def leave_kernel(self, ending: Ending, by: By) -> None:
        """Let the kernel go because the session closes; one that others use goes on."""
        running, kernel = self.execution, self._incarnations.current
        self.files.close()
        if running is not None and running.is_behind and kernel is running.held_by:
            running.left_behind = True
            running.ending = running.ending or ("cancelled", ending[1])
            await self._recorder.unrun(running)
            self._incarnations.leave()
            self._leftovers.start(self._clear_away(running), f"clear away {running.id}")
        elif kernel is not None and not kernel.owned:
            self._incarnations.leave()
            if running is not None:
                running.ending = running.ending or ending
                self.inputs.withdraw(running)
                kernel.connection.abandon(ending[1])
                settle(running.parted)
            self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")
        else:
            await self.end_kernel(Death("shut_down", ending[1]), ending, by)

    def listen(self, kernel: Kernel, record_people: RecordPeople) -> None:
        """Have all recorded that the kernel tells beside what is asked of it."""
        connection = kernel.connection
        connection.on_late.add(self._recorder.late)
        if not kernel.owned:
            kernel.turns.on_change.add(self._turns_changed)
        if record_people != "off":
            self._hear_person = partial(self._recorder.person, kernel.id)
            connection.hear_people(self._hear_person)

    def _begun(self, execution: LiveExecution) -> None:
        """Count the time from when a kernel that others use too took it up."""
        timer = self._loop.call_later(execution.timeout or 0, self._time_out, execution)
        execution.finished.add_done_callback(lambda _: timer.cancel())
        self._told.changed(execution)

    def _time_out(self, execution: LiveExecution) -> None:
        if execution is self.execution:
            self._interrupts.time_out(execution)

    def _ended(self, execution: LiveExecution, ended: Ended) -> None:
        """Record the end of a run; in the drain's thread."""
        if execution.left_behind:
            return
        if ended.exits:
            self._on_loop(self._exits, execution, ended)
        else:
            self._recorder.ended(execution, ended)

    def _exits(self, execution: LiveExecution, ended: Ended) -> None:
        """Wait for the end of a kernel that its code asked to exit, and only then tell."""
        kernel = execution.held_by
        assert kernel is not None
        reason = "The code ended the kernel (exit); its variables are gone."
        execution.ending = ("kernel_died", reason)

        async def wait() -> None:
            try:
                gone = kernel.connection.disconnected
                await asyncio.wait({gone}, timeout=self._bounds.interrupt_grace)
                if not gone.done() and not kernel.owned:
                    execution.ending = None  # it did not go
                elif not gone.done():
                    await self.end_kernel(Death("died", reason), ("kernel_died", reason), SERVER)
                await self._loop.run_in_executor(self._disk, self._recorder.ended, execution, ended)
            except Exception as error:
                execution.fail(error)
                raise

        self._tasks.start(wait(), f"exit {execution.id}")

    def _look_for_files(self, execution: LiveExecution) -> None:
        if execution.run is None or not execution.run.looks:
            return
        folder = self._incarnations.folder
        if folder is not None:
            self.files.ended(execution, folder)

    async def _let_go(self, kernel: Kernel) -> None:
        await kernel.let_go()
        kernel.connection.on_late.remove(self._recorder.late)
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
        await kernel.connection.heeds_interrupts(run)
        if kernel.connection.is_running(run):
            await kernel.interrupt()
        await kernel.connection.free()
        kernel.turns.leave(turn)
        await self._let_go(kernel)

    def _turns_changed(self, _: None) -> None:
        self._told.waiting()

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)


def ahead_of(
    kernel: Kernel, turn: Turn, execution: LiveExecution | None = None
) -> WaitingFor | None:
    """Tell what an execution waits for that has asked for its turn, or was sent."""
    if execution is None:
        return kernel.turns.ahead_of(turn)
    return kernel.turns.person if execution.is_behind else None
