"""The worker of a session: takes its executions through its kernel, one after the other.

`Worker._carry` is the way of an execution, from top to bottom: accept, gate, turn, send, follow,
finish. What can happen beside that way stands in modules of its own: approvals
(`approval_gate.py`), the end of a kernel (`session_kernels.py`), interrupts, time limits and input
(`control.py`), and what is recorded (`recorder.py`, `environment.py`).

All of this is on the event loop, except the methods of `_SentExecution`; `RequestObserver` names
their thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ..errors import AgentExecError, HistoryUnavailable, InitFailed, TooManyRequests
from ..journal.session_journal import SessionJournal
from ..kernels.execute_request import (
    ExecuteOutcome,
    ExecuteRequest,
    InputRequest,
    RequestObserver,
)
from ..kernels.kernel import Kernel, KernelSource
from ..kernels.trials.trial import INSTEAD, NO_TRIAL, Trial
from ..models import Execute, ExecutionKernel, Session, StepOf, WaitingFor
from ..records import SERVER, ExecutionRecord, timestamp
from ..tasks import first_of, settle, start_apart
from ..text.counts import counted
from ..text.terminal import clean
from ..types import ExecutionId
from .approval_gate import ApprovalGate
from .control import Control
from .environment import SessionEnvironment
from .execution import LiveExecution, QueueTime
from .limits import SessionLimits
from .live_executions import LiveExecutions, ServerResources
from .observer import ExecutionObserver
from .recorder import Recorder
from .rules import Permit
from .session_kernels import SessionKernels
from .spec import ExecutionSpec, check_python
from .state import Ending

KERNEL: Final = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
"""What an execution waits for while there is no kernel, or the kernel's activity is unknown."""

INIT_WAIT: Final = 30.0
"""Seconds that opening a session waits for the init source in a shared kernel."""


class Worker(LiveExecutions):
    """Runs the executions of one session in its kernel, one after the other.

    Parameters
    ----------
    first_sources
        Sources to run first in each kernel, in order. Keys are the request fields they came from.
    observers
        The observers of the executions, in the order in which they are called.
    """

    def __init__(
        self,
        session: Session,
        journal: SessionJournal,
        kernels: KernelSource,
        *,
        limits: SessionLimits,
        permit: Permit,
        first_sources: Mapping[str, str],
        observers: Collection[ExecutionObserver],
        server: ServerResources,
    ) -> None:
        super().__init__(session, journal, observers, server)
        self._limits = limits
        self._permit = permit
        self._first_sources = first_sources
        self._line: deque[LiveExecution] = deque()  # the first is carried, the others wait
        self._first_since: str | None = None
        self.recorder = Recorder(self)
        self.kernels = SessionKernels(self, self.recorder, kernels, self._run_first_sources)
        self.control = Control(self, self.recorder, self.kernels, limits)
        self.environment = SessionEnvironment(self, self.kernels, self.recorder)
        self.gate = ApprovalGate(self, self.kernels, self.recorder, permit)

    # -- submit ------------------------------------------------------------------------------------

    def check(self, request: Execute) -> None:
        """Raise LanguageNotSupported or TrialUnavailable if the kernel cannot run a request."""
        if request.trial:
            self.server.trials.check(self.kernels.current)
        if request.values:
            check_python(self.kernels.current, "values")

    def submit(
        self, specs: Sequence[ExecutionSpec], *, stop_on_error: bool | None
    ) -> list[LiveExecution]:
        """Queue all of these executions or none, with no other of the session in between.

        The `accepted` future of each is done when its acceptance is on disk.

        Parameters
        ----------
        stop_on_error
            Whether to cancel the remaining steps when one fails; None if there is one execution,
            which is no step.

        Raises
        ------
        TooManyRequests
            Nothing was accepted.
        """
        if specs[0].restores is None:  # what is restored may be more than may wait
            self._check_room(len(specs))
        executions = [self._add(spec) for spec in specs]
        first, count, is_idle = executions[0], len(executions), not self._line
        for number, execution in enumerate(executions, 1):
            if stop_on_error is not None:
                execution.step = StepOf(first=first.id, number=number, of=count)
            if stop_on_error:
                execution.later_steps = executions[number:]
            execution.ahead = partial(self._ahead_in_line, execution.id)
            leave = partial(self._leave_line, execution.id)
            execution.withdrawn.add_done_callback(leave, context=Context())
        self._line.extend(executions)
        if count > 1 or not is_idle:
            self.tasks.start(self._accept(executions), f"accept {first.id} ff")
        if is_idle:
            self.tasks.start(self._work(accepts_first=count == 1), f"work of {self.session.id}")
        return executions

    def _check_room(self, count: int) -> None:
        """Raise TooManyRequests if `count` more executions would exceed the queue's limit."""
        queued, most = self.queued, self._limits.max_queued
        if queued + count > most:
            why = "already; wait for one to finish."
            if count > 1:
                why = f"and {count} more are too many: {most} may wait."
            waiting = counted(queued, "waiting execution")
            raise TooManyRequests(f"This session has {waiting} {why}", limit=most)

    def _add(self, spec: ExecutionSpec) -> LiveExecution:
        return self.add(spec, self.gate.mode_of(spec), edits_cell=self.gate.proposes(spec))

    def _ahead_in_line(self, id: ExecutionId) -> WaitingFor:
        """Return what an execution in the session's line waits for."""
        if not self._line or self._line[0].id == id:
            return KERNEL
        agent, first = self.session.agent.name, self._line[0].id
        return WaitingFor(who="agent", agent=agent, execution_id=first, since=self._first_since)

    def _leave_line(self, id: ExecutionId, _: object) -> None:
        """Record the end of an execution that is withdrawn while others are ahead of it.

        It gets the id, since an execution that refers to itself stays in memory with its outputs.
        """
        execution = self.get(id)
        if execution is not None and execution in self._line and execution is not self._line[0]:
            self._line.remove(execution)
            self._release(execution)
            self.tasks.start(self._end_in_line(execution), f"end of {execution.id}")

    async def _end_in_line(self, execution: LiveExecution) -> None:
        await asyncio.wait({execution.accepted})
        await self._end_unrun(execution)
        self.waits_changed()

    # -- the way of an execution -------------------------------------------------------------------

    async def _work(self, *, accepts_first: bool) -> None:
        """Carry what is in the line, one after the other, until it is empty.

        Parameters
        ----------
        accepts_first
            Whether nobody has begun to accept the first one.
        """
        while self._line:
            self._first_since = timestamp()
            try:
                await self._carry(self._line[0], accepts=accepts_first)
            finally:
                self._line.popleft()
                self.waits_changed()
            accepts_first = False

    async def _carry(self, execution: LiveExecution, *, accepts: bool) -> None:
        """Take an execution from its acceptance to its end; if that fails, end it all the same."""
        try:
            is_sent_at_once = accepts and await self._take_turn_at_once(execution)
            if not is_sent_at_once:
                if accepts:
                    await self._accept([execution])
                await asyncio.wait({execution.accepted})
                if execution.refused or not await self._take_turn(execution):
                    return
            self._send(execution, accepts=is_sent_at_once)
            await self._follow(execution)
        except Exception as error:
            self._break_off(execution, error)
        finally:
            self._release(execution)
            await self._end_unrun(execution)

    async def _accept(self, executions: Sequence[LiveExecution]) -> None:
        """Record executions as accepted, and ask for approval if that is due; all, or none."""
        try:
            await self.gate.accept(*executions)
        except Exception as error:
            for execution in reversed(executions):
                self._break_off(execution, error)
        for execution in executions:
            self._count_queue_time(execution)

    async def _take_turn_at_once(self, execution: LiveExecution) -> bool:
        """Take the turn on the kernel if nothing has to be waited for."""
        kernel = execution.held_by or await self.kernels.confirmed()
        if kernel is None or not kernel.turns.free or not _has_room(execution, kernel):
            return False
        if self._takes_checkpoint(execution, kernel):
            return False
        is_allowed = self.gate.is_allowed(execution) and self._refusal(execution) is None
        if not is_allowed or execution.withdrawn.done() or self.environment.is_due(execution):
            return False
        turn = kernel.turns.ask(execution.asker)
        if not turn.done() or turn.cancelled():
            kernel.turns.leave(turn)
            return False
        execution.held_by, execution.turn = kernel, turn
        self._count_queue_time(execution)
        return True

    async def _take_turn(self, execution: LiveExecution) -> bool:
        """Wait for approval, a kernel, and the turn on it; False if it is withdrawn instead."""
        only = execution.held_by  # a first source runs in no other kernel
        gone = () if only is None else (only.connection.disconnected,)
        try:
            while await self.gate.wait_until_allowed(execution, *gone):
                execution.ahead = lambda: KERNEL
                kernel = only or await self.kernels.fresh_unless(execution.withdrawn)
                if kernel is None:
                    return False
                if not self.gate.is_allowed(execution):
                    continue  # the kernel is a new incarnation, or agents were paused meanwhile
                if self.environment.is_due(execution):
                    await self.environment.look()
                if await self._take_turn_on(kernel, execution):
                    return True
                if not kernel.turns.is_closed and not kernel.is_ending:
                    continue
                if only is not None:
                    break
                await self.kernels.end_of(kernel)
        except AgentExecError as error:
            execution.withdraw("cancelled", f"It was not run: {error.message}")
        if only is not None:
            execution.withdraw("cancelled", "Its kernel ended before it ran.")
        return False

    async def _take_turn_on(self, kernel: Kernel, execution: LiveExecution) -> bool:
        """Wait for the turn on a kernel, and check again whether it may be sent there."""
        if not _has_room(execution, kernel):
            room = kernel.turns.until_trial_ends()
            await first_of(room, execution.withdrawn, kernel.connection.disconnected)
            return False
        turn = kernel.turns.ask(execution.asker)
        execution.ahead = partial(kernel.turns.ahead_of, turn)
        self.waits_changed()
        try:
            await first_of(turn, execution.withdrawn)
            if execution.withdrawn.done():
                return False
            if not turn.cancelled() and self._takes_checkpoint(execution, kernel):
                assert self.server.checkpoints is not None
                await self.server.checkpoints.take(kernel, execution.id)
            await self._permit.look()
            await self.server.rules.decisions.refresh()
            is_right = execution.held_by is kernel or await self.kernels.confirmed() is kernel
            is_right = is_right and turn.done() and not turn.cancelled()
            is_right = is_right and self.gate.is_allowed(execution) and _has_room(execution, kernel)
            refusal = self._refusal(execution)
            if refusal is not None:
                execution.withdraw("cancelled", f"It was not run: {refusal}")
            if is_right and not execution.withdrawn.done():
                execution.held_by, execution.turn = kernel, turn
            return execution.turn is not None
        finally:
            if execution.turn is None:
                kernel.turns.leave(turn)  # other sessions wait for the kernel too

    def _takes_checkpoint(self, execution: LiveExecution, kernel: Kernel) -> bool:
        checkpoints = self.server.checkpoints
        return checkpoints is not None and not execution.spec.trial and checkpoints.takes(kernel)

    def _send(self, execution: LiveExecution, *, accepts: bool) -> None:
        """Hand an execution to the kernel's drain thread.

        Parameters
        ----------
        accepts
            Whether to record its acceptance in the same write as its dispatch.
        """
        spec, kernel = execution.spec, execution.held_by
        assert kernel is not None
        restarted = self.kernels.untold if spec.reports_restart else None
        execution.become(replace(execution.state, phase="dispatching"))
        self.running = execution
        self.recorder.own.add(execution.id)
        execution.kernel = ExecutionKernel(
            id=kernel.id,
            name=kernel.name,
            incarnation=self.kernels.number,
            restarted=restarted is not None,
            reason=restarted,
        )
        execution.ahead = None
        if not kernel.owned:
            execution.ahead = lambda: kernel.turns.person if execution.is_behind else None
        execution.spill = self.journal.new_text_spill(self._limits.max_text_bytes)
        execution.run = ExecuteRequest(
            id=execution.id,
            source=execution.source,
            store_history=not spec.init,
            max_output_bytes=spec.max_output_bytes,
            sink=execution.spill,
            observer=_SentExecution(self, execution, kernel, accepts=accepts),
            is_watched=execution.is_watched,
            looks=not kernel.owned and not spec.trial,
            values=execution.evaluated,
            allow_stdin=self.session.allow_stdin and not spec.init and not spec.trial,
        )
        if spec.trial:
            trials = self.server.trials
            execution.trial = Trial(execution.run, kernel.connection, trials, spec.timeout)
            kernel.turns.begin_trial(execution.id)
            trial = self._try(execution, execution.trial, kernel)
            self.tasks.start(trial, f"trial {execution.id}")
        else:
            kernel.connection.start(execution.run)
        if kernel.owned:  # in others, the timeout begins when the kernel starts the execution
            self.control.limit_time(execution)

    async def _follow(self, execution: LiveExecution) -> None:
        """Wait until an execution's end is recorded and the kernel is free.

        Raises
        ------
        HistoryUnavailable
            Its dispatch cannot be recorded; it was not sent.
        """
        kernel = execution.held_by
        assert kernel is not None
        try:
            await execution.ended
        except HistoryUnavailable:
            execution.become(replace(execution.state, phase="waiting"))
            raise
        if execution.trial is not None:
            return  # the kernel is free since it forked
        if kernel.owned:
            await kernel.connection.free()
        else:  # other sessions may keep the connection open when this one releases the kernel
            free = asyncio.create_task(kernel.connection.free(), name=f"end of {execution.id}")
            await first_of(free, execution.parted)
            free.cancel()
        self.environment.ended(execution)

    def _release(self, execution: LiveExecution) -> None:
        """Leave the kernel to others, however an execution ended, and stop its timers."""
        if execution.queue_time is not None:
            execution.queue_time.end()
        if execution.timer is not None:
            execution.timer.cancel()
        if self.running is execution:
            self.running = None
        if execution.turn is not None and execution.held_by and not execution.left_behind:
            execution.held_by.turns.leave(execution.turn)

    def _break_off(self, execution: LiveExecution, error: Exception) -> None:
        """End an execution that an error interrupted; `lost` if it was sent, else `cancelled`."""
        if execution.started_at is not None:
            self.accepted(execution)  # recorded together with the dispatch
        if not execution.accepted.done():
            self.forget(execution, error)
        is_told = execution.refused and isinstance(error, HistoryUnavailable)
        if isinstance(error, AgentExecError):
            execution.withdraw("cancelled", f"It was not run: {error.message}")
            is_told |= execution.withdrawn.done()
        if not is_told:
            self.server.log.error("execution %s failed", execution.id, exc_info=error)
        if not (execution.refused or execution.finished.done() or execution.withdrawn.done()):
            is_sent = execution.run is not None and execution.run.is_sent
            execution.become(execution.state.failed(is_sent=is_sent))

    async def _end_unrun(self, execution: LiveExecution) -> None:
        """Record the end of an execution that was withdrawn, or that an error interrupted."""
        is_open = execution.accepted.done() and not execution.refused
        if execution.withdrawn.done() and is_open and not execution.finished.done():
            await self.recorder.unrun(execution)
            await asyncio.wait({execution.finished})

    def _refusal(self, execution: LiveExecution) -> str | None:
        """Return why an execution may not be sent to the session's kernel; None if it may."""
        return self._permit.refusal(self.kernels.source.path, looks=execution.spec.trial)

    def _count_queue_time(self, execution: LiveExecution) -> None:
        """Start an execution's queue timer, if it has a queue timeout."""
        timeout = execution.spec.queue_timeout
        if timeout is not None and not execution.spec.init and not execution.withdrawn.done():
            elapsed = partial(self.control.queue_time_elapsed, execution)
            execution.queue_time = QueueTime(timeout, elapsed)
            execution.queue_time.run(self.time_counts)

    # -- told by the kernel's thread ---------------------------------------------------------------

    def was_sent(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Notify all that an execution was sent to a kernel."""
        execution.become(execution.state.sent(starts=kernel.owned))
        if kernel.owned:  # in others, somebody's cell may be ahead of it
            settle(execution.begun)
        if execution.spec.reports_restart:
            self.kernels.untold = None
        if execution.accepted.done():
            self.changed(execution)
        else:
            self.accepted(execution)

    def has_begun(self, execution: LiveExecution) -> None:
        """Notify all that a kernel that others use too has started an execution."""
        assert execution.run is not None
        execution.started_at = timestamp(execution.run.started_at)
        execution.become(execution.state.begun())
        settle(execution.begun)
        if not execution.finished.done():
            self.control.limit_time(execution)
        self.changed(execution)

    def exits(self, execution: LiveExecution, outcome: ExecuteOutcome) -> None:
        """Record an execution whose code made the kernel exit, once the kernel has ended."""
        self.tasks.start(self.control.exited(execution, outcome), f"exit {execution.id}")

    def finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Notify all that an execution's final status is on disk; cancel the steps after a failure.

        The steps are cancelled before the session's next execution can start.
        """
        super().finished(execution, record)
        if execution.step is not None and execution.spec.is_failure(record.status):
            why = f"It was not run: step {execution.step.number} ended with {record.status}."
            for step in execution.later_steps:
                step.withdraw("cancelled", why)

    # -- trials ------------------------------------------------------------------------------------

    async def _try(self, execution: LiveExecution, trial: Trial, kernel: Kernel) -> None:
        """Run a trial; the kernel is free for others as soon as it has forked."""
        assert execution.run is not None
        assert execution.turn is not None
        try:
            outcome, fault = await trial.run(partial(kernel.turns.leave, execution.turn))
            if fault is not None:
                ending = Ending("cancelled", f"{NO_TRIAL}: {fault}. {INSTEAD}")
                execution.become(execution.state.stopped(ending))
            if outcome is not None:
                await asyncio.to_thread(execution.run.observer.ended, outcome)
        except Exception as error:
            settle(execution.ended, error)
            raise  # the owner of the task logs it
        finally:
            kernel.turns.end_trial(execution.id)

    # -- first sources -----------------------------------------------------------------------------

    async def begin(self, first: Kernel | None = None) -> None:
        """Begin with the session's first kernel, or with a fresh one.

        Return when the first sources have run, or when one waits for a user's approval. In a
        kernel that others use too, they get a limited time.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        begun = start_apart(self.kernels.fresh(first), f"first kernel of {self.session.id}")
        held = asyncio.ensure_future(self.gate.init_waits.wait())
        await first_of(begun, held, timeout=None if first is None or first.owned else INIT_WAIT)
        held.cancel()
        if begun.done():
            begun.result()
        else:
            self.tasks.start(self._stay(begun), f"begin {self.session.id}")

    async def _stay(self, begun: asyncio.Future[Any]) -> None:
        try:
            await begun
        except AgentExecError as error:
            self.server.log.warning("%s: %s", self.session.id, error.message)

    async def _run_first_sources(self, kernel: Kernel) -> None:
        """Run the first sources in a kernel that has not run anything of the session's."""
        for field, source in self._first_sources.items():
            record = await self._run_first(source, kernel)
            if record.status == "ok":
                continue
            error = record.error
            why = "." if error is None else f": {error.ename}: {clean(error.evalue)}"
            raise InitFailed(
                f"The session's {field} ended with status {record.status}{why}",
                field=field,
                session_id=record.session_id,
                execution_id=record.id,
                error=error,
                reason=record.reason,
            )

    async def _run_first(self, source: str, kernel: Kernel) -> ExecutionRecord:
        execution = self._add(ExecutionSpec.init_source(source, by=SERVER, limits=self._limits))
        execution.held_by = kernel
        await self._carry(execution, accepts=True)
        self.gate.init_waits.clear()
        self.waits_changed()
        await asyncio.shield(execution.accepted)  # or its error
        return await asyncio.shield(execution.finished)


class _SentExecution(RequestObserver):
    """Observes an execution in a kernel, and records its dispatch and its end.

    Parameters
    ----------
    accepts
        Whether to record its acceptance in the same write as its dispatch.
    """

    def __init__(
        self, worker: Worker, execution: LiveExecution, kernel: Kernel, *, accepts: bool
    ) -> None:
        self._worker = worker
        self._execution = execution
        self._kernel = kernel
        self._accepts = accepts

    def before_sending(self) -> bool:
        """Record the dispatch on disk; return False if that fails."""
        try:
            self._worker.recorder.dispatched(self._execution, accepts=self._accepts)
        except HistoryUnavailable as error:
            self.failed(error)
            return False
        return True

    def sent(self) -> None:
        """Notify the event loop."""
        self._worker.on_loop(self._worker.was_sent, self._execution, self._kernel)

    def begun(self) -> None:
        """Notify the event loop; in a kernel of the session's own, `sent` has done so already."""
        if not self._kernel.owned:
            self._worker.on_loop(self._worker.has_begun, self._execution)

    def input_requested(self, request: InputRequest) -> None:
        """Record that code waits for input."""
        self._worker.control.input_requested(self._execution, request)

    def ended(self, outcome: ExecuteOutcome) -> None:
        """Record the end."""
        if self._execution.left_behind:
            return
        if outcome.exits:
            self._worker.on_loop(self._worker.exits, self._execution, outcome)
        else:
            self._worker.recorder.ended(self._execution, outcome)

    def failed(self, error: Exception) -> None:
        """Pass the error to the worker, which waits for the execution's end."""
        self._worker.on_loop(settle, self._execution.ended, error)

    def outputs_changed(self) -> None:
        """Notify the observers of the execution."""
        self._worker.output_changed(self._execution)


def _has_room(execution: LiveExecution, kernel: Kernel) -> bool:
    """Return whether a kernel can be copied once more, if the execution is a trial."""
    return not execution.spec.trial or kernel.turns.has_trial_room
