"""The routes of executions: run code, wait for it, follow it, answer it, cancel it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace
from tornado import web

from ..auth.operations import requires
from ..auth.validation import at_most_one
from ..executions.execution import LiveExecution
from ..models import (
    Cancel,
    Execute,
    Execution,
    ExecutionList,
    ExecutionsQuery,
    GiveInput,
    OutputChange,
    RunSteps,
    StatusChange,
    Steps,
    StreamQuery,
    Text,
    TextQuery,
    WaitQuery,
    json_pieces,
)
from ..records import ExecutionRecord
from ..text.inert import InertCopy
from ..text.inert import inert as inert_copy
from ..types import FINAL_STATUSES, Output
from . import answers
from .handlers import SessionsBase
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


class ExecutionsHandler(SessionsBase):
    """The executions of a session."""

    @web.authenticated
    @requires("history:read", query=ExecutionsQuery, answers={200: ExecutionList})
    async def get(self, session_id: str, query: ExecutionsQuery) -> None:
        """List a session's executions in order."""
        at_most_one(query, "after", "before")
        records, next_after = await self.history.executions(session_id, query)
        await self.answer_large(
            records,
            lambda executions: ExecutionList(executions=executions, next_after=next_after),
            inert=query.inert,
        )

    @web.authenticated
    @requires(
        "look",
        body=Execute,
        answers={201: Execution, 202: Execution},
        headers=("Idempotency-Key",),
    )
    async def post(self, session_id: str, body: Execute) -> None:
        """Run a source once. 201: it has finished; 202: it still waits or runs."""
        if not body.trial:
            await self.access.session(self.caller, "exec", session_id)
            await self.authorize_cells(session_id, body.placement)
        with self.manager.holding(self.caller, body.wait):
            record = await self.manager.execute(session_id, body, self.caller, self.idempotency_key)
        await self.answer_execution(self.manager.with_news(record), asked=True)


class ExecutionHandler(SessionsBase):
    """One execution."""

    @web.authenticated
    @requires("history:read", query=WaitQuery, answers={200: Execution})
    async def get(self, execution_id: str, query: WaitQuery) -> None:
        """Look at an execution, any number of times."""
        with self.manager.holding(self.caller, query.wait):
            record = await self.manager.execution(execution_id, query.wait, query.asked_at)
        await self.answer_execution(record, inert=query.inert)


class CancelHandler(SessionsBase):
    """The cancellation of an execution."""

    @web.authenticated
    @requires("stop", body=Cancel, answers={200: Execution})
    async def post(self, execution_id: str, body: Cancel) -> None:
        """Cancel a waiting execution, or interrupt a running one."""
        await self.answer_execution(await self.manager.cancel(execution_id, self.caller))


class StreamHandler(SessionsBase):
    """An execution as server-sent events."""

    @web.authenticated
    @requires(
        "history:read",
        query=StreamQuery,
        answers={200: "text/event-stream"},
        headers=("Last-Event-ID",),
    )
    async def get(self, execution_id: str, query: StreamQuery) -> None:
        """Follow an execution; `Last-Event-ID` resumes."""
        with self.manager.streaming(self.caller):
            await self._follow(execution_id, inert=query.inert)

    async def _follow(self, execution_id: str, *, inert: bool) -> None:
        resumed = "Last-Event-ID" in self.request.headers
        live = self.history.watching(execution_id)
        record = None if live else await self.history.finished(execution_id)
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")
        if live is not None:
            async for event in follow(*live, self.public_path, resumed=resumed, inert=inert):
                await self.send_event(event)
                del event  # frees its memory while this waits for the next one
        elif record is not None:
            async for event in replay(record, self.public_path, resumed=resumed, inert=inert):
                await self.send_event(event)

    async def send_event(self, event: Event | None) -> None:
        """Send an event, or a comment that keeps the stream open."""
        self.check_token()
        if event is None:
            await self.send(b": nothing new\n\n")
            return
        before = f"event: {event.kind}\nid: {event.id}\ndata: ".encode()
        for piece in json_pieces(event.data):
            await self.send(before + piece)
            before = b""
        await self.send(b"\n\n")


class TextHandler(SessionsBase):
    """The whole text of an execution."""

    @web.authenticated
    @requires("history:read", query=TextQuery, answers={200: Text})
    async def get(self, execution_id: str, query: TextQuery) -> None:
        """Read a range of an execution's text, or with `match` the lines that contain a text."""
        self.answer(await self.history.text(self.caller, execution_id, query))


class StepsHandler(SessionsBase):
    """Several executions, one after the other."""

    @web.authenticated
    @requires("exec", body=RunSteps, answers={201: Steps, 202: Steps}, headers=("Idempotency-Key",))
    async def post(self, session_id: str, body: RunSteps) -> None:
        """Run several sources; 201 when all have finished, 202 when they go on."""
        await self.authorize_cells(session_id, *(step.placement for step in body.steps))
        with self.manager.holding(self.caller, body.wait):
            records = await self.manager.run_steps(
                session_id, body, self.caller, self.idempotency_key
            )
        self.check_token()
        records[0] = self.manager.with_news(records[0])
        finished = all(record.status in FINAL_STATUSES for record in records)
        self.set_status(201 if finished else 202)
        await self.answer_large(
            records, lambda executions: Steps(executions=executions, finished=finished)
        )


class InputHandler(SessionsBase):
    """The input that the code of an execution asks for."""

    @web.authenticated
    @requires("exec", body=GiveInput, answers={200: Execution})
    async def post(self, execution_id: str, body: GiveInput) -> None:
        """Answer the input request of an execution. Of several answers, the first one is used."""
        with self.manager.holding(self.caller, body.wait):
            record = await self.manager.give_input(execution_id, body, self.caller)
        await self.answer_execution(record)


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


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/sessions/{session_id}/executions", ExecutionsHandler),
    ("/sessions/{session_id}/steps", StepsHandler),
    ("/executions/{execution_id}", ExecutionHandler),
    ("/executions/{execution_id}/stream", StreamHandler),
    ("/executions/{execution_id}/text", TextHandler),
    ("/executions/{execution_id}/input", InputHandler),
    ("/executions/{execution_id}/cancel", CancelHandler),
]
