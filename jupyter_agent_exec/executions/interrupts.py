"""Interrupting what runs: ours, only while it runs, and what if it goes on all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from ..kernels.kernel import Death, Kernel
from ..records import SERVER, By, Entry, Interrupted, timestamp
from ..tasks import Tasks, first_of
from ..types import Status
from .execution import LiveExecution
from .limits import Bounds

Reason = Literal["asked", "cancelled", "timed_out", "closing"]


class Interrupts:
    """Interrupts the executions of one session.

    Parameters
    ----------
    record
        Writes an entry to the session's journal, later if it cannot be written now: code that has
        filled the disk must still be stopped.
    interrupting
        Called when a kernel is about to be interrupted.
    end_kernel
        Ends a kernel's life: how, how what runs in it ends, and by whom.
    tasks
        Of the session, which waits for them when it closes.
    """

    def __init__(
        self,
        bounds: Bounds,
        *,
        record: Callable[[Entry], Awaitable[None]],
        interrupting: Callable[[LiveExecution], None],
        end_kernel: Callable[[Death, tuple[Status, str], By], Awaitable[None]],
        tasks: Tasks,
    ) -> None:
        self._bounds = bounds
        self._record = record
        self._interrupting = interrupting
        self._end_kernel = end_kernel
        self._tasks = tasks

    async def interrupt(
        self, execution: LiveExecution, ending: tuple[Status, str], reason: Reason, by: By
    ) -> None:
        """Interrupt what was sent; whether that is obeyed is looked at later.

        What stands in the kernel's own queue, behind somebody's cells, is interrupted when its
        turn comes: before, the interrupt would hit those.
        """
        kernel = execution.held_by
        assert kernel is not None
        execution.ending = execution.ending or ending
        if execution.begun.done():
            await self._interrupt(execution, kernel, reason, by)
        else:
            self._tasks.start(
                self._when_begun(execution, kernel, reason, by), f"interrupt {execution.id} later"
            )

    def time_out(self, execution: LiveExecution) -> None:
        """Interrupt what has run for as long as it may."""
        if not execution.finished.done():
            reason = f"It was interrupted after its timeout of {execution.timeout:g} seconds."
            self._tasks.start(
                self.interrupt(execution, ("timed_out", reason), "timed_out", SERVER),
                f"timeout {execution.id}",
            )

    async def _when_begun(
        self, execution: LiveExecution, kernel: Kernel, reason: Reason, by: By
    ) -> None:
        await first_of(execution.begun, execution.finished)
        if not execution.finished.done():
            await self._interrupt(execution, kernel, reason, by)

    async def _interrupt(
        self, execution: LiveExecution, kernel: Kernel, reason: Reason, by: By
    ) -> None:
        assert execution.run is not None
        await kernel.connection.heeds_interrupts(execution.run)
        if execution.finished.done() or execution.parted.done():
            return
        await self._record(
            Interrupted(at=timestamp(), by=by, execution_id=execution.id, reason=reason)
        )
        if execution.finished.done() or execution.parted.done():
            return
        if kernel.owned or kernel.connection.is_running(execution.run):
            self._interrupting(execution)
            if execution.subshell is None:
                await kernel.interrupt()
            else:
                await kernel.connection.interrupt_nested(execution.run)
            self._tasks.start(self._look_after(execution, kernel), f"interrupt {execution.id}")

    async def _look_after(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Say so if an interrupt is ignored, and do what the limits say then."""
        await first_of(execution.finished, execution.parted, timeout=self._bounds.interrupt_grace)
        if execution.finished.done() or execution.parted.done():
            return
        execution.interrupt_ignored = True
        execution.tell()
        assert execution.ending is not None
        if kernel.owned and self._bounds.restart_if_interrupt_ignored:
            why = "The code ignored the interrupt, so its kernel was replaced."
            await self._end_kernel(Death("interrupt_ignored", why), execution.ending, SERVER)
        elif execution.ending[0] == "timed_out":
            kernel.connection.abandon(execution.ending[1])
