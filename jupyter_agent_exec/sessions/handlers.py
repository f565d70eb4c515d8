"""The routes of agent sessions and their executions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
from tornado import web

from ..auth.handler import AgentExecHandler, requires
from ..errors import InvalidRequest
from ..models import (
    PIECE_BYTES,
    Cancel,
    CloseSession,
    Execute,
    Execution,
    ExecutionList,
    InterruptKernel,
    NotebookTarget,
    OpenSession,
    OutputChange,
    Placement,
    RestartKernel,
    SearchResults,
    ServerStatus,
    Session,
    SessionList,
    StatusChange,
    Text,
    TextMatches,
    json_pieces,
)
from ..records import ExecutionRecord
from ..text import output_size
from ..types import FINAL_STATUSES
from . import answers
from .manager import AgentSessions
from .queries import ExecutionsQuery, ExportQuery, SearchQuery, SessionsQuery, TextQuery, WaitQuery
from .stream import Event, follow, replay

LARGE_BYTES = 1 << 18
"""Of outputs, from which on an answer is prepared in a thread and sent in pieces."""

MAX_KEY_LENGTH = 200


class SessionsBase(AgentExecHandler):
    """Base of the handlers below."""

    manager: AgentSessions

    @property
    def idempotency_key(self) -> str | None:
        """The key with which something is asked for once only."""
        key = self.request.headers.get("Idempotency-Key")
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            raise InvalidRequest(
                f"Idempotency-Key: 1 to {MAX_KEY_LENGTH} characters.", field="Idempotency-Key"
            )
        return key

    async def authorize_cells(
        self, session_id: str, *placements: Placement | Literal["end", "none"]
    ) -> None:
        """Look whether a person may have cells in a session's notebook; a token's scopes say so."""
        live = self.manager.open_session(session_id)
        in_notebook = live is not None and live.path is not None
        has_cells = in_notebook and any(each != "none" for each in placements)
        if has_cells and self.caller.grants is None:
            await self.authorize("edit:notebook")

    async def answer_execution(self, record: ExecutionRecord, *, asked: bool = False) -> None:
        """Answer with an execution: 201 or 202 to whoever asked for it to be run."""
        self.check_still()
        if asked:
            self.set_status(201 if record.status in FINAL_STATUSES else 202)
            location = f"{self.base_url}{answers.NAMESPACE}/executions/{record.id}"
            self.set_header("Location", location)
        await self.answer_large([record], lambda told: told[0])

    async def answer_large(
        self, records: Sequence[ExecutionRecord], whole: Callable[[list[Execution]], Any]
    ) -> None:
        """Answer with what `whole` makes of executions, without holding up the loop."""

        def model() -> Any:
            return whole([answers.execution(record, self.base_url) for record in records])

        outputs = (output for record in records for output in record.outputs)
        if output_size(outputs, most=LARGE_BYTES) < LARGE_BYTES:
            self.write(msgspec.json.encode(model()))
            return
        for piece in json_pieces(await self.manager.in_thread(model)):
            await self.send(piece)

    async def send_pieces(self, pieces: Iterable[bytes]) -> None:
        """Send what comes piece by piece from something that blocks."""
        iterator = iter(pieces)
        while (piece := await self.manager.in_thread(lambda: next(iterator, None))) is not None:
            await self.send(piece)


class SessionsHandler(SessionsBase):
    """All agent sessions."""

    @web.authenticated
    @requires(
        "history:read",
        query=SessionsQuery,
        answers={200: SessionList},
        agents="the sessions that it may read",
    )
    async def get(self, query: SessionsQuery) -> None:
        """List sessions: the open ones first, then the closed, each the newest first."""
        sessions, next_after = await self.manager.sessions(
            query, only=self.access.only(self.caller)
        )
        self.answer(SessionList(sessions=sessions, next_after=next_after))

    @web.authenticated
    @requires(
        "exec",
        body=OpenSession,
        answers={201: Session, 200: Session},
        agents="a session with a target within its scopes",
    )
    async def post(self, body: OpenSession) -> None:
        """Open a session; 200 with the one that its client has open."""
        if isinstance(body.target, NotebookTarget) and self.caller.grants is None:
            await self.authorize("edit:notebook")
        record, new = await self.manager.open(body, self.caller)
        location = f"{self.base_url}{answers.NAMESPACE}/sessions/{record.id}"
        self.answer(record, 201 if new else 200, location=location)


class SessionHandler(SessionsBase):
    """One session."""

    @web.authenticated
    @requires("history:read", answers={200: Session})
    async def get(self, session_id: str) -> None:
        """Look at a session."""
        self.answer(await self.manager.session(session_id))


class CloseHandler(SessionsBase):
    """The end of a session."""

    @web.authenticated
    @requires("stop", body=CloseSession, answers={200: Session})
    async def post(self, session_id: str, body: CloseSession) -> None:
        """Close a session: what runs is interrupted, its kernel is shut down."""
        self.answer(await self.manager.close(session_id, self.caller))


class InterruptHandler(SessionsBase):
    """A session's kernel, interrupted."""

    @web.authenticated
    @requires("stop", body=InterruptKernel, answers={200: Session})
    async def post(self, session_id: str, body: InterruptKernel) -> None:
        """Interrupt what runs in a session's kernel."""
        self.answer(await self.manager.interrupt(session_id, self.caller))


class RestartHandler(SessionsBase):
    """A session's kernel, restarted."""

    @web.authenticated
    @requires("exec", body=RestartKernel, answers={200: Session})
    async def post(self, session_id: str, body: RestartKernel) -> None:
        """Give a session a fresh kernel; its variables are gone."""
        self.answer(await self.manager.restart(session_id, self.caller))


class ExecutionsHandler(SessionsBase):
    """The executions of a session."""

    @web.authenticated
    @requires("history:read", query=ExecutionsQuery, answers={200: ExecutionList})
    async def get(self, session_id: str, query: ExecutionsQuery) -> None:
        """List a session's executions in order."""
        if query.after is not None and query.before is not None:
            raise InvalidRequest("before: not together with after.", field="before")
        records, next_after = await self.manager.executions(
            session_id,
            after=query.after,
            before=query.before,
            limit=query.limit,
            leave_out=query.outputs == "brief",
        )
        await self.answer_large(
            records, lambda told: ExecutionList(executions=told, next_after=next_after)
        )

    @web.authenticated
    @requires(
        "exec",
        body=Execute,
        answers={201: Execution, 202: Execution},
        headers=("Idempotency-Key",),
    )
    async def post(self, session_id: str, body: Execute) -> None:
        """Run a source once; 201 when it has finished, 202 when it goes on."""
        await self.authorize_cells(session_id, body.placement)
        with self.manager.holding(self.caller, body.wait):
            record = await self.manager.execute(session_id, body, self.caller, self.idempotency_key)
        await self.answer_execution(record, asked=True)


class ExecutionHandler(SessionsBase):
    """One execution."""

    @web.authenticated
    @requires("history:read", query=WaitQuery, answers={200: Execution})
    async def get(self, execution_id: str, query: WaitQuery) -> None:
        """Look at an execution, any number of times."""
        with self.manager.holding(self.caller, query.wait):
            record = await self.manager.execution(execution_id, query.wait, query.asked_at)
        await self.answer_execution(record)


class CancelHandler(SessionsBase):
    """An execution, taken back."""

    @web.authenticated
    @requires("stop", body=Cancel, answers={200: Execution})
    async def post(self, execution_id: str, body: Cancel) -> None:
        """Take back an execution that waits, or interrupt it if it runs."""
        await self.answer_execution(await self.manager.cancel(execution_id, self.caller))


class StreamHandler(SessionsBase):
    """An execution as server-sent events."""

    @web.authenticated
    @requires("history:read", answers={200: "text/event-stream"}, headers=("Last-Event-ID",))
    async def get(self, execution_id: str) -> None:
        """Follow an execution; `Last-Event-ID` resumes."""
        with self.manager.streaming(self.caller):
            await self._follow(execution_id)

    async def _follow(self, execution_id: str) -> None:
        resumed = "Last-Event-ID" in self.request.headers
        live = self.manager.watching(execution_id)
        record = None if live else await self.manager.unwatched(execution_id)
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")
        if live is not None:
            async for event in follow(*live, self.base_url, resumed=resumed):
                await self.send_event(event)
                del event  # nothing is held while the next is waited for
        elif record is not None:
            for event in replay(record, self.base_url, resumed=resumed):
                await self.send_event(event)

    async def send_event(self, event: Event | None) -> None:
        """Send an event, or a comment that says that the stream goes on."""
        self.check_still()
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
        found: Text | TextMatches
        if query.grep is None:
            found = await self.manager.finding.text(
                self.caller, execution_id, query.offset, query.limit
            )
        else:
            found = await self.manager.finding.grep(
                self.caller, execution_id, query.grep, query.offset, query.limit
            )
        self.answer(found)


class NotebookHandler(SessionsBase):
    """A session as a notebook."""

    @web.authenticated
    @requires("history:read", query=ExportQuery, answers={200: "application/x-ipynb+json"})
    async def get(self, session_id: str, query: ExportQuery) -> None:
        """Export a session as a notebook."""
        pieces = await self.manager.finding.notebook(session_id, clean=query.clean)
        self.set_header("Content-Type", "application/x-ipynb+json")
        self.set_header("Content-Disposition", f'attachment; filename="{session_id}.ipynb"')
        await self.send_pieces(_in_chunks(pieces))


class JournalHandler(SessionsBase):
    """The raw record of a session."""

    @web.authenticated
    @requires("history:read", answers={200: "application/jsonl"})
    async def get(self, session_id: str) -> None:
        """Read a session's journal as it is on disk."""
        path = await self.manager.finding.journal(session_id)
        self.set_header("Content-Type", "application/jsonl")
        self.set_header("Content-Disposition", f'attachment; filename="{session_id}.jsonl"')
        with path.open("rb") as file:
            await self.send_pieces(iter(lambda: file.read(PIECE_BYTES), b""))


class BlobHandler(SessionsBase):
    """A large payload."""

    @web.authenticated
    @requires("history:read", answers={200: "*/*"})
    async def get(self, digest: str) -> None:
        """Read a payload; what it holds was made by code that nobody vouches for."""
        path, mimetype, size = await self.manager.finding.blob(digest)
        self.set_header("Content-Type", mimetype)
        self.set_header("Content-Length", str(size))
        self.set_header("Content-Disposition", f'attachment; filename="{digest[:16]}"')
        self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
        self.set_header("Cache-Control", "private, max-age=31536000, immutable")
        with path.open("rb") as file:
            await self.send_pieces(iter(lambda: file.read(PIECE_BYTES), b""))


class SearchHandler(SessionsBase):
    """The history, searched."""

    @web.authenticated
    @requires(
        "history:read",
        query=SearchQuery,
        answers={200: SearchResults},
        agents="executions of the sessions that it may read",
    )
    async def get(self, query: SearchQuery) -> None:
        """Search sources, text outputs and errors of all executions."""
        only = self.access.only(self.caller)
        self.answer(await self.manager.finding.search(query, only=only))


class StatusHandler(SessionsBase):
    """How the extension is doing."""

    @web.authenticated
    @requires(
        "history:read",
        answers={200: ServerStatus},
        agents="the numbers of the sessions that it may read",
    )
    async def get(self) -> None:
        """Tell how things stand."""
        self.answer(await self.manager.status(only=self.access.only(self.caller)))


def _in_chunks(pieces: Iterable[str]) -> Iterable[bytes]:
    """Join small pieces, so that each chunk costs one hop between threads."""
    iterator = iter(pieces)
    while batch := "".join(islice(iterator, 200)):
        yield batch.encode()


STREAMED = (Execution, StatusChange, OutputChange)
"""Models of the events of a stream, for the OpenAPI document."""

ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/status", StatusHandler),
    ("/sessions", SessionsHandler),
    ("/sessions/{session_id}", SessionHandler),
    ("/sessions/{session_id}/close", CloseHandler),
    ("/sessions/{session_id}/interrupt", InterruptHandler),
    ("/sessions/{session_id}/restart", RestartHandler),
    ("/sessions/{session_id}/executions", ExecutionsHandler),
    ("/sessions/{session_id}/notebook", NotebookHandler),
    ("/sessions/{session_id}/journal", JournalHandler),
    ("/executions/{execution_id}", ExecutionHandler),
    ("/executions/{execution_id}/stream", StreamHandler),
    ("/executions/{execution_id}/text", TextHandler),
    ("/executions/{execution_id}/cancel", CancelHandler),
    ("/blobs/{digest}", BlobHandler),
    ("/search", SearchHandler),
]
