"""The queue of a session: runs its executions in its kernel, one after the other.

The first execution in the queue requests a turn on the kernel, which other sessions and users may
share. `runner.py` then runs it. All of this is on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..errors import (
    AgentExecError,
    HistoryUnavailable,
    InitFailed,
    TooManyRequests,
)
from ..journal.journal import SessionJournal
from ..kernels.channels import KernelDeath
from ..kernels.kernel import Kernel, KernelSource
from ..kernels.kernel_queue import KernelQueue, Requester, Turn
from ..models import Execute, Session, StepOf, WaitingFor
from ..records import SERVER, ExecutionRecord
from ..tasks import Tasks, first_of
from ..text.counts import counted
from ..text.terminal import clean
from .approval_gate import ApprovalGate
from .environment import SessionEnvironment
from .execution import LiveExecution, LiveExecutions, QueueTime
from .incarnations import Incarnations
from .limits import ServerResources, SessionLimits
from .observer import ExecutionObserver
from .recorder import Recorder
from .rules import Permit
from .runner import Runner
from .spec import ExecutionSpec, check_python
from .state import Ending, InternalFailure

KERNEL: Final = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
"""What an execution waits for while there is no kernel, or the kernel's activity is unknown."""

INIT_WAIT: Final = 30.0
"""Seconds that opening a session waits for the init source in a shared kernel."""


class ExecutionQueue:
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
        resources: ServerResources,
    ) -> None:
        self._limits = limits
        self._permit = permit
        self._first_sources = first_sources
        self._log = resources.log
        self._trials = resources.trials
        self._rules = resources.rules
        self._turns = KernelQueue()
        self.tasks = Tasks(resources.log)
        """The tasks of the session; closing it waits for them."""
        self.executions = LiveExecutions(session, journal, observers)
        """The executions that have not finished."""
        self.recorder = Recorder(self.executions, disk=resources.disk, log=resources.log)
        self.incarnations = Incarnations(
            kernels,
            recorder=self.recorder,
            born=self._kernel_started,
            died=self._kernel_ended,
        )
        self.environment = SessionEnvironment(
            self.executions, self.incarnations, self.recorder, self.tasks
        )
        self.runner = Runner(
            self.executions,
            self.incarnations,
            self.recorder,
            self.environment,
            limits=limits,
            tasks=self.tasks,
            resources=resources,
        )
        self.gate = ApprovalGate(
            self.executions, permit, self.incarnations, self.recorder, self.tasks, resources
        )

    @property
    def running(self) -> LiveExecution | None:
        """The execution that was sent to the kernel and has not ended."""
        return self.runner.execution

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        running = self.running
        return len(self.executions) - (running is not None and not running.finished.done())

    # -- submit ------------------------------------------------------------------------------------

    def check(self, request: Execute) -> None:
        """Raise LanguageNotSupported or TrialUnavailable if the kernel cannot run a request."""
        if request.trial:
            self._trials.check(self.incarnations.current)
        if request.values:
            check_python(self.incarnations.current, "values")

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
        self._check_room(len(specs))
        executions = [self.executions.add(spec, self.gate) for spec in specs]
        places = [self._in_line(execution) for execution in executions]
        first, count = executions[0], len(executions)
        for number, execution in enumerate(executions if stop_on_error is not None else (), 1):
            execution.step = StepOf(first=first.id, number=number, of=count)
            if stop_on_error:
                stop = partial(_stop, execution, number, executions[number:])
                execution.finished.add_done_callback(stop)
        accepting = None
        if count > 1:
            accepting = self.tasks.start(self._accept(executions), f"executions {first.id} ff")
        for execution, place in zip(executions, places, strict=True):
            carry = self._carry(execution, place, accepting=accepting)
            self.tasks.start(carry, f"execution {execution.id}")
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

    # -- kernels -----------------------------------------------------------------------------------

    async def begin(self, kernel: Kernel) -> None:
        """Begin with the session's first kernel; raise InitFailed if a first source fails."""
        begun = asyncio.ensure_future(self.incarnations.begin(kernel))
        await self._until_begun(begun, None if kernel.owned else INIT_WAIT)

    async def begin_anew(self) -> None:
        """Begin with a fresh kernel.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        await self._until_begun(asyncio.ensure_future(self.incarnations.fresh()), None)

    async def _until_begun(self, begun: asyncio.Future[Any], timeout: float | None) -> None:
        """Wait for the first sources, but not for a user's approval of them."""
        held = asyncio.ensure_future(self.gate.init_waits.wait())
        await first_of(begun, held, timeout=timeout)
        held.cancel()
        if begun.done():
            begun.result()
        else:
            self.tasks.start(self._stay(begun), f"begin {self.executions.session.id}")

    async def _stay(self, begun: asyncio.Future[Any]) -> None:
        try:
            await begun
        except AgentExecError as error:
            self._log.warning("%s: %s", self.executions.session.id, error.message)

    async def _kernel_started(self, kernel: Kernel) -> None:
        """Run the first sources in a kernel that has not run anything of the session's."""
        self.executions.kernel_changed()
        self.runner.listen(kernel)
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

    async def _kernel_ended(self, kernel: Kernel, death: KernelDeath) -> None:
        """Release a kernel that ended by itself, or that somebody else ended."""
        self._log.warning("%s: %s", self.executions.session.id, death.message)
        ending = Ending("interrupted", f"{death.message} Its variables are gone.")
        if death.reason == "died":
            ending = Ending("kernel_died", death.message)
        await self.runner.end_kernel(death, ending, SERVER)

    async def _run_first(self, source: str, kernel: Kernel) -> ExecutionRecord:
        spec = ExecutionSpec.init_source(source, by=SERVER, limits=self._limits)
        execution = self.executions.add(spec, self.gate)
        try:
            await self._carry(execution, None, only=kernel)
        finally:
            self.gate.init_waits.clear()
        await execution.accepted  # or its error
        return await execution.finished

    # -- run ---------------------------------------------------------------------------------------

    def _in_line(self, execution: LiveExecution) -> Turn:
        """Add an execution to the end of the session's queue."""
        place = self._turns.ask(self._asker(execution))
        execution.ahead = lambda: self._turns.ahead_of(place) or KERNEL
        return place

    async def _carry(
        self,
        execution: LiveExecution,
        place: Turn | None,
        *,
        only: Kernel | None = None,
        accepting: asyncio.Task[None] | None = None,
    ) -> None:
        """Accept an execution and run it to its end; if that fails, end it for the next to run.

        Parameters
        ----------
        place
            Its place in the session's queue; None for one of the first sources, which has none.
        only
            The only kernel to use. By default, the execution waits for the next kernel if one ends.
        accepting
            Accepts it with other steps; None if it is to be accepted by itself.
        """
        try:
            if accepting is not None:
                await asyncio.wait({accepting})
            elif await self._run_at_once(execution, place, only):
                return
            else:
                await self.gate.accept(execution)
            if not execution.refused:
                await self._carry_accepted(execution, place, only)
        except Exception as error:
            await self._break_off(execution, error)
            if not (execution.refused and isinstance(error, HistoryUnavailable)):
                raise  # the owner of the task logs it
        finally:
            if execution.queue_time is not None:
                execution.queue_time.end()
            if place is not None:
                self._turns.leave(place)
            self.executions.waits_changed()

    async def _break_off(self, execution: LiveExecution, error: Exception) -> None:
        """End an execution that a bug interrupted; `lost` if it was sent, else `cancelled`."""
        if execution.started_at is not None:
            self.executions.accepted(execution)  # recorded together with the dispatch
        if not execution.accepted.done():
            self.executions.forget(execution, error)
        if execution.finished.done() or execution.refused:
            return
        is_sent = execution.run is not None and execution.run.is_sent
        execution.apply(InternalFailure(is_sent))
        await self.recorder.unrun(execution)

    async def _accept(self, executions: Sequence[LiveExecution]) -> None:
        """Accept steps in one write, or none of them."""
        try:
            await self.gate.accept(*executions)
        except Exception as error:
            for execution in reversed(executions):
                await self._break_off(execution, error)
            if not isinstance(error, HistoryUnavailable):
                raise  # the owner of the task logs it

    async def _run_at_once(
        self, execution: LiveExecution, place: Turn | None, only: Kernel | None
    ) -> bool:
        """Accept and dispatch an execution in one write, and run it; False if it has to wait."""
        kernel = only
        if place is not None and place.done():
            kernel = await self.incarnations.confirmed()
        if kernel is None or not kernel.turns.free or not _has_room(execution, kernel):
            return False
        is_allowed = self.gate.is_allowed(execution) and self._refusal(execution) is None
        if not is_allowed or execution.withdrawn.done() or self.environment.is_due(execution):
            return False
        turn = kernel.turns.ask(self._asker(execution))
        if not turn.done() or turn.cancelled():
            kernel.turns.leave(turn)
            return False
        self._count_queue_time(execution)
        await self.runner.run(execution, kernel, turn, accept=True)
        return True

    async def _carry_accepted(
        self, execution: LiveExecution, place: Turn | None, only: Kernel | None = None
    ) -> None:
        """Run an accepted execution to its end; parameters are those of `_carry`."""
        self._count_queue_time(execution)
        try:
            if place is None or await self._until(place, execution):
                await self._carry_in(execution, only)
        except AgentExecError as error:
            execution.withdraw("cancelled", f"It was not run: {error.message}")
            if not execution.withdrawn.done():
                raise  # it was sent
        finally:
            if execution.withdrawn.done() and not execution.finished.done():
                await self.recorder.unrun(execution)

    async def _carry_in(self, execution: LiveExecution, only: Kernel | None) -> None:
        """Wait for a turn on the kernel, and run an execution there."""
        gone = () if only is None else (only.connection.disconnected,)
        while await self.gate.wait_until_allowed(execution, *gone):
            execution.ahead = lambda: KERNEL
            kernel = only or await self.incarnations.fresh_unless(execution.withdrawn, self.tasks)
            if kernel is None:
                return
            if not self.gate.is_allowed(execution):
                continue  # the kernel is a new incarnation, or agents were paused meanwhile
            if self.environment.is_due(execution):
                await self.environment.look()
            if execution.spec.trial and not kernel.turns.has_trial_room:
                room = kernel.turns.until_trial_ends()
                await first_of(room, execution.withdrawn, kernel.connection.disconnected)
                if kernel.connection.disconnected.done():
                    await self.incarnations.end_of(kernel)
                continue
            turn = kernel.turns.ask(self._asker(execution))
            execution.ahead = partial(kernel.turns.ahead_of, turn)
            self.executions.waits_changed()
            try:
                granted = await self._until(turn, execution)
                await self._permit.look()
                await self._rules.decisions.refresh()
                is_right = only is not None or await self.incarnations.confirmed() is kernel
            except Exception:
                kernel.turns.leave(turn)  # other sessions wait for the kernel too
                raise
            is_right = is_right and not turn.cancelled() and self.gate.is_allowed(execution)
            is_right = is_right and _has_room(execution, kernel)
            refusal = self._refusal(execution)
            if refusal is not None:
                execution.withdraw("cancelled", f"It was not run: {refusal}")
            if granted and is_right and not execution.withdrawn.done():
                await self.runner.run(execution, kernel, turn, accept=False)
                return
            kernel.turns.leave(turn)
            if only is not None and turn.cancelled():
                break
            if turn.cancelled() or kernel.is_ending:
                await self.incarnations.end_of(kernel)
        if only is not None:
            execution.withdraw("cancelled", "Its kernel ended before it ran.")

    def _refusal(self, execution: LiveExecution) -> str | None:
        """Return why an execution may not be sent to the session's kernel; None if it may."""
        path = self.incarnations.kernels.path
        return self._permit.refusal(path, looks=execution.spec.trial)

    def _count_queue_time(self, execution: LiveExecution) -> None:
        """Start an execution's queue timer, if it has a queue timeout."""
        timeout = execution.spec.queue_timeout
        if timeout is not None and not execution.spec.init:
            elapsed = partial(self.runner.queue_time_elapsed, execution)
            execution.queue_time = QueueTime(timeout, elapsed)
            execution.queue_time.run(self.gate.time_counts)

    async def _until(self, turn: Turn, execution: LiveExecution) -> bool:
        """Wait for a turn; return False if the execution was withdrawn instead."""
        await first_of(turn, execution.withdrawn)
        return not execution.withdrawn.done()

    def _asker(self, execution: LiveExecution) -> Requester:
        return Requester(self.executions.session.agent.name, execution.id)


def _has_room(execution: LiveExecution, kernel: Kernel) -> bool:
    """Return whether a kernel can be copied once more, if the execution is a trial."""
    return not execution.spec.trial or kernel.turns.has_trial_room


def _stop(
    execution: LiveExecution,
    number: int,
    behind: Sequence[LiveExecution],
    finished: asyncio.Future[ExecutionRecord],
) -> None:
    """Cancel the steps behind one that failed, before the session's next execution can start."""
    status = finished.result().status
    if execution.spec.is_failure(status):
        for each in behind:
            each.withdraw("cancelled", f"It was not run: step {number} ended with {status}.")
