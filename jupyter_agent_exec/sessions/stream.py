"""The events of an execution, while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from ..executions.execution import LiveExecution
from ..inert import InertCopy
from ..inert import inert as inert_copy
from ..models import Execution, OutputChange, StatusChange
from ..records import ExecutionRecord
from ..types import Output
from . import answers
from .session import LiveSession

MERGE_DELAY = 0.05
"""Seconds for which changes of outputs are gathered before they are sent."""

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent, so that no proxy closes the connection."""

END = "end"
"""Id of the last event."""


class Event(NamedTuple):
    """A server-sent event: its kind, an id to resume from, and its data."""

    kind: Literal["accepted", "status", "output", "finished"]
    id: str
    data: Execution | StatusChange | OutputChange


async def replay(
    record: ExecutionRecord, base_url: str, *, resumed: bool, inert: bool = False
) -> AsyncIterator[Event]:
    """Yield the events of an execution that has finished.

    A client that resumes gets the last event alone: it has all outputs.
    """
    if not resumed:
        yield Event("accepted", "0", _without_outputs(record, base_url))
        outputs: Sequence[Output] = record.outputs
        if inert:
            outputs, _ = await asyncio.to_thread(inert_copy, record.outputs)
        for index, output in enumerate(outputs):
            yield Event("output", str(index + 1), OutputChange(index=index, output=output))
    whole = await asyncio.to_thread(answers.execution, record, base_url, inert=inert)
    yield Event("finished", END, whole)


async def follow(
    session: LiveSession,
    execution: LiveExecution,
    base_url: str,
    *,
    resumed: bool,
    inert: bool = False,
) -> AsyncIterator[Event | None]:
    """Yield the events of an execution until it has finished, and None when nothing happens.

    A client that resumes gets a change that drops its outputs, and then all outputs again. Its
    connection may have ended between changes that belong together.
    """
    version = 0
    copy = InertCopy() if inert else None
    if resumed:
        yield Event("output", "0", OutputChange(index=0, truncate=True))
    else:
        accepted = _without_outputs(session.execution_record(execution), base_url)
        yield Event("accepted", "0", accepted)
    sent: StatusChange | None = None
    with execution.watching() as changed:
        while not execution.refused:
            changed.clear()
            finished = execution.finished.done()
            status = StatusChange(
                status=execution.status,
                started_at=execution.started_at,
                waiting_for=execution.waiting_for,
                input=execution.input,
            )
            if status != sent and not finished:
                sent = status
                yield Event("status", str(version), status)
            changes: Sequence[OutputChange]
            version, changes = execution.changes(version)
            if copy is not None:
                changes = await copy.feed_without_blocking(changes)
            for index in range(len(changes)):
                yield Event("output", str(version), changes[index])
            del changes  # frees their memory while this waits
            if finished:
                record = session.execution_record(execution)
                whole = await asyncio.to_thread(answers.execution, record, base_url, inert=inert)
                yield Event("finished", END, whole)
                return
            try:
                await asyncio.wait_for(changed.wait(), HEARTBEAT)
            except TimeoutError:
                yield None
            else:
                await asyncio.wait({execution.finished}, timeout=MERGE_DELAY)


def _without_outputs(record: ExecutionRecord, base_url: str) -> Execution:
    """Return an execution as it was accepted; its outputs follow as events."""
    return answers.execution(replace(record, outputs=[], error=None, blobs=()), base_url)
