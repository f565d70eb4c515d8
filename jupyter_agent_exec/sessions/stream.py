"""An execution as events, as it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from ..models import Execution, OutputChange, StatusChange
from ..records import ExecutionRecord
from . import answers
from .execution import LiveExecution
from .session import LiveSession

MERGE_DELAY = 0.05
"""Seconds for which changes of outputs are gathered before they are sent."""

END = "end"
"""Id of the last event."""


class Event(NamedTuple):
    """What is sent: the kind, an id to resume from, and the data."""

    kind: Literal["accepted", "status", "output", "finished"]
    id: str
    data: Execution | StatusChange | OutputChange


def replay(record: ExecutionRecord, base_url: str, *, resumed: bool) -> list[Event]:
    """Return the events of an execution that has finished.

    Whoever resumes is given the end alone: it holds the outputs whole.
    """
    told = answers.execution(record, base_url)
    if resumed:
        return [Event("finished", END, told)]
    return [
        Event("accepted", "0", _without_outputs(record, base_url)),
        *(
            Event("output", str(index + 1), OutputChange(index=index, output=output))
            for index, output in enumerate(record.outputs)
        ),
        Event("finished", END, told),
    ]


async def follow(
    session: LiveSession, execution: LiveExecution, base_url: str, *, after: str | None
) -> AsyncIterator[Event]:
    """Yield the events of an execution until it has finished.

    Parameters
    ----------
    after
        Id of the last event that was seen; None to begin at the beginning.
    """
    version = int(after) if after is not None and after.isdigit() else 0
    if after is None:
        record = session.execution_record(execution)
        yield Event("accepted", "0", _without_outputs(record, base_url))
    told: StatusChange | None = None
    changed = session.watch(execution)
    try:
        while True:
            changed.clear()
            finished = execution.finished.done()
            status = StatusChange(status=execution.status, started_at=execution.started_at)
            if status != told and not finished:
                told = status
                yield Event("status", str(version), status)
            version, changes = session.changes(execution, version)
            for change in changes:
                yield Event("output", str(version), change)
            if finished:
                break
            await changed.wait()
            await asyncio.wait({execution.finished}, timeout=MERGE_DELAY)
    finally:
        session.unwatch(execution, changed)
    yield Event("finished", END, answers.execution(session.execution_record(execution), base_url))


def _without_outputs(record: ExecutionRecord, base_url: str) -> Execution:
    """Return an execution as it was accepted; its outputs follow as events."""
    return answers.execution(replace(record, outputs=[], error=None, blobs=()), base_url)
