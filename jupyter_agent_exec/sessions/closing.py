"""How a session ends: nothing new is taken, what runs is ended, and all of it is recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from ..errors import HistoryUnavailable
from ..executions.execution_queue import ExecutionQueue
from ..executions.limits import Bounds
from ..executions.shown_cells import ShownCells
from ..executions.state import Ending
from ..journal.journal import SessionJournal
from ..records import By, Closed, timestamp
from ..tasks import Tasks
from ..types import CloseReason, SessionId

END_TIMEOUT: Final = 5.0
"""Seconds beyond the interrupt's grace time to wait for the record of what ran."""

CLOSED_BECAUSE: Final[dict[str, str]] = {
    "closed": "The session was closed.",
    "idle": "It was not used for a long time.",
    "init_failed": "What runs first in its kernel failed.",
    "server_stopped": "The server stopped.",
    "server_died": "The server died.",
    "token_revoked": "The agent's token was revoked.",
    "token_expired": "The agent's token has expired.",
}


class Closing:
    """Closes one session.

    Parameters
    ----------
    closing
        Called when it begins to close.
    closed
        Called when its end is recorded.
    tasks
        Of the session, which are waited for.
    """

    def __init__(
        self,
        session_id: SessionId,
        queue: ExecutionQueue,
        cells: ShownCells,
        journal: SessionJournal,
        *,
        bounds: Bounds,
        closing: Callable[[], None],
        closed: Callable[[], None],
        tasks: Tasks,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._session_id = session_id
        self._queue = queue
        self._cells = cells
        self._journal = journal
        self._bounds = bounds
        self._tell_closing = closing
        self._tell_closed = closed
        self._tasks = tasks
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.has_begun = False
        """Whether nothing new is taken."""

    async def close(self, reason: CloseReason, by: By) -> None:
        """Take nothing new, end what runs, record it, and let the kernel go. Idempotent."""
        if not self.has_begun:
            self.has_begun = True
            why = CLOSED_BECAUSE[reason]
            for execution in self._queue.executions:
                execution.withdraw("cancelled", why)
            self._tasks.start(self._close(reason, why, by), f"close {self._session_id}")
        await asyncio.shield(self._closed)

    async def _close(self, reason: CloseReason, why: str, by: By) -> None:
        try:
            await self._end(reason, why, by)
        except Exception:
            self._log.exception("%s was not closed as it should be", self._session_id)
        finally:
            self._tell_closed()
            self._closed.set_result(None)

    async def _end(self, reason: CloseReason, why: str, by: By) -> None:
        self._tell_closing()
        queue, grace = self._queue, self._bounds.interrupt_grace
        if (running := queue.running) is not None and not running.is_behind:
            await queue.runner.interrupt(running, Ending("interrupted", why), "closing", by)
            await asyncio.wait({running.finished}, timeout=grace)
        await queue.runner.leave_kernel(Ending("interrupted", why), by)
        await self._tasks.end(timeout=grace + END_TIMEOUT)
        if queue.incarnations.current is not None:  # it had just been started
            await queue.runner.leave_kernel(Ending("interrupted", why), by)
            await self._tasks.end(timeout=END_TIMEOUT)
        await self._cells.close()
        await queue.incarnations.release()
        closed = Closed(at=timestamp(), by=by, reason=reason)
        try:
            await self._loop.run_in_executor(self._disk, self._journal.close, closed)
        except HistoryUnavailable as error:
            self._log.error("%s: its end is not recorded: %s", self._session_id, error.message)
        queue.recorder.stop()
