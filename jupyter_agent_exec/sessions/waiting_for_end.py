"""Waiting for executions, as whoever asked for them does."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..tasks import first_of
from .execution import LiveExecution


async def until_finished(
    executions: Collection[LiveExecution], wait: float, known: str | None = None
) -> None:
    """Wait until all have finished, or the code of one asks for input.

    Parameters
    ----------
    wait
        Seconds to wait at most.
    known
        When the input was asked for that whoever waits knows of already.
    """
    waits = {execution.finished for execution in executions if not execution.finished.done()}
    asks = any(e.input is not None and e.input.asked_at != known for e in executions)
    if not wait or not waits or asks:
        return
    ended = asyncio.ensure_future(asyncio.wait(waits))
    await first_of(ended, *(execution.asked for execution in executions), timeout=wait)
    ended.cancel()
