"""The kernels of one session, one after the other: each is an incarnation.

A kernel ends because its code or a user ends it, or because the session closes. Then the session
lets go of it, and the next execution gets a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from ..errors import AgentExecError, KernelUnavailable
from ..kernels.channels import KernelDeath
from ..kernels.kernel import Kernel, KernelSource
from ..kernels.person_executions import PersonExecution
from ..models import SessionKernel
from ..records import SERVER, By, KernelEnded, KernelStarted, timestamp
from ..tasks import first_of, settle, start_apart
from ..types import RestartReason
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .recorder import Recorder
from .state import Ending


class SessionKernels:
    """Gives a session its kernel, and a new kernel when that one has ended.

    Parameters
    ----------
    begin_with
        Called with each new kernel before the session runs anything else in it.
    """

    def __init__(
        self,
        executions: LiveExecutions,
        recorder: Recorder,
        source: KernelSource,
        begin_with: Callable[[Kernel], Awaitable[None]],
    ) -> None:
        self._executions = executions
        self._recorder = recorder
        self.source = source
        self._begin_with = begin_with
        self._lock = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._gone: RestartReason | None = None
        self._record_person: Callable[[PersonExecution], None] | None = None
        self.current: Kernel | None = None
        self.number = 0
        """The number of the current incarnation; 1 for the first."""
        self.untold: RestartReason | None = None
        """Why the variables were lost; None once an execution has reported it."""

    def model(self) -> SessionKernel | None:
        """Return the kernel and its state."""
        if self.current is None:
            return None
        return SessionKernel(
            id=self.current.id,
            name=self.current.name,
            execution_state=self.current.connection.execution_state,
            incarnation=self.number,
        )

    # -- take --------------------------------------------------------------------------------------

    async def confirmed(self) -> Kernel | None:
        """Check that the kernel is still the session's; return the kernel if it can be used."""
        kernel = self._usable()
        gone = None if kernel is None else await self.source.parted(kernel)
        if kernel is not None and kernel is self.current and gone is not None:
            await self._died(kernel, gone)
        return self._usable()

    async def fresh(self, first: Kernel | None = None) -> Kernel:
        """Return the kernel; if there is none, `first`, which has not run anything, or a new one.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        async with self._lock:
            if self._watch is not None and self._is_dying():
                await asyncio.wait({self._watch})  # until the kernel's end is recorded
            if self.current is None:
                await self._adopt(first or await self.source.take())
            if self.current is None:
                raise KernelUnavailable("The kernel was ended when it had just been started.")
            return self.current

    async def fresh_unless(self, withdrawn: asyncio.Future[None]) -> Kernel | None:
        """Return the kernel as `fresh` does; return None if `withdrawn` is done first."""
        fresh = asyncio.create_task(self.fresh(), name="fresh kernel")
        await first_of(fresh, withdrawn)
        if fresh.done():
            return fresh.result()
        self._executions.tasks.start(_ignore(fresh), fresh.get_name())
        return None

    async def begun(self) -> None:
        """Wait until no kernel is being started."""
        async with self._lock:
            return

    async def _adopt(self, kernel: Kernel) -> None:
        self.number += 1
        self.current = kernel
        model = self.model()
        assert model is not None
        try:
            started = KernelStarted(
                at=timestamp(),
                by=SERVER,
                kernel=model,
                reason=self._gone,
                display_name=kernel.display_name,
                language_info=kernel.language_info,
            )
            await self._recorder.write([started])
        except BaseException:
            if kernel is self.current:
                self.number -= 1
                self.current = None
                await kernel.let_go()
            raise
        if kernel is not self.current:
            return  # it was ended meanwhile
        self.untold = self._gone
        self._watch = start_apart(self._watch_over(kernel), f"death of {kernel.id}")
        try:
            self._executions.notice("kernel")
            self._listen(kernel)
            await self._begin_with(kernel)
        except AgentExecError as error:
            if kernel is self.current:
                if kernel.owned:
                    await self._record_end(KernelDeath("shut_down", error.message), SERVER)
                self._detach()
                await self._let_go(kernel)
            raise

    def _listen(self, kernel: Kernel) -> None:
        """Record the kernel's late outputs and, if configured, the code that users run in it."""
        kernel.connection.on_late.add(self._recorder.late)
        if not kernel.owned:
            kernel.turns.on_change.add(self._turns_changed)
        if self._executions.session.record_people != "off":
            self._record_person = partial(self._recorder.person, kernel.id)
            kernel.connection.hear_people(self._record_person)

    def _turns_changed(self, _: None) -> None:
        self._executions.waits_changed()

    def _usable(self) -> Kernel | None:
        return None if self._is_dying() or self._lock.locked() else self.current

    def _is_dying(self) -> bool:
        return self.current is not None and self.current.is_ending

    # -- its end -----------------------------------------------------------------------------------

    async def end_of(self, kernel: Kernel) -> None:
        """Wait for the end of a kernel, unless the session has released it already."""
        if kernel is self.current and self._watch is not None:
            await asyncio.wait({self._watch})

    async def end(self, death: KernelDeath, by: By, ending: Ending | None = None) -> None:
        """Release the kernel; the running execution ends as `ending`, unless it has an ending.

        By default, it is interrupted.
        """
        running, kernel = self._executions.running, self.current
        if kernel is None:
            return
        if death.reason == "shut_down" and not kernel.owned:
            for execution in self._executions:  # a user shut it down; only later executions may run
                execution.withdraw("cancelled", f"It was not run. {death.message}")
        await self._record_end(death, by)
        is_running = running is self._executions.running  # else another session may have its turn
        if running is not None and is_running and running.held_by is kernel:
            ending = ending or Ending("interrupted", death.message)
            self._part(running, kernel, ending, death.message)
        self._executions.notice("kernel")
        self._executions.tasks.start(self._let_go(kernel), f"let go of {kernel.id}")

    async def leave(self, why: str, by: By) -> None:
        """Release the kernel because the session closes; a shared kernel keeps running."""
        running, kernel = self._executions.running, self.current
        if running is not None and running.is_behind and kernel is running.held_by:
            running.left_behind = True
            running.become(running.state.stopped(Ending("cancelled", why)))
            await self._recorder.unrun(running)
            self._detach()
            leftovers = self._executions.server.leftovers
            leftovers.start(self._clear_away(running), f"clear away {running.id}")
        elif kernel is not None and not kernel.owned:
            self._detach()
            if running is not None:
                self._part(running, kernel, Ending("interrupted", why), why)
            self._executions.tasks.start(self._let_go(kernel), f"let go of {kernel.id}")
        else:
            await self.end(KernelDeath("shut_down", why), by)

    async def _record_end(self, death: KernelDeath, by: By) -> None:
        kernel = self.current
        assert kernel is not None
        self._gone = death.reason
        self._detach()
        await self._recorder.record(
            KernelEnded(
                at=timestamp(),
                by=by,
                kernel_id=kernel.id,
                incarnation=self.number,
                reason=death.reason,
                message=death.message,
            )
        )

    def _detach(self) -> None:
        self.current = None
        if self._watch is not None and self._watch is not asyncio.current_task():
            self._watch.cancel()

    def _part(self, running: LiveExecution, kernel: Kernel, ending: Ending, message: str) -> None:
        """End an execution whose kernel the session has released."""
        running.become(running.state.stopped(ending))
        self._executions.withdraw_input(running)
        if running.trial is None:
            kernel.connection.abandon(message)
        else:
            running.trial.end()
        settle(running.parted)

    async def _let_go(self, kernel: Kernel) -> None:
        await kernel.let_go()
        kernel.connection.on_late.remove(self._recorder.late)
        if self._record_person is not None:
            kernel.connection.on_person.remove(self._record_person)
        kernel.turns.on_change.remove(self._turns_changed)

    async def _clear_away(self, execution: LiveExecution) -> None:
        """Wait until the kernel starts an execution from its own queue, then interrupt it."""
        kernel, run, turn = execution.held_by, execution.run, execution.turn
        assert kernel is not None
        assert run is not None
        assert turn is not None
        await first_of(execution.begun, kernel.connection.disconnected)
        await kernel.connection.heeds_interrupts(run)
        if kernel.connection.requests.is_running(run):
            await kernel.interrupt()
        await kernel.connection.free()
        kernel.turns.leave(turn)
        await self._let_go(kernel)

    async def _watch_over(self, kernel: Kernel) -> None:
        death = await kernel.death()
        try:
            death = await self.source.explain(kernel, death)
        finally:  # if `explain` fails too: others wait until the kernel's end is recorded
            if kernel is self.current:
                await self._died(kernel, death)

    async def _died(self, kernel: Kernel, death: KernelDeath) -> None:
        """Release a kernel that ended by itself, or that somebody else ended."""
        self._executions.server.log.warning("%s: %s", self._executions.session.id, death.message)
        ending = Ending("interrupted", f"{death.message} Its variables are gone.")
        if death.reason == "undone":
            ending = Ending("interrupted", death.message)
        elif death.reason in ("died", "rescued"):
            ending = Ending("kernel_died", death.message)
        await self.end(death, SERVER, ending)


async def _ignore(fresh: asyncio.Future[Kernel]) -> None:
    """Wait for a kernel start whose result is no longer needed; ignore its errors."""
    with suppress(AgentExecError):
        await fresh
