"""Those of a session's executions that wait: behind whom, and for how long they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..records import SERVER
from ..tasks import Tasks
from ..types import ExecutionId
from .approval_gate import Asking, GiveUp
from .execution import LiveExecution
from .permission import QueueTime
from .runner import Ending, InKernel


class Waiting:
    """Tells what executions wait for, and ends those that wait too long.

    Parameters
    ----------
    live
        The session's executions that are not finished, in order.
    changed
        Called when an execution waits for something else.
    tasks
        Of the session.
    """

    def __init__(
        self,
        live: Mapping[ExecutionId, LiveExecution],
        asking: Asking,
        in_kernel: InKernel,
        *,
        changed: Callable[[LiveExecution], None],
        give_up: GiveUp,
        tasks: Tasks,
    ) -> None:
        self._live = live
        self._asking = asking
        self._in_kernel = in_kernel
        self._changed = changed
        self._give_up = give_up
        self._tasks = tasks

    def look(self) -> None:
        """Tell of executions that wait for something else now, and have their time count or not.

        It does not while agents are paused, or while one of the session asks for approval.
        """
        counts = self._asking.time_counts
        for execution in list(self._live.values()):
            if execution.queue_time is not None and execution.run is None:
                execution.queue_time.run(counts)
            waiting_for = execution.waiting_for
            if waiting_for != execution.told_waiting_for:
                execution.told_waiting_for = waiting_for
                self._changed(execution)

    def count(self, execution: LiveExecution) -> QueueTime:
        """Have the time count that an execution waits for its turn."""
        over = partial(self._over, execution)
        execution.queue_time = QueueTime(execution.queue_timeout, over)
        execution.queue_time.run(self._asking.time_counts)
        return execution.queue_time

    def _over(self, execution: LiveExecution) -> None:
        """End what has not begun; if it was sent already, the kernel's queue has it."""
        if execution.begun.done() or execution.finished.done():
            return
        reason = f"It did not get its turn within {execution.queue_timeout:g} seconds."
        if execution is self._in_kernel.execution:
            ending: Ending = ("timed_out", reason)
            self._tasks.start(
                self._in_kernel.interrupt(execution, ending, "timed_out", SERVER),
                f"timeout {execution.id}",
            )
        else:
            self._give_up(execution, "timed_out", reason)
