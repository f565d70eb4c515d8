"""Previews: trials of code that waits for approval, for the user who decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Literal

import msgspec

from ..kernels.execute_request import ExecuteOutcome, ExecuteRequest, RequestObserver
from ..kernels.kernel import Kernel
from ..kernels.trials.trial import NO_TRIAL, REFUSED, Trial
from ..models import Preview
from ..records import Payload
from ..tasks import first_of
from ..text.inert import inert
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .session_kernels import SessionKernels
from .state import MAY_HANG

SECONDS = 20.0
"""How long the code may run, unless its own timeout is shorter."""

MOST_OUTPUT_BYTES: Final = 1_000_000

PENDING: Final = Preview(status="pending")
FAILED: Final = Preview(status="none", reason="The trial failed in the server; its log says how.")
OFF: Final = Preview(status="none", reason="The operator of this server has switched off previews.")
NO_KERNEL: Final = Preview(status="none", reason="There is no kernel yet.")


class Previews:
    """Tries the code of one session that waits for approval."""

    def __init__(self, executions: LiveExecutions, kernels: SessionKernels) -> None:
        self._executions = executions
        self._kernels = kernels
        self._rules = executions.server.rules
        self._trials = executions.server.trials

    async def show(self, execution: LiveExecution, over: asyncio.Future[None]) -> None:
        """Set an execution's preview, unless `over` is done first, which ends the trial."""
        execution.preview, preview = PENDING, FAILED
        try:
            preview = await self._preview(execution, over)
        finally:
            if not over.done():
                execution.preview = preview
                self._executions.notice("approvals")

    async def _preview(self, execution: LiveExecution, over: asyncio.Future[None]) -> Preview:
        kernel = self._kernels.current
        if not self._trials.previews:
            return OFF
        if kernel is None:
            return NO_KERNEL
        fault = self._trials.fault(kernel)
        if fault is not None:
            return Preview(status="none", reason=fault)
        while not over.done():
            if self._rules.paused is not None:
                await first_of(self._rules.decisions.until_pause_changes(), over)
                continue
            if not kernel.turns.has_trial_room:
                await first_of(kernel.turns.until_trial_ends(), over)
                continue
            turn = kernel.turns.ask(execution.asker)
            try:
                await first_of(turn, over)
                if turn.cancelled():
                    break
                if not over.done() and kernel.turns.has_trial_room and self._rules.paused is None:
                    leave = partial(kernel.turns.leave, turn)
                    return await self._try(execution, kernel, over, leave)
            finally:
                kernel.turns.leave(turn)
        return Preview(status="none", reason="The kernel has ended.")

    async def _try(
        self,
        execution: LiveExecution,
        kernel: Kernel,
        over: asyncio.Future[None],
        forked: Callable[[], None],
    ) -> Preview:
        """Run the trial; the kernel is free for others as soon as it has forked."""
        seconds = min(SECONDS, execution.spec.timeout)
        run = ExecuteRequest(
            id=execution.id,
            source=execution.source,
            store_history=False,
            max_output_bytes=min(MOST_OUTPUT_BYTES, execution.spec.max_output_bytes),
            sink=None,
            observer=RequestObserver(),
        )
        trial = Trial(run, kernel.connection, self._trials, seconds)
        late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = asyncio.get_running_loop().call_later(seconds, late.set_result, None)
        for future in (late, over):
            future.add_done_callback(lambda _: trial.end())
        kernel.turns.begin_trial(execution.id)
        try:
            outcome, fault = await trial.run(forked)
        finally:
            timer.cancel()
            kernel.turns.end_trial(execution.id)
        if outcome is None or fault is not None:
            return Preview(status="none", reason=f"{NO_TRIAL}: {fault}.")
        return _preview(outcome, seconds if late.done() else None)


def _preview(outcome: ExecuteOutcome, timeout: float | None) -> Preview:
    """Return what a user is shown of a trial.

    Parameters
    ----------
    timeout
        Seconds after which it was ended; None if it was not.
    """
    status: Literal["ok", "error", "timed_out"] = "ok" if outcome.status == "ok" else "error"
    reason = None if outcome.reason == REFUSED else outcome.reason
    if timeout is not None and outcome.error is None and status != "ok":
        status, reason = "timed_out", f"The trial was ended after {timeout:g} seconds. {MAY_HANG}"
    return Preview(
        status=status,
        reason=reason,
        outputs=inert(outcome.outputs)[0],
        omitted=outcome.omitted,
        error=outcome.error,
        changes=outcome.variables,
        seal=outcome.seal,
    )


def shown_payload(preview: Preview | None) -> list[Payload]:
    """Return what to record of a preview with a decision: the payload, if the trial had ended."""
    if preview is None or preview.status == "pending":
        return []
    return [Payload.of(msgspec.json.encode(preview), is_redacted=True)]
