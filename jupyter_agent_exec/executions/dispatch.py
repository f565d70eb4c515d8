"""The last step towards a kernel: an execution is handed to the drain, which records and sends it.

`_in_drain_dispatch` and what ends a run are called by the kernel's drain in its own thread; all
else is on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import HistoryUnavailable
from ..journal.session import SessionJournal
from ..kernels.execute_request import Ended, InputRequest, Run
from ..kernels.kernel import Kernel
from ..models import ExecutionKernel
from ..records import SERVER, Dispatched, Entry, Payload, timestamp
from ..tasks import settle
from .execution import LiveExecution
from .limits import Bounds


class Sender:
    """Sends the executions of one session.

    Parameters
    ----------
    sent
        Called on the loop when an execution was sent.
    begun
        Called on the loop when a kernel that others use too took an execution up.
    ended
        Called in the drain's thread when a run has ended.
    asks
        Called in the drain's thread when the code of one asks for input; None if it may not.
    """

    def __init__(
        self,
        journal: SessionJournal,
        bounds: Bounds,
        *,
        sent: Callable[[LiveExecution], None],
        begun: Callable[[LiveExecution], None],
        ended: Callable[[LiveExecution, Ended], None],
        asks: Callable[[LiveExecution, InputRequest], None] | None,
    ) -> None:
        self._journal = journal
        self._bounds = bounds
        self._sent = sent
        self._begun = begun
        self._ended = ended
        self._asks = asks
        self._loop = asyncio.get_running_loop()

    def send(
        self, execution: LiveExecution, kernel: Kernel, told: ExecutionKernel, *, accept: bool
    ) -> asyncio.Future[None]:
        """Hand an execution to the kernel's drain; what comes back tells when it was sent.

        Parameters
        ----------
        told
            The kernel, as the record names it.
        accept
            Whether its acceptance is to be recorded as well, in the same write.
        """
        sent: asyncio.Future[None] = self._loop.create_future()
        execution.kernel = told
        execution.held_by = kernel
        execution.spill = self._journal.new_text_spill(self._bounds.max_text_bytes)
        execution.run = Run(
            id=execution.id,
            source=execution.source,
            store_history=not execution.init,
            max_output_bytes=execution.max_output_bytes,
            sink=execution.spill,
            before=partial(self._in_drain_dispatch, execution, accept, sent),
            sent=partial(self._on_loop, self._was_sent, execution, sent),
            after=partial(self._ended, execution),
            failed=partial(self._on_loop, execution.fail),
            begun=None if kernel.owned else partial(self._has_begun, execution),
            changed=execution.tell if execution.is_watched else None,
            looks=self._bounds.records_changes(kernel),
            values=execution.evaluated,
            subshell=execution.subshell,
            asks=partial(self._asks, execution) if self._asks and not execution.init else None,
        )
        kernel.connection.start(execution.run)
        return sent

    def _in_drain_dispatch(
        self, execution: LiveExecution, accept: bool, sent: asyncio.Future[None]
    ) -> bool:
        """Have it on disk that the execution is about to be sent; False if that cannot be."""
        assert execution.kernel is not None
        assert execution.run is not None
        at = timestamp(execution.run.started_at)
        entries: list[Entry] = [
            Dispatched(at=at, by=SERVER, execution_id=execution.id, kernel=execution.kernel)
        ]
        payloads: list[Payload] = []
        if accept:
            entry, payloads = execution.acceptance()
            entries.insert(0, entry)
        try:
            self._journal.append(entries, payloads)
        except HistoryUnavailable as error:
            self._on_loop(settle, sent, error)
            return False
        execution.started_at = at
        return True

    def _was_sent(self, execution: LiveExecution, sent: asyncio.Future[None]) -> None:
        assert execution.run is not None
        assert execution.held_by is not None
        if execution.held_by.owned:  # else somebody's cell may just have come before it
            settle(execution.begun)
            if not execution.finished.done():
                execution.status = "running"
        settle(sent)
        settle(execution.accepted)
        self._sent(execution)

    def _has_begun(self, execution: LiveExecution) -> None:
        assert execution.run is not None
        execution.started_at = timestamp(execution.run.started_at)
        if not execution.finished.done():
            execution.status = "running"
        settle(execution.begun)
        self._begun(execution)

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)
