"""Ends executions before their code ends: on request, after a timeout, or when the kernel exits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from ..kernels.channels import KernelDeath
from ..kernels.execute_request import ExecuteOutcome
from ..kernels.kernel import Kernel
from ..records import SERVER, By, Interrupted, timestamp
from ..tasks import first_of, settle
from .execution import LiveExecution
from .inputs import Inputs
from .limits import SessionLimits
from .live_executions import LiveExecutions
from .recorder import Recorder
from .session_kernels import SessionKernels
from .state import (
    AbandonRun,
    Effect,
    Ending,
    ExitRequested,
    GraceElapsed,
    Interrupt,
    InterruptReason,
    InterruptRequested,
    QueueTimeElapsed,
    ReplaceKernel,
    RunTimeElapsed,
)


class Interrupts:
    """Interrupts the executions of one session, and checks that their code obeys."""

    def __init__(
        self,
        executions: LiveExecutions,
        recorder: Recorder,
        inputs: Inputs,
        kernels: SessionKernels,
        limits: SessionLimits,
    ) -> None:
        self._executions = executions
        self._recorder = recorder
        self._inputs = inputs
        self._kernels = kernels
        self._limits = limits

    async def interrupt(
        self, execution: LiveExecution, why: str, reason: InterruptReason, by: By
    ) -> None:
        """Interrupt an execution that was sent; a task checks later whether the code stopped.

        An execution in the kernel's own queue is interrupted when the kernel starts it.
        """
        ending = Ending("interrupted", why)
        for effect in execution.apply(InterruptRequested(ending, reason, by)):
            await self._performed(execution, effect)

    def limit_time(self, execution: LiveExecution) -> None:
        """Start the timer that interrupts an execution after its timeout."""
        execution.timer = self._executions.loop.call_later(
            execution.spec.timeout, self._run_time_elapsed, execution
        )

    def queue_time_elapsed(self, execution: LiveExecution) -> None:
        """End an execution whose queue timeout is over and that has not started."""
        timeout = execution.spec.queue_timeout
        assert timeout is not None
        self._perform(execution, execution.apply(QueueTimeElapsed(timeout, SERVER)))

    def _run_time_elapsed(self, execution: LiveExecution) -> None:
        if execution is not self._executions.running:
            return
        run, kernel = execution.run, execution.held_by
        if run is not None and run.has_ended and kernel is not None:
            self._end_in_time(execution, kernel)
        else:
            is_trial = execution.trial is not None
            event = RunTimeElapsed(execution.spec.timeout, SERVER, is_trial=is_trial)
            self._perform(execution, execution.apply(event))

    def _perform(self, execution: LiveExecution, effects: Sequence[Effect]) -> None:
        for effect in effects:
            name = f"{type(effect).__name__} of {execution.id}"
            self._executions.tasks.start(self._performed(execution, effect), name)

    async def _performed(self, execution: LiveExecution, effect: Effect) -> None:
        kernel = execution.held_by
        assert kernel is not None
        match effect:
            case Interrupt(reason, by, when_started):
                if when_started:
                    later = self._interrupt_later(execution, kernel, reason, by)
                    self._executions.tasks.start(later, f"interrupt {execution.id} later")
                else:
                    await self._interrupt(execution, kernel, reason, by)
            case ReplaceKernel(ending):
                why = "The code ignored the interrupt, so its kernel was replaced."
                death = KernelDeath("interrupt_ignored", why)
                await self._kernels.end(death, SERVER, ending)
            case AbandonRun(why):
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
        await self._recorder.record(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution.cannot_be_interrupted():
            return
        if execution.trial is not None:
            execution.trial.end()
        elif kernel.owned or kernel.connection.is_running(execution.run):
            self._inputs.withdraw(execution)
            await kernel.interrupt()
            self._end_in_time(execution, kernel)

    def _end_in_time(self, execution: LiveExecution, kernel: Kernel) -> None:
        """End an execution after the grace period; the rest of its output may come until then."""
        self._executions.tasks.start(
            self._check_obeyed(execution, kernel), f"end of {execution.id}"
        )

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

    async def exited(self, execution: LiveExecution, ended: ExecuteOutcome) -> None:
        """Record an execution whose code made the kernel exit, once the kernel has ended."""
        kernel, executions = execution.held_by, self._executions
        assert kernel is not None
        reason = "The code ended the kernel (exit); its variables are gone."
        ending = Ending("kernel_died", reason)
        execution.apply(ExitRequested(ending))
        try:
            gone = kernel.connection.disconnected
            await asyncio.wait({gone}, timeout=self._limits.interrupt_grace)
            if not gone.done() and not kernel.owned:
                execution.apply(ExitRequested(None))
            elif not gone.done():
                await self._kernels.end(KernelDeath("died", reason), SERVER, ending)
            write = partial(self._recorder.ended, execution, ended)
            await executions.loop.run_in_executor(executions.server.disk, write)
        except Exception as error:
            settle(execution.ended, error)
            raise
