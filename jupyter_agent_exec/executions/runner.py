"""Sends a session's executions to its kernel, interrupts them, and follows them to their end.

All of this runs on the event loop, except the methods of `SentExecution`; `RequestObserver` names
their thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from ..errors import HistoryUnavailable
from ..kernels.channels import KernelDeath
from ..kernels.execute_request import (
    ExecuteOutcome,
    ExecuteRequest,
    InputRequest,
    RequestObserver,
)
from ..kernels.kernel import Kernel
from ..kernels.kernel_queue import Turn
from ..kernels.person_executions import PersonExecution
from ..kernels.trials.settings import INSTEAD, NO_TRIAL
from ..kernels.trials.trial import Trial
from ..models import ExecutionKernel
from ..records import SERVER, By, Dispatched, Entry, Interrupted, Payload, timestamp
from ..tasks import Tasks, first_of, settle
from .environment import SessionEnvironment
from .execution import LiveExecution, LiveExecutions
from .incarnations import Incarnations
from .inputs import Inputs
from .limits import ServerResources, SessionLimits
from .recorder import Recorder
from .state import (
    AbandonRun,
    DispatchFailed,
    DispatchStarted,
    Effect,
    Ending,
    ExitRequested,
    GraceElapsed,
    Interrupt,
    InterruptReason,
    InterruptRequested,
    KernelEnded,
    QueueTimeElapsed,
    ReplaceKernel,
    RunTimeElapsed,
    Sent,
    Started,
)


class SentExecution(RequestObserver):
    """Observes an execution in a kernel, and records its dispatch and its end.

    Parameters
    ----------
    accept
        Whether to record its acceptance in the same write as its dispatch.
    """

    def __init__(
        self, runner: Runner, execution: LiveExecution, kernel: Kernel, *, accept: bool
    ) -> None:
        self._runner = runner
        self._execution = execution
        self._kernel = kernel
        self._accept = accept

    def before_sending(self) -> bool:
        """Record the dispatch on disk; return False if that fails."""
        execution = self._execution
        assert execution.kernel is not None
        assert execution.run is not None
        at = timestamp(execution.run.started_at)
        entries: list[Entry] = [
            Dispatched(at=at, by=SERVER, execution_id=execution.id, kernel=execution.kernel)
        ]
        payloads: list[Payload] = []
        if self._accept:
            entry, payloads = execution.acceptance()
            entries.insert(0, entry)
        try:
            execution.executions.journal.check_sinks()
            execution.executions.journal.append(entries, payloads)
        except HistoryUnavailable as error:
            self.failed(error)
            return False
        execution.started_at = at
        return True

    def sent(self) -> None:
        """Notify the event loop."""
        self._execution.executions.on_loop(self._runner.was_sent, self._execution, self._kernel)

    def begun(self) -> None:
        """Notify the event loop; in a kernel of the session's own, `sent` has done so already."""
        if not self._kernel.owned:
            self._execution.executions.on_loop(self._has_begun)

    def input_requested(self, request: InputRequest) -> None:
        """Record that code waits for input."""
        self._runner.inputs.requested(self._execution, request)

    def ended(self, outcome: ExecuteOutcome) -> None:
        """Record the end."""
        if self._execution.left_behind:
            return
        if outcome.exits:
            self._execution.executions.on_loop(self._runner.exits, self._execution, outcome)
        else:
            self._runner.recorder.ended(self._execution, outcome)

    def failed(self, error: Exception) -> None:
        """Pass the error to those who wait for the execution's end."""
        self._execution.executions.on_loop(self._execution.fail, error)

    def outputs_changed(self) -> None:
        """Notify the observers of the execution."""
        self._execution.output_changed()

    def _has_begun(self) -> None:
        execution = self._execution
        assert execution.run is not None
        execution.started_at = timestamp(execution.run.started_at)
        execution.apply(Started())
        settle(execution.begun)
        if not execution.finished.done():
            self._runner.limit_time(execution)
        execution.executions.changed(execution)


class Runner:
    """Runs the executions of one session in its kernel, one at a time.

    Parameters
    ----------
    tasks
        The tasks of the session; closing it waits for them.
    """

    def __init__(
        self,
        executions: LiveExecutions,
        incarnations: Incarnations,
        recorder: Recorder,
        environment: SessionEnvironment,
        *,
        limits: SessionLimits,
        tasks: Tasks,
        resources: ServerResources,
    ) -> None:
        self._executions = executions
        self._journal = executions.journal
        self._incarnations = incarnations
        self.recorder = recorder
        self._environment = environment
        self._limits = limits
        self._tasks = tasks
        self._resources = resources
        self._loop = asyncio.get_running_loop()
        self.inputs = Inputs(executions, recorder)
        """The input requests of running code."""
        self._record_person: Callable[[PersonExecution], None] | None = None
        self.execution: LiveExecution | None = None
        """The execution that was sent and has not ended."""

    # -- send --------------------------------------------------------------------------------------

    async def run(
        self, execution: LiveExecution, kernel: Kernel, turn: Turn, *, accept: bool
    ) -> None:
        """Send an execution, and wait until its end is recorded and the kernel is free.

        Parameters
        ----------
        accept
            Whether to record its acceptance in the same write as its dispatch.

        Raises
        ------
        HistoryUnavailable
            Its dispatch cannot be recorded; it was not sent.
        """
        self._send(execution, kernel, turn, accept=accept)
        if kernel.owned:  # in others, the timeout begins when the kernel starts the execution
            self.limit_time(execution)
        try:
            await execution.unless_failed(execution.finished)
            if execution.trial is not None:
                pass  # the kernel is free since it forked
            elif kernel.owned:
                await kernel.connection.free()
            else:  # other sessions may keep the connection open when this one releases the kernel
                free = asyncio.create_task(kernel.connection.free(), name=f"end of {execution.id}")
                await first_of(free, execution.parted)
                free.cancel()
        except HistoryUnavailable:
            execution.apply(DispatchFailed())
            raise
        finally:
            if execution.timer is not None:
                execution.timer.cancel()
            self.execution = None
            if not execution.left_behind:
                kernel.turns.leave(turn)
        if execution.trial is None:
            self._environment.ended(execution)

    def _send(self, execution: LiveExecution, kernel: Kernel, turn: Turn, *, accept: bool) -> None:
        """Hand an execution to the kernel's drain thread."""
        spec = execution.spec
        restarted = self._incarnations.untold if spec.reports_restart else None
        execution.apply(DispatchStarted())
        self.execution = execution
        self.recorder.own.add(execution.id)
        execution.kernel = ExecutionKernel(
            id=kernel.id,
            name=kernel.name,
            incarnation=self._incarnations.number,
            restarted=restarted is not None,
            reason=restarted,
        )
        execution.held_by, execution.turn = kernel, turn
        execution.ahead = None
        if not kernel.owned:
            execution.ahead = lambda: kernel.turns.person if execution.is_behind else None
        execution.spill = self._journal.new_text_spill(self._limits.max_text_bytes)
        execution.run = ExecuteRequest(
            id=execution.id,
            source=execution.source,
            store_history=not spec.init,
            max_output_bytes=spec.max_output_bytes,
            sink=execution.spill,
            observer=SentExecution(self, execution, kernel, accept=accept),
            is_watched=execution.is_watched,
            looks=not kernel.owned and not spec.trial,
            values=execution.evaluated,
            allow_stdin=self._executions.session.allow_stdin and not spec.init and not spec.trial,
        )
        if not spec.trial:
            kernel.connection.start(execution.run)
            return
        execution.trial = Trial(
            execution.run, kernel.connection, self._resources.trials, spec.timeout
        )
        kernel.turns.begin_trial(execution.id)
        trial = self._try(execution, execution.trial, kernel, turn)
        self._tasks.start(trial, f"trial {execution.id}")

    def was_sent(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Notify all that an execution was sent to a kernel."""
        execution.apply(Sent(starts=kernel.owned))
        if kernel.owned:  # in others, somebody's cell may be ahead of it
            settle(execution.begun)
        if execution.spec.reports_restart:
            self._incarnations.untold = None
        if execution.accepted.done():
            self._executions.changed(execution)
        else:
            self._executions.accepted(execution)

    async def _try(
        self, execution: LiveExecution, trial: Trial, kernel: Kernel, turn: Turn
    ) -> None:
        """Run a trial; the kernel is free for others as soon as it has forked."""
        assert execution.run is not None
        try:
            outcome, fault = await trial.run(partial(kernel.turns.leave, turn))
            if fault is not None:
                execution.apply(KernelEnded(Ending("cancelled", f"{NO_TRIAL}: {fault}. {INSTEAD}")))
            if outcome is not None:
                await asyncio.to_thread(execution.run.observer.ended, outcome)
        except Exception as error:
            execution.fail(error)
            raise  # the owner of the task logs it
        finally:
            kernel.turns.end_trial(execution.id)

    def limit_time(self, execution: LiveExecution) -> None:
        """Start the timer that interrupts an execution after its timeout."""
        timeout = execution.spec.timeout

        def elapsed() -> None:
            if execution is not self.execution:
                return
            run, kernel = execution.run, execution.held_by
            if run is not None and run.has_ended and kernel is not None:
                self._end_in_time(execution, kernel)
            else:
                event = RunTimeElapsed(timeout, SERVER, is_trial=execution.trial is not None)
                self._perform(execution, execution.apply(event))

        execution.timer = self._loop.call_later(timeout, elapsed)

    # -- interrupt ---------------------------------------------------------------------------------

    async def interrupt(
        self, execution: LiveExecution, ending: Ending, reason: InterruptReason, by: By
    ) -> None:
        """Interrupt an execution that was sent; a task checks later whether the code stopped.

        An execution in the kernel's own queue is interrupted when the kernel starts it.
        """
        for effect in execution.apply(InterruptRequested(ending, reason, by)):
            await self._performed(execution, effect)

    def queue_time_elapsed(self, execution: LiveExecution) -> None:
        """End an execution whose queue timeout is over and that has not started."""
        timeout = execution.spec.queue_timeout
        assert timeout is not None
        self._perform(execution, execution.apply(QueueTimeElapsed(timeout, SERVER)))

    def _perform(self, execution: LiveExecution, effects: Sequence[Effect]) -> None:
        for effect in effects:
            name = f"{type(effect).__name__} of {execution.id}"
            self._tasks.start(self._performed(execution, effect), name)

    async def _performed(self, execution: LiveExecution, effect: Effect) -> None:
        kernel = execution.held_by
        match effect:
            case Interrupt(reason, by, when_started):
                assert kernel is not None
                if when_started:
                    later = self._interrupt_later(execution, kernel, reason, by)
                    self._tasks.start(later, f"interrupt {execution.id} later")
                else:
                    await self._interrupt(execution, kernel, reason, by)
            case ReplaceKernel(ending):
                why = "The code ignored the interrupt, so its kernel was replaced."
                await self.end_kernel(KernelDeath("interrupt_ignored", why), ending, SERVER)
            case AbandonRun(why):
                assert kernel is not None
                kernel.connection.abandon(why)
            case _:
                pass  # `LiveExecution.apply` performs the others

    async def _interrupt_later(
        self, execution: LiveExecution, kernel: Kernel, reason: InterruptReason, by: By
    ) -> None:
        await first_of(execution.begun, execution.finished)
        await self._interrupt(execution, kernel, reason, by)

    async def _interrupt(
        self, execution: LiveExecution, kernel: Kernel, reason: InterruptReason, by: By
    ) -> None:
        assert execution.run is not None
        if execution.cannot_be_interrupted():
            return
        if execution.trial is None:
            await kernel.connection.heeds_interrupts(execution.run)
        if execution.cannot_be_interrupted():
            return
        if execution.run.has_ended:  # an interrupt would reach other code
            self._end_in_time(execution, kernel)
            return
        await self.recorder.record(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution.cannot_be_interrupted():
            return
        if execution.trial is not None:
            execution.trial.end()
            return
        if kernel.owned or kernel.connection.is_running(execution.run):
            self.inputs.withdraw(execution)
            await kernel.interrupt()
            self._tasks.start(self._check_obeyed(execution, kernel), f"interrupt {execution.id}")

    def _end_in_time(self, execution: LiveExecution, kernel: Kernel) -> None:
        """End an execution after the grace period; the rest of its output may come until then."""
        self._tasks.start(self._check_obeyed(execution, kernel), f"end of {execution.id}")

    async def _check_obeyed(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Wait for the grace period; if the code still runs, apply the limits for that case.

        Code may catch one interrupt and go on, so there is another in the middle.
        """
        assert execution.run is not None
        half = self._limits.interrupt_grace / 2
        await first_of(execution.finished, execution.parted, timeout=half)
        if not execution.cannot_be_interrupted() and kernel.connection.is_running(execution.run):
            await kernel.interrupt()
        await first_of(execution.finished, execution.parted, timeout=half)
        if execution.cannot_be_interrupted():
            return
        if execution.run.has_ended:
            kernel.connection.end_incomplete(execution.run)
            return
        replace_kernel = kernel.owned and self._limits.restart_if_interrupt_ignored
        effects = execution.apply(GraceElapsed(replace_kernel))
        self._executions.output_changed(execution)
        for effect in effects:
            await self._performed(execution, effect)

    # -- release the kernel ------------------------------------------------------------------------

    async def end_kernel(self, death: KernelDeath, ending: Ending, by: By) -> None:
        """Release the kernel; the running execution ends as `ending`, unless it has an ending."""
        running, kernel = self.execution, self._incarnations.current
        if kernel is None:
            return
        if death.reason == "shut_down" and not kernel.owned:
            for execution in self._executions:  # a user shut it down; only later executions may run
                execution.withdraw("cancelled", f"It was not run. {death.message}")
        await self._incarnations.end(death, by)
        if running is not None and running.held_by is kernel:
            self._part(running, kernel, ending, death.message)
        self._executions.kernel_changed()
        self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")

    async def leave_kernel(self, ending: Ending, by: By) -> None:
        """Release the kernel because the session closes; a shared kernel keeps running."""
        running, kernel = self.execution, self._incarnations.current
        if running is not None and running.is_behind and kernel is running.held_by:
            running.left_behind = True
            running.apply(KernelEnded(Ending("cancelled", ending.reason)))
            await self.recorder.unrun(running)
            self._incarnations.leave()
            self._resources.leftovers.start(self._clear_away(running), f"clear away {running.id}")
        elif kernel is not None and not kernel.owned:
            self._incarnations.leave()
            if running is not None:
                self._part(running, kernel, ending, ending.reason)
            self._tasks.start(self._let_go(kernel), f"let go of {kernel.id}")
        else:
            await self.end_kernel(KernelDeath("shut_down", ending.reason), ending, by)

    def listen(self, kernel: Kernel) -> None:
        """Record the kernel's late outputs and, if configured, the code that users run in it."""
        connection = kernel.connection
        connection.on_late.add(self.recorder.late)
        if not kernel.owned:
            kernel.turns.on_change.add(self._turns_changed)
        if self._executions.session.record_people != "off":
            self._record_person = partial(self.recorder.person, kernel.id)
            connection.hear_people(self._record_person)

    def _part(self, running: LiveExecution, kernel: Kernel, ending: Ending, message: str) -> None:
        """End an execution whose kernel the session has released."""
        running.apply(KernelEnded(ending))
        self.inputs.withdraw(running)
        if running.trial is None:
            kernel.connection.abandon(message)
        else:
            running.trial.end()
        settle(running.parted)

    async def _let_go(self, kernel: Kernel) -> None:
        await kernel.let_go()
        kernel.connection.on_late.remove(self.recorder.late)
        if self._record_person is not None:
            kernel.connection.on_person.remove(self._record_person)
        kernel.turns.on_change.remove(self._turns_changed)

    async def _clear_away(self, execution: LiveExecution) -> None:
        """Wait until the kernel starts an execution from its own queue, then interrupt it."""
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

    # -- the end -----------------------------------------------------------------------------------

    def exits(self, execution: LiveExecution, ended: ExecuteOutcome) -> None:
        """Record an execution whose code made the kernel exit, once the kernel has ended."""
        kernel = execution.held_by
        assert kernel is not None
        reason = "The code ended the kernel (exit); its variables are gone."
        ending = Ending("kernel_died", reason)
        execution.apply(ExitRequested(ending))

        async def wait() -> None:
            try:
                gone = kernel.connection.disconnected
                await asyncio.wait({gone}, timeout=self._limits.interrupt_grace)
                if not gone.done() and not kernel.owned:
                    execution.apply(ExitRequested(None))
                elif not gone.done():
                    await self.end_kernel(KernelDeath("died", reason), ending, SERVER)
                write = partial(self.recorder.ended, execution, ended)
                await self._loop.run_in_executor(self._resources.disk, write)
            except Exception as error:
                execution.fail(error)
                raise

        self._tasks.start(wait(), f"exit {execution.id}")

    def _turns_changed(self, _: None) -> None:
        self._executions.waits_changed()
