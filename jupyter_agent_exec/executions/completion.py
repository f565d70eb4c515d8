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
    asks = any(e.input is not None and e.input.asked_at != known for e in executions)
    if not wait or asks:
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    asked = [execution.asked for execution in executions]
    for execution in executions:
        if not execution.finished.done():
            await first_of(execution.finished, *asked, timeout=max(0, until - loop.time()))
            if not execution.finished.done():
                return
