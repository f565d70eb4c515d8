"""The history of this server: its sessions and executions, open or ended.

Open sessions and executions are returned in their current state, all others from the record.
"""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import (
    AgentExecError,
    HistoryUnavailable,
    ServerStopping,
    SessionClosed,
    SessionElsewhere,
    SessionNotFound,
)
from ..executions.execution import LiveExecution, until_finished
from ..journal.history import History
from ..journal.notebook import Foreword
from ..journal.outputs import brief, read_outputs
from ..models import (
    EventsQuery,
    ExecutionsQuery,
    JournalEventList,
    Retain,
    Session,
    SessionList,
    SessionsQuery,
    Text,
    TextQuery,
)
from ..records import SERVER, Entry, ExecutionRecord, Payload
from ..tasks import Tasks, start_apart
from ..text.model_text import transcript
from ..text.text_ranges import read_range
from ..types import FINAL_STATUSES, Digest, ExecutionId, SessionId, TokenId
from .session import CLOSE_REASONS, LiveSession

P = ParamSpec("P")
T = TypeVar("T")

RETENTION_INTERVAL: Final = 3600.0
"""Seconds between two times that the rules of retention are applied."""

SETTLE_INTERVAL: Final = 60.0
"""Seconds between two checks for other servers that have died, and for entries that could not be
written before. A request for such a session checks at once."""

LONG_READ_THREADS: Final = 2

PAGE: Final = 100
"""How many executions of a session to read at once."""


class SessionHistory:
    """Reads sessions and executions, and records decisions about them.

    Parameters
    ----------
    disk
        Runs what blocks on the disk.
    """

    def __init__(self, history: History, *, disk: Executor, log: logging.Logger) -> None:
        self.recorded = history
        """The history on disk; its methods block."""
        self.open: dict[SessionId, LiveSession] = {}
        """The sessions that are open on this server."""
        self._disk = disk
        self._tasks = Tasks(log)
        self._log = log
        self.long_reads = LongReads()
        self._started: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._stopping = False

    # -- start and stop ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the history; reads wait until it is loaded. Idempotent."""
        if self._started is None:
            self._started = start_apart(self.in_thread(self.recorded.start), "take up history")
            self._settling = self._tasks.start(
                self._settle_regularly(), "settle what dead servers left"
            )

    async def started(self) -> None:
        """Wait until the history is loaded; ServerStopping if the server stops."""
        if self._stopping:
            raise ServerStopping("The server is stopping and takes no new requests.")
        self.start()
        assert self._started is not None
        if not self._started.done():
            await asyncio.shield(self._started)

    def refuse(self) -> None:
        """Refuse new reads from now on."""
        self._stopping = True
        if self._settling is not None:
            self._settling.cancel()

    async def stop(self) -> None:
        """Wait for pending reads, and close the history."""
        await self._tasks.end()
        if self._started is not None:
            await self._started
        await self.long_reads.stop()
        await self.in_thread(self.recorded.stop)

    async def in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that blocks on the disk."""
        bound = partial(call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._disk, bound)

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that reads or changes the history, once the history is loaded."""
        await self.started()
        return await self.in_thread(call, *args, **kwargs)

    async def _read_settled(self, call: Callable[[], T], is_orphan: Callable[[T], bool]) -> T:
        """Read from the history; if a dead server left it open, end it and read again."""
        result = await self.read(call)
        if is_orphan(result):
            await self.in_thread(self.recorded.settle)
            result = await self.read(call)
        return result

    async def indexed(self) -> None:
        """Wait until the index is complete, however long that takes.

        For work for which nobody waits and that is not tried again; requests are refused instead.
        """
        await self.started()
        await asyncio.wrap_future(self.recorded.until_ready())

    async def _settle_regularly(self) -> None:
        """End the sessions of dead servers, even if nobody requests them, and apply retention."""
        retain_at = 0.0
        while True:
            await asyncio.sleep(SETTLE_INTERVAL)
            await self.read(self.recorded.settle)
            if self.recorded.retention and time.monotonic() >= retain_at:
                retain_at = time.monotonic() + await self._retain_when_quiet()

    # -- sessions ----------------------------------------------------------------------------------

    async def session(self, id: str) -> Session:
        """Return a session; SessionNotFound if there is none."""
        live = self.open_session(id)
        try:
            return self._as_it_stands(await self.recorded_session(id))
        except (SessionNotFound, HistoryUnavailable):
            if live is None:
                raise
            return live.record()  # without its reviews, which are only on disk

    async def recorded_session(self, id: str) -> Session:
        """Return a session as recorded; if a dead server left it open, end it first."""
        return await self._read_settled(partial(self.recorded.session, id), self.is_elsewhere)

    def open_session(self, id: str) -> LiveSession | None:
        """Return a session that is open on this server; None if it is not."""
        return self.open.get(SessionId(id))

    async def outline(self, id: str) -> Session:
        """Return a session, without reviews if it is open; SessionNotFound if there is none."""
        live = self.open_session(id)
        return await self.read(self.recorded.session, id) if live is None else live.record()

    async def sessions(self, query: SessionsQuery, *, only: TokenId | None = None) -> SessionList:
        """Return sessions, the open ones first.

        Parameters
        ----------
        only
            The agent token with which they were opened; None for all.
        """
        page = await self._read_settled(
            partial(self.recorded.sessions, query, token=only),
            lambda page: any(self.is_elsewhere(record) for record in page.sessions),
        )
        return replace(page, sessions=[self._as_it_stands(record) for record in page.sessions])

    async def open_sessions(self, *, only: TokenId | None = None) -> list[Session]:
        """Return all open sessions, the newest first; `only` as in `sessions`."""
        found: list[Session] = []
        after: str | None = None
        while True:
            query = SessionsQuery(status="open", after=after, limit=500)
            page = await self.sessions(query, only=only)
            found += page.sessions
            after = page.next_after
            if after is None:
                return found

    def is_elsewhere(self, record: Session) -> bool:
        """Return whether a session is open, but not on this server."""
        return record.status == "open" and record.id not in self.open

    async def elsewhere(self, id: SessionId) -> SessionElsewhere:
        """Return the error for a session that is not open here, with its server's address."""
        owner = await self.in_thread(self.recorded.owner, id)
        server: dict[str, object] = {"alive": owner is not None and owner.is_alive}
        if owner is not None:
            server |= {"address": owner.address, "host": owner.host, "pid": owner.pid}
        if owner is not None and owner.is_alive:
            where = "" if owner.address is None else f" at {owner.address}"
            process = "" if owner.pid is None else f" (process {owner.pid} on {owner.host})"
            message = (
                f"The session belongs to another Jupyter server on the same history{where}"
                f"{process}, which is running. Ask that server, or open a session here."
            )
        else:
            message = (
                "The session's server has died, and that cannot be recorded now: the history "
                "cannot be written. Open another session."
            )
        return SessionElsewhere(message, session_id=id, server=server)

    async def live_session(self, id: str) -> LiveSession:
        """Return a session that is open on this server.

        Raises
        ------
        SessionNotFound, SessionClosed, SessionElsewhere
        """
        await self.started()
        live = self.open_session(id)
        if live is None:
            record = await self.recorded_session(id)
            if self.is_elsewhere(record):
                raise await self.elsewhere(record.id)
            raise _closed(record)
        live.touch()
        return live

    def all_open(self) -> list[LiveSession]:
        """Return the sessions that are open on this server."""
        return list(self.open.values())

    def _as_it_stands(self, record: Session) -> Session:
        """Return a session; if it is open, with its current state."""
        live = self.open.get(record.id)
        if live is None:
            return record
        return replace(live.record(), unreviewed=record.unreviewed)

    # -- executions --------------------------------------------------------------------------------

    def watching(self, id: str) -> tuple[LiveSession, LiveExecution] | None:
        """Return an unfinished execution with its session; None if it has finished."""
        for session in self.open.values():
            execution = session.unfinished.get(ExecutionId(id))
            if execution is not None:
                return session, execution
        return None

    async def unfinished(
        self, id: str, error: type[AgentExecError]
    ) -> tuple[LiveSession, LiveExecution]:
        """Return an unfinished execution with its session.

        Raises
        ------
        ExecutionNotFound, SessionElsewhere, and `error` if it has finished
        """
        running = self.watching(id)
        if running is None:
            record = await self.finished(id)
            raise error(
                f"The execution has finished with status {record.status}.",
                execution_id=record.id,
                status=record.status,
            )
        return running

    async def execution(
        self, id: str, wait: float = 0, asked_at: str | None = None
    ) -> ExecutionRecord:
        """Return an execution when it has finished, or after `wait` seconds.

        Parameters
        ----------
        asked_at
            The `asked_at` of the input request that the caller has seen. Only another one ends the
            wait.

        Raises
        ------
        ExecutionNotFound
        SessionElsewhere
            The caller wants to wait for it, but it runs on another server.
        """
        running = self.watching(id)
        if running is not None:
            session, execution = running
            await until_finished([execution], wait, asked_at)
            return session.execution_record(execution)
        if wait:
            return await self.finished(id)
        return self._with_document(await self._recorded_execution(id))

    async def finished(self, id: str) -> ExecutionRecord:
        """Return an execution that this server does not run, so that it has finished.

        Raises
        ------
        ExecutionNotFound, SessionElsewhere
        """
        record = await self._recorded_execution(id)
        if self._is_orphan(record):
            raise await self.elsewhere(record.session_id)
        return self._with_document(record)

    async def executions(
        self, id: str, query: ExecutionsQuery
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where the next page begins."""
        records, next_after = await self._read_settled(
            partial(self.recorded.executions, id, query),
            lambda page: any(map(self._is_orphan, page[0])),
        )
        live = self.open_session(id)
        if live is not None:
            records = [
                live.execution_record(execution)
                if (execution := live.unfinished.get(record.id)) is not None
                else self._with_document(record)
                for record in records
            ]
        if query.outputs == "brief":
            records = [brief(record) for record in records]
        return records, next_after

    async def all_executions(self, id: str) -> AsyncIterator[ExecutionRecord]:
        """Yield all executions of a session in order, without large outputs."""
        after: int | None = 0
        while after is not None:
            query = ExecutionsQuery(after=after, limit=PAGE, outputs="brief")
            records, after = await self.executions(id, query)
            for record in records:
                yield record

    async def session_of(self, execution_id: str) -> SessionId:
        """Return the session of an execution; ExecutionNotFound if there is none."""
        running = self.watching(execution_id)
        if running is not None:
            return running[0].id
        return await self.read(self.recorded.session_of, execution_id)

    async def find_by_key(
        self, id: SessionId, key: str, body: Digest
    ) -> tuple[ExecutionId, bool] | None:
        """Return the execution that has an idempotency key, and whether the body was the same."""
        return await self.read(self.recorded.find_by_key, id, key, body)

    async def _recorded_execution(self, id: str) -> ExecutionRecord:
        """Return an execution as recorded; if a dead server left it open, end it first."""
        return await self._read_settled(partial(self.recorded.execution, id), self._is_orphan)

    def _is_orphan(self, record: ExecutionRecord) -> bool:
        """Return whether an execution is open, but not on this server."""
        return record.status not in FINAL_STATUSES and record.session_id not in self.open

    def _with_document(self, record: ExecutionRecord) -> ExecutionRecord:
        """Return a finished execution with its cell, even if the cell is not recorded yet."""
        live = self.open.get(record.session_id)
        if live is None or record.document is not None:
            return record
        return live.cells.with_document(record)

    # -- content -----------------------------------------------------------------------------------

    async def text(self, caller: Caller, id: str, query: TextQuery) -> Text:
        """Return a part of an execution's whole text."""
        record = await self.execution(id)
        return await self.long_reads.read(caller, partial(self._text, record, query))

    async def events(self, id: str, query: EventsQuery) -> JournalEventList:
        """Return the entries between a session's executions; SessionNotFound if there is none."""
        events, next_after = await self.read(self.recorded.events, id, query)
        return JournalEventList(events=events, next_after=next_after)

    async def has_blob(self, digest: str, token_id: TokenId) -> bool:
        """Return whether a token's sessions have a payload; BlobNotFound if no session has it."""
        return await self.read(self.recorded.has_blob, digest, token_id)

    async def notebook(
        self, id: str, *, clean: bool = False, foreword: Foreword | None = None
    ) -> Iterator[str]:
        """Return a session as the text of a notebook, in pieces; reading a piece blocks."""
        await self._environment_told(id)
        return await self.read(self.recorded.notebook, id, clean=clean, foreword=foreword)

    async def requirements(self, id: str) -> str:
        """Return what a session's kernel had installed at last, as a `requirements.txt`."""
        await self._environment_told(id)
        return await self.read(self.recorded.requirements, id)

    async def _environment_told(self, id: str) -> None:
        live = self.open_session(id)
        if live is not None:
            await live.environment.settled()

    def _text(self, record: ExecutionRecord, query: TextQuery) -> Text:
        asked = query.offset, query.limit, query.match
        if record.text is None:
            file = io.BytesIO(transcript(read_outputs(record)).encode())
            return read_range(file, *asked)
        path, _, _ = self.recorded.blob(record.text)
        with path.open("rb") as kept:
            return read_range(kept, *asked, record.omitted_text_bytes)

    # -- decisions ---------------------------------------------------------------------------------

    async def decide(
        self, id: SessionId, entries: Sequence[Entry], payloads: Sequence[Payload] = ()
    ) -> None:
        """Record a user's decision about a session; raise HistoryUnavailable if that fails."""
        await self.in_thread(self.recorded.decide, id, entries, payloads)

    def _is_quiet(self) -> bool:
        return not self._stopping and not any(each.unfinished for each in list(self.open.values()))

    async def _retain_when_quiet(self) -> float:
        """Remove what the rules let go, if no code runs; return the seconds until the next time."""
        if not self._is_quiet():
            return SETTLE_INTERVAL
        try:
            retention = await self.read(self.recorded.retain, Retain(), SERVER, self._is_quiet)
        except (AgentExecError, OSError) as error:
            self._log.warning("Retention is not complete: %s", error)
            return RETENTION_INTERVAL
        waits = any(each.waits for each in retention.sessions)
        return SETTLE_INTERVAL if waits or not self._is_quiet() else RETENTION_INTERVAL


def _closed(record: Session) -> SessionClosed:
    """Return the error for a closed session: why it closed, and what to do."""
    message = "The session is closed; open another."
    if record.close_reason is not None and record.close_reason != "closed":
        why = CLOSE_REASONS[record.close_reason]
        message = f"The session is closed. {why} Open another; its record can still be read."
    return SessionClosed(message, session_id=record.id, reason=record.close_reason)


class LongReads:
    """Reads long texts, which may take seconds, in its own threads, one at a time per caller."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LONG_READ_THREADS, thread_name_prefix="agent-exec-text")
        self._stopping = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, caller: Caller, read: Callable[[], T]) -> T:
        """Read something after the caller's earlier reads.

        Raises
        ------
        ServerStopping
        """
        owner = caller.username if caller.token is None else caller.token.id
        async with self._locks.setdefault(owner, asyncio.Lock()):
            if self._stopping:
                raise ServerStopping("The server is stopping and takes no new requests.")
            return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def stop(self) -> None:
        """Refuse new reads, and return when the current ones have ended. Idempotent."""
        self._stopping = True
        await asyncio.to_thread(self._threads.shutdown)
