"""The routes of executions: run code, wait for it, follow it, answer it, cancel it."""

from __future__ import annotations

from tornado import web

from ..auth.operations import requires
from ..errors import InvalidRequest
from ..models import (
    Cancel,
    Execute,
    Execution,
    ExecutionList,
    GiveInput,
    RunSteps,
    Steps,
    Text,
    TextMatches,
    json_pieces,
)
from ..queries import (
    ExecutionsQuery,
    StreamQuery,
    TextQuery,
    WaitQuery,
)
from ..types import FINAL_STATUSES
from .handlers import SessionsBase
from .stream import Event, follow, replay


class ExecutionsHandler(SessionsBase):
    """The executions of a session."""

    @web.authenticated
    @requires("history:read", query=ExecutionsQuery, answers={200: ExecutionList})
    async def get(self, session_id: str, query: ExecutionsQuery) -> None:
        """List a session's executions in order."""
        if query.after is not None and query.before is not None:
            raise InvalidRequest("before: not together with after.", field="before")
        records, next_after = await self.manager.history.executions(session_id, query)
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
            record = await self.manager.submission.execute(
                session_id, body, self.caller, self.idempotency_key
            )
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
        live = self.manager.watching(execution_id)
        record = None if live else await self.manager.history.finished(execution_id)
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
    @requires("history:read", query=TextQuery, answers={200: (Text, TextMatches)})
    async def get(self, execution_id: str, query: TextQuery) -> None:
        """Read a range of an execution's text, or with `grep` the lines that match."""
        text: Text | TextMatches
        if query.grep is None:
            text = await self.manager.history.text(
                self.caller, execution_id, query.offset, query.limit
            )
        else:
            text = await self.manager.history.grep(
                self.caller, execution_id, query.grep, query.offset, query.limit
            )
        self.answer(text)


class StepsHandler(SessionsBase):
    """Several executions, one after the other."""

    @web.authenticated
    @requires("exec", body=RunSteps, answers={201: Steps, 202: Steps}, headers=("Idempotency-Key",))
    async def post(self, session_id: str, body: RunSteps) -> None:
        """Run several sources; 201 when all have finished, 202 when they go on."""
        await self.authorize_cells(session_id, *(step.placement for step in body.steps))
        with self.manager.holding(self.caller, body.wait):
            records = await self.manager.submission.run_steps(
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


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/sessions/{session_id}/executions", ExecutionsHandler),
    ("/sessions/{session_id}/steps", StepsHandler),
    ("/executions/{execution_id}", ExecutionHandler),
    ("/executions/{execution_id}/stream", StreamHandler),
    ("/executions/{execution_id}/text", TextHandler),
    ("/executions/{execution_id}/input", InputHandler),
    ("/executions/{execution_id}/cancel", CancelHandler),
]
