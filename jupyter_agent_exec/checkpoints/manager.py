"""Checkpoints of all kernels for which users have turned them on, and undo."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from ..auth.scopes import Caller
from ..errors import ExecutionNotFound, UndoUnavailable
from ..kernels.channels import KernelDeath
from ..kernels.kernel import Kernel
from ..kernels.live_kernels import LiveKernels, not_running
from ..kernels.server_kernels import ServerKernels
from ..models import CheckpointList, Undo, UndoneKernel
from ..records import ExecutionRecord, Undone, timestamp
from ..sessions.activity import Activity
from ..sessions.manager import AgentSessions
from ..sessions.session_history import SessionHistory
from ..types import FINAL_STATUSES, ExecutionId, KernelState
from .checkpoint import Refused
from .keeper import NOT_HERE, NOT_UNDONE, Keeper, why_never

SWITCHED_OFF: Final = "The administrator of this server has switched off checkpoints."


class Checkpoints:
    """Keeps checkpoints of kernels; an `executions.live_executions.Checkpoints`.

    Parameters
    ----------
    is_allowed
        Whether users may turn them on.
    most
        The most checkpoints that a kernel keeps.
    share
        The largest part of the free memory that a checkpoint may come to take.
    """

    def __init__(self, *, is_allowed: bool, most: int, share: float, log: logging.Logger) -> None:
        self._is_allowed = is_allowed
        self._most = most
        self._share = share
        self._log = log
        self._keepers: dict[str, Keeper] = {}

    def attach(
        self,
        kernels: ServerKernels,
        live: LiveKernels,
        sessions: AgentSessions,
        activity: Activity,
    ) -> None:
        """Connect it with the managers that it uses."""
        self._kernels, self._live = kernels, live
        self._sessions, self._activity = sessions, activity
        self._history: SessionHistory = sessions.history
        live.explain = self._explain

    # -- for the executions ------------------------------------------------------------------------

    def takes(self, kernel: Kernel) -> bool:
        """Return whether a checkpoint is due before each execution in a kernel."""
        keeper = self._keepers.get(kernel.id)
        if keeper is not None and kernel.owned:
            keeper.reason = f"{NOT_HERE}the kernel is an agent's own."
        return keeper is not None and not kernel.owned

    async def take(self, kernel: Kernel, execution: ExecutionId) -> None:
        """Make a checkpoint before an execution, if that is possible."""
        keeper = self._keepers.get(kernel.id)
        if keeper is None:
            return
        never = why_never(keeper.manager, kernel)
        if never is not None:
            keeper.reason = f"{NOT_HERE}{never}."
            return
        await keeper.take(kernel, execution)

    async def _explain(self, kernel_id: str, death: KernelDeath) -> KernelDeath:
        keeper = self._keepers.get(kernel_id)
        return death if keeper is None else await keeper.explain(death)

    # -- for the routes ----------------------------------------------------------------------------

    async def read(self, kernel_id: str) -> CheckpointList:
        """Return a kernel's checkpoints; raise KernelNotFound if there is no such kernel."""
        reason = self._why_not(kernel_id)
        keeper = self._keepers.get(kernel_id)
        if keeper is not None and reason is None:
            return await keeper.answer()
        return CheckpointList(
            enabled=keeper is not None,
            available=reason is None,
            reason=reason,
            checkpoints=[],
            rescued=None,
            not_undone=NOT_UNDONE,
        )

    async def set(self, kernel_id: str, enabled: bool) -> CheckpointList:
        """Turn a kernel's checkpoints on or off.

        Raises
        ------
        KernelNotFound
        UndoUnavailable
            The kernel can have none.
        """
        reason = self._why_not(kernel_id)
        if enabled and reason is not None:
            raise UndoUnavailable(reason, kernel_id=kernel_id)
        if not enabled:
            keeper = self._keepers.pop(kernel_id, None)
            if keeper is not None:
                await keeper.stop()
        elif kernel_id not in self._keepers:
            self._keepers[kernel_id] = Keeper(
                kernel_id,
                self._manager(kernel_id),
                self._live,
                self._forget,
                most=self._most,
                share=self._share,
                log=self._log,
            )
        return await self.read(kernel_id)

    async def undo(self, id: str, caller: Caller) -> Undo:
        """Make a kernel as it was before an execution.

        With an agent token, only what its session ran is taken back, after its end.

        Raises
        ------
        ExecutionNotFound
        UndoUnavailable, HistoryUnavailable, SessionClosed, Paused, TooManyRequests
            The kernel goes on unchanged.
        KernelUnavailable
            The copy failed in the last moment; the kernel has ended.
        """
        record = await self._history.execution(id)
        kernel = record.kernel
        keeper = None if kernel is None else self._keepers.get(kernel.id)
        if kernel is None or keeper is None:
            why = "no checkpoints are kept of the kernel in which it ran."
            raise UndoUnavailable(f"{NOT_HERE}{why}", execution_id=record.id)
        if caller.token is not None:
            session = await self._sessions.history.live_session(record.session_id)
            self._sessions.admit(session, caller, "An undo", is_code=False, executions=1)
        by = caller.by()
        death = KernelDeath(
            "undone",
            f"{by.said[:1].upper()}{by.said[1:]} undid what ran: the kernel's variables are those "
            "of before.",
        )
        try:
            taken_back = await keeper.undo(
                record.id,
                death,
                (record.execution_count or 0) + 1,
                partial(self._check, record, caller),
                partial(self._record, kernel.id, record.id, caller),
            )
        except Refused as error:
            raise UndoUnavailable(f"{NOT_HERE}{error}.", execution_id=record.id) from error
        state: KernelState = getattr(self._manager(kernel.id), "execution_state", None) or "idle"
        return Undo(
            kernel=UndoneKernel(id=kernel.id, name=kernel.name, execution_state=state),
            taken_back=taken_back,
            not_undone=NOT_UNDONE,
        )

    async def stop(self) -> None:
        """Drop all checkpoints."""
        while self._keepers:
            await self._keepers.popitem()[1].stop()

    async def _check(
        self, first: ExecutionRecord, caller: Caller, taken_back: Sequence[ExecutionId]
    ) -> None:
        """Raise Refused if an agent would take back more than what its session ran."""
        if caller.token is None:
            return
        for id in taken_back:
            try:
                record = await self._history.execution(id)
            except ExecutionNotFound:  # it was never accepted
                continue
            if record.session_id != first.session_id:
                raise Refused("it would take back what another session ran since")
            if record.status not in FINAL_STATUSES:
                raise Refused("code of your session still waits or runs; stop it first")

    async def _record(
        self,
        kernel_id: str,
        first: ExecutionId,
        caller: Caller,
        taken_back: Sequence[ExecutionId],
    ) -> None:
        """Record what is taken back, each in its session."""
        for id in taken_back:
            try:
                record = await self._history.execution(id)
            except ExecutionNotFound:  # it was never accepted
                continue
            if record.started_at is None:
                continue
            undone = Undone(at=timestamp(), by=caller.by(), execution_id=record.id, first=first)
            await self._history.decide(record.session_id, [undone])
            session = await self._history.session(record.session_id)
            self._activity.publish_execution(record, session.chain.length)
            live = self._history.open_session(record.session_id)
            if live is not None and record.status in FINAL_STATUSES:
                live.cells.late(record.id)  # its cell says so too, in a saved file
        if (runs := self._live.runs(kernel_id)) is not None:
            runs.take_back(taken_back)

    def _why_not(self, kernel_id: str) -> str | None:
        manager = self._manager(kernel_id)
        if not self._is_allowed:
            return SWITCHED_OFF
        never = why_never(manager)
        return None if never is None else f"{NOT_HERE}{never}."

    def _manager(self, kernel_id: str) -> Any:
        if kernel_id not in self._kernels:
            self._forget(kernel_id)
            raise not_running(kernel_id)
        return self._kernels.get_kernel(kernel_id)

    def _forget(self, kernel_id: str) -> None:
        """Forget a kernel that has been shut down. Its checkpoints have ended."""
        self._keepers.pop(kernel_id, None)
