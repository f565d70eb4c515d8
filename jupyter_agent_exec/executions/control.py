"""What is done to code that runs: it is interrupted, or gets the input that it asks for.

Interrupts come on request, after a timeout, or when the kernel exits. Input requests and answers
are recorded in the kernel's drain thread, like the end of an execution. So the record has them in
order. A password is never recorded, not even its digest.
"""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from ..errors import InputNotAsked
from ..kernels.channels import KernelDeath
from ..kernels.execute_request import ExecuteOutcome, InputRequest
from ..models import GiveInput, Input
from ..records import SERVER, By, InputAsked, InputGiven, Interrupted, Payload, timestamp
from ..tasks import first_of, settle
from ..types import Status
from .execution import LiveExecution
from .limits import SessionLimits
from .live_executions import LiveExecutions
from .recorder import Recorder
from .session_kernels import SessionKernels
from .state import MAY_HANG, Ending, InterruptReason


class Control:
    """Interrupts the executions of one session and checks that their code obeys, and answers it."""

    def __init__(
        self,
        executions: LiveExecutions,
        recorder: Recorder,
        kernels: SessionKernels,
        limits: SessionLimits,
    ) -> None:
        self._executions = executions
        self._recorder = recorder
        self._kernels = kernels
        self._limits = limits

    async def interrupt(
        self, execution: LiveExecution, why: str, reason: InterruptReason, by: By
    ) -> None:
        """Interrupt an execution that was sent; a task checks later whether the code stopped.

        An execution in the kernel's own queue is interrupted when the kernel starts it, because an
        earlier interrupt would stop other code.
        """
        status: Status = "timed_out" if reason == "timed_out" else "interrupted"
        execution.become(execution.state.stopped(Ending(status, why)))
        if execution.state.phase == "begun":
            await self._interrupt(execution, reason, by)
        else:
            later = self._interrupt_later(execution, reason, by)
            self._executions.tasks.start(later, f"interrupt {execution.id} later")

    def limit_time(self, execution: LiveExecution) -> None:
        """Start the timer that interrupts an execution after its timeout."""
        execution.timer = self._executions.loop.call_later(
            execution.spec.timeout, self._run_time_elapsed, execution
        )

    def queue_time_elapsed(self, execution: LiveExecution) -> None:
        """End an execution whose queue timeout is over and that has not started."""
        why = f"It did not get its turn within {execution.spec.queue_timeout:g} seconds."
        execution.withdraw("timed_out", why)
        if execution.state.phase in ("dispatching", "sent"):
            self._time_out(execution, why)

    def _run_time_elapsed(self, execution: LiveExecution) -> None:
        if execution is not self._executions.running:
            return
        if execution.run is not None and execution.run.has_ended:
            self._end_in_time(execution)
            return
        why = f"It was interrupted after its timeout of {execution.spec.timeout:g} seconds."
        if execution.trial is not None:
            why += f" {MAY_HANG}"
        self._time_out(execution, why)

    def _time_out(self, execution: LiveExecution, why: str) -> None:
        interrupt = self.interrupt(execution, why, "timed_out", SERVER)
        self._executions.tasks.start(interrupt, f"interrupt {execution.id}")

    async def _interrupt_later(
        self, execution: LiveExecution, reason: InterruptReason, by: By
    ) -> None:
        await first_of(execution.begun, execution.finished)
        await self._interrupt(execution, reason, by)

    async def _interrupt(self, execution: LiveExecution, reason: InterruptReason, by: By) -> None:
        kernel = execution.held_by
        assert kernel is not None
        assert execution.run is not None
        if execution.cannot_be_interrupted():
            return
        if execution.trial is None:
            await kernel.connection.heeds_interrupts(execution.run)
        if execution.cannot_be_interrupted():
            return
        if execution.run.has_ended:  # an interrupt would reach other code
            self._end_in_time(execution)
            return
        await self._recorder.record(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution.cannot_be_interrupted():
            return
        if execution.trial is not None:
            execution.trial.end()
        elif kernel.owned or kernel.connection.requests.is_running(execution.run):
            self._executions.withdraw_input(execution)
            await kernel.interrupt()
            self._end_in_time(execution)

    def _end_in_time(self, execution: LiveExecution) -> None:
        """End an execution after the grace period; the rest of its output may come until then."""
        self._executions.tasks.start(self._check_obeyed(execution), f"end of {execution.id}")

    async def _check_obeyed(self, execution: LiveExecution) -> None:
        """Wait for the grace period; if the code still runs, apply the limits for that case.

        Code may catch one interrupt and go on, so there is another in the middle.
        """
        kernel = execution.held_by
        assert kernel is not None
        assert execution.run is not None
        half = self._limits.interrupt_grace / 2
        await first_of(execution.finished, execution.parted, timeout=half)
        if not execution.cannot_be_interrupted() and kernel.connection.requests.is_running(
            execution.run
        ):
            await kernel.interrupt()
        await first_of(execution.finished, execution.parted, timeout=half)
        if execution.cannot_be_interrupted():
            return
        if execution.run.has_ended:
            kernel.connection.end_incomplete(execution.run)
            return
        execution.become(replace(execution.state, interrupt_ignored=True))
        self._executions.output_changed(execution)
        ending = execution.state.ending
        if ending is not None and kernel.owned and self._limits.restart_if_interrupt_ignored:
            why = "The code ignored the interrupt, so its kernel was replaced."
            await self._kernels.end(KernelDeath("interrupt_ignored", why), SERVER, ending)
        elif ending is not None and ending.status == "timed_out":
            kernel.connection.abandon(ending.reason)

    async def exited(self, execution: LiveExecution, ended: ExecuteOutcome) -> None:
        """Record an execution whose code made the kernel exit, once the kernel has ended."""
        kernel, executions = execution.held_by, self._executions
        assert kernel is not None
        reason = "The code ended the kernel (exit); its variables are gone."
        ending = Ending("kernel_died", reason)
        execution.become(replace(execution.state, ending=ending))
        try:
            gone = kernel.connection.disconnected
            await asyncio.wait({gone}, timeout=self._limits.interrupt_grace)
            if not gone.done() and not kernel.owned:
                execution.become(replace(execution.state, ending=None))
            elif not gone.done():
                await self._kernels.end(KernelDeath("died", reason), SERVER, ending)
            write = partial(self._recorder.ended, execution, ended)
            await executions.loop.run_in_executor(executions.server.disk, write)
        except Exception as error:
            settle(execution.ended, error)
            raise

    # -- input -------------------------------------------------------------------------------------

    def input_requested(self, execution: LiveExecution, request: InputRequest) -> None:
        """Record that code waits for input, and notify observers; call it in the drain thread."""
        if execution.left_behind:
            return  # it is interrupted as soon as the kernel starts it
        text = request.prompt.encode("utf-8", "replace")
        prompt = Payload.of(text)
        entry = InputAsked(
            at=timestamp(request.asked_at),
            by=SERVER,
            execution_id=execution.id,
            prompt=prompt.digest,
            password=request.password,
        )
        self._recorder.note([entry], [prompt])
        input = Input(prompt=text.decode(), password=request.password, asked_at=entry.at)
        self._executions.on_loop(self._waits_for_input, execution, request, input)

    async def give_input(self, execution: LiveExecution, given: GiveInput, by: By) -> None:
        """Answer the input request of running code; only the first answer counts.

        Raises
        ------
        InputNotAsked
            The code does not wait for input, or waits for another input.
        HistoryUnavailable
            The answer could not be recorded, so it was not sent.
        """
        request, input = execution.request, execution.input
        if request is None or input is None or given.asked_at not in (None, input.asked_at):
            raise _not_asked(execution)
        assert execution.run is not None
        assert execution.held_by is not None
        connection = execution.held_by.connection
        before = partial(self._record_input, execution, request, given.value, by)
        if not await connection.give_input(execution.run, request, given.value, before):
            raise _not_asked(execution)

    def _record_input(
        self, execution: LiveExecution, request: InputRequest, value: str, by: By
    ) -> None:
        """Record the answer on disk before it is sent; runs in the drain thread."""
        assert execution.run is not None
        shown = execution.run.outputs.redaction.text(value)
        payloads = [] if request.password else [Payload.of(shown.encode())]
        entry = InputGiven(
            at=timestamp(),
            by=by,
            execution_id=execution.id,
            value=payloads[0].digest if payloads else None,
        )
        self._executions.journal.append([entry], payloads)
        self._executions.on_loop(self._executions.input_ends, execution, request)

    def _waits_for_input(
        self, execution: LiveExecution, request: InputRequest, input: Input
    ) -> None:
        if not execution.finished.done():
            execution.set_input(request, input)
            self._executions.changed(execution)


def _not_asked(execution: LiveExecution) -> InputNotAsked:
    """Return the error for an answer to an input request that is not open."""
    input = execution.input
    if input is not None:
        message = "asked_at: the code asks for another input by now; look at it again."
        return InputNotAsked(message, field="asked_at", asked_at=input.asked_at)
    return InputNotAsked(
        "The code of this execution does not ask for input now: it was answered already, or has "
        "not come to that, or has ended.",
        execution_id=execution.id,
        status=execution.status,
    )
