"""How a session begins with a kernel: its preload and init source run there before all else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from ..errors import AgentExecError, InitFailed
from ..kernels.kernel import Kernel
from ..records import SERVER
from ..tasks import Tasks, first_of
from ..terminal import clean
from ..types import SessionId
from .execution_queue import Lane

INIT_WAIT: Final = 30.0
"""Seconds for which opening waits for the init source in a kernel that others use too."""


class Beginning:
    """Begins with kernels, and waits for that neither for ever nor for a person.

    Parameters
    ----------
    sources
        What is run first in each kernel, in order, by the field that asked for it.
    tasks
        Of the session: a beginning goes on though it is not waited for any more.
    """

    def __init__(
        self,
        session_id: SessionId,
        lane: Lane,
        sources: Mapping[str, str],
        tasks: Tasks,
        log: logging.Logger,
    ) -> None:
        self._session_id = session_id
        self._lane = lane
        self._sources = sources
        self._tasks = tasks
        self._log = log

    @property
    def count(self) -> int:
        """How many sources are run first in a kernel."""
        return len(self._sources)

    async def first(self, kernel: Kernel) -> None:
        """Begin with the session's first kernel; InitFailed if its init source did not end well."""
        begun = asyncio.ensure_future(self._lane.incarnations.begin(kernel))
        await self._until(begun, None if kernel.owned else INIT_WAIT)

    async def fresh(self) -> None:
        """Begin with a fresh kernel.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        await self._until(asyncio.ensure_future(self._lane.incarnations.fresh()), None)

    async def run_init(self, kernel: Kernel) -> None:
        """Run what comes first in a kernel; InitFailed if it does not end well."""
        for name, source in self._sources.items():
            record = await self._lane.run_first(source, kernel, SERVER)
            if record.status == "ok":
                continue
            error = record.error
            why = "." if error is None else f": {error.ename}: {clean(error.evalue)}"
            raise InitFailed(
                f"The session's {name} ended with status {record.status}{why}",
                field=name,
                session_id=self._session_id,
                execution_id=record.id,
                error=error,
                reason=record.reason,
            )

    async def _until(self, begun: asyncio.Future[Any], timeout: float | None) -> None:
        held = asyncio.ensure_future(self._lane.asking.init_held.wait())
        await first_of(begun, held, timeout=timeout)
        held.cancel()
        if begun.done():
            begun.result()
        else:
            self._tasks.start(self._stay(begun), f"begin {self._session_id}")

    async def _stay(self, begun: asyncio.Future[Any]) -> None:
        try:
            await begun
        except AgentExecError as error:
            self._log.warning("%s: %s", self._session_id, error.message)
