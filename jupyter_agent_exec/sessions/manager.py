"""The use cases: open a session, run something, look at it, find it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from ..access.scopes import Caller
from ..errors import (
    AgentExecError,
    AlreadyFinished,
    HistoryUnavailable,
    ServerStopping,
    SessionClosed,
    SessionNotFound,
    TooManyRequests,
)
from ..journal.brief import brief
from ..journal.history import History
from ..kernels.kernel import KernelSource
from ..kernels.live import LiveKernels
from ..kernels.scratch import ScratchKernels
from ..models import Execute, OpenSession, ServerStatus, Session
from ..records import SERVER, By, ExecutionRecord
from ..tasks import start_apart
from ..types import CloseReason, ExecutionId, SessionId, TokenId
from .bounds import Bounds, Settings
from .clients import Clients
from .execution import LiveExecution
from .finding import Finding
from .keys import Keys
from .long_reads import LongReads
from .opening import Opener
from .queries import SessionsQuery
from .running import Running
from .session import LiveSession
from .usage import Usage
from .waiting_for_end import until_finished

T = TypeVar("T")


class AgentSessions:
    """All agent sessions of this server, and the history of those before."""

    def __init__(
        self,
        history: History,
        kernels: ScratchKernels,
        live_kernels: LiveKernels,
        opener: Opener,
        settings: Settings,
        *,
        version: str,
        disk: Executor,
    ) -> None:
        self._history = history
        self._kernels = kernels
        self._live_kernels = live_kernels
        self._opener = opener
        self._settings = settings
        self._version = version
        self._disk = disk
        self._open: dict[SessionId, LiveSession] = {}
        self._opening = 0
        self._clients = Clients()
        self._usage = Usage(settings.max_sessions)
        self._long_reads = LongReads()
        self.finding = Finding(history, self._read, self._long_reads, self.execution)
        self._keys = Keys(partial(self._read, history.find_by_key))
        self.running = Running(self, self._keys, self._usage, settings, opener.check_edit)
        self._started: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to take up the history; what needs it waits for that. Idempotent."""
        if self._started is None:
            self._started = start_apart(self.in_thread(self._history.start), "take up history")

    async def stop(self) -> None:
        """Take nothing new, end what runs, and return when that is recorded. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        sessions = list(self._open.values())
        await asyncio.gather(*(session.close("server_stopped", SERVER) for session in sessions))
        await self._kernels.stop()
        await self._live_kernels.stop()
        await self._opener.stop()
        if self._started is not None:
            await self._started
        await self._long_reads.stop()
        await self.in_thread(self._history.stop)
        self._disk.shutdown()

    # -- sessions ----------------------------------------------------------------------------------

    async def open(self, asked: OpenSession, caller: Caller) -> tuple[Session, bool]:
        """Open a session; return it, and whether it is new.

        Raises
        ------
        Forbidden, InvalidRequest, KernelSpecNotFound, NotebookNotFound, KernelNotFound,
        TooManyRequests, KernelUnavailable, InitFailed, HistoryUnavailable,
        IsolationUnavailable, ServerStopping
            Nothing was opened.
        """
        await self._begun()
        asked = self._opener.settled(asked)
        bounds = self._opener.bounds(asked.limits, caller)
        source = await self._opener.source(asked, caller)
        if asked.client_id is None:
            return (await self._new_session(asked, caller, bounds, source)).record(), True
        session, is_new = await self._clients.open(
            asked.client_id,
            None if caller.token is None else caller.token.id,
            asked,
            source,
            partial(self._new_session, asked, caller, bounds, source),
        )
        return session.record(), is_new

    async def session(self, id: str) -> Session:
        """Return a session; SessionNotFound if there is none."""
        live = self._open.get(SessionId(id))
        try:
            return self._as_it_stands(await self._read(self._history.session, id))
        except (SessionNotFound, HistoryUnavailable):
            if live is None:
                raise
            return live.record()  # without what people said of it, which is only on disk

    def all_open(self) -> list[LiveSession]:
        """Return the sessions that are open."""
        return list(self._open.values())

    def open_session(self, id: str) -> LiveSession | None:
        """Return a session that is open; None if it is not."""
        return self._open.get(SessionId(id))

    def session_of_client(self, client_id: str, caller: Caller) -> LiveSession | None:
        """Return the session that a caller has open as a client; None if there is none."""
        return self._clients.find(client_id, None if caller.token is None else caller.token.id)

    async def finished_up_to(self, id: str) -> int:
        """Return the `seq` up to which all of a session's executions have finished; 0 for none."""
        live = self._open.get(SessionId(id))
        return await self._read(self._history.last_seq, id) if live is None else live.finished_up_to

    async def outline(self, id: str) -> Session:
        """Return a session, if it is open without what people said; SessionNotFound if none."""
        live = self._open.get(SessionId(id))
        return await self._read(self._history.session, id) if live is None else live.record()

    async def session_of(self, execution_id: str) -> SessionId:
        """Return the session of an execution; ExecutionNotFound if there is none."""
        found = self.watching(execution_id)
        if found is not None:
            return found[0].id
        return await self._read(self._history.session_of, execution_id)

    async def has_blob(self, digest: str, token_id: TokenId) -> bool:
        """Tell whether a token's sessions have a payload; BlobNotFound if no session has."""
        return await self._read(self._history.has_blob, digest, token_id)

    async def sessions(
        self, query: SessionsQuery, *, only: TokenId | None = None
    ) -> tuple[list[Session], str | None]:
        """Return sessions, the open ones first, and where to go on.

        Parameters
        ----------
        only
            The agent token with which they must have been opened; None is any, or none.
        """
        records, next_after = await self._read(
            self._history.sessions,
            status=query.status,
            agent=query.agent,
            target=query.target,
            since=query.since,
            until=query.until,
            unreviewed=query.unreviewed,
            token=only,
            after=query.after,
            limit=query.limit,
        )
        return [self._as_it_stands(record) for record in records], next_after

    async def close(self, id: str, caller: Caller) -> Session:
        """Close a session; one that is closed stays as it is."""
        live = self._open.get(SessionId(id))
        if live is not None:
            await self.end(live, "closed", caller.by())
        return await self._read(self._history.session, id)

    async def end(self, live: LiveSession, reason: CloseReason, by: By) -> None:
        """Close a session that is open."""
        await live.close(reason, by)
        self._forget(live)

    async def interrupt(self, id: str, caller: Caller) -> Session:
        """Interrupt what runs in a session's kernel."""
        live = await self.live_session(id)
        await live.interrupt(caller.by())
        return live.record()

    async def restart(self, id: str, caller: Caller) -> Session:
        """Give a session a fresh kernel."""
        live = await self.live_session(id)
        self._usage.count(caller, max(1, live.first_sources))
        await live.restart(caller.by())
        return live.record()

    # -- executions --------------------------------------------------------------------------------

    async def execute(
        self, id: str, asked: Execute, caller: Caller, key: str | None
    ) -> ExecutionRecord:
        """Run a source once, as `Running.execute` does."""
        return await self.running.execute(id, asked, caller, key)

    async def execution(
        self, id: str, wait: float | None = 0, asked_at: str | None = None
    ) -> ExecutionRecord:
        """Return an execution, after it has finished or `wait` seconds are over.

        Parameters
        ----------
        asked_at
            Of the input that is known to be asked for: only another one ends the wait.
        """
        found = self.watching(id)
        if found is None:
            return self._with_document(await self._read(self._history.execution, id))
        session, execution = found
        await until_finished([execution], self._settings.wait(wait), asked_at)
        return session.execution_record(execution)

    async def executions(
        self,
        id: str,
        *,
        after: int | None,
        before: int | None,
        limit: int,
        leave_out: bool = False,
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where to go on.

        Parameters
        ----------
        leave_out
            Leave out what is large in their outputs.
        """
        records, next_after = await self._read(
            self._history.executions, id, after=after, before=before, limit=limit, brief=leave_out
        )
        live = self._open.get(SessionId(id))
        if live is not None:
            records = [
                live.execution_record(execution)
                if (execution := live.live(record.id)) is not None
                else self._with_document(record)
                for record in records
            ]
        return [brief(record) for record in records] if leave_out else records, next_after

    def _with_document(self, record: ExecutionRecord) -> ExecutionRecord:
        """Return a finished execution with what its cell is, also before that is recorded."""
        live = self._open.get(record.session_id)
        if live is None or record.document is not None:
            return record
        return live.showing.with_document(record)

    async def cancel(self, id: str, caller: Caller) -> ExecutionRecord:
        """Take back an execution that waits, or interrupt it if it runs.

        Raises
        ------
        ExecutionNotFound, AlreadyFinished
        """
        found = self.watching(id)
        if found is None:
            record = await self._read(self._history.execution, id)
            raise AlreadyFinished(
                f"The execution has finished with status {record.status}.", status=record.status
            )
        session, execution = found
        await session.cancel(execution, caller.by())
        await until_finished([execution], self._settings.bounds.interrupt_grace)
        return session.execution_record(execution)

    def watching(self, id: str) -> tuple[LiveSession, LiveExecution] | None:
        """Return an execution that is not finished yet, with its session; None if it is."""
        for session in self._open.values():
            execution = session.live(ExecutionId(id))
            if execution is not None:
                return session, execution
        return None

    # -- the server --------------------------------------------------------------------------------

    async def status(self, *, only: TokenId | None = None) -> ServerStatus:
        """Return how things stand; of sessions that were opened with one token, if one is named."""
        await self._begun()
        sessions = [each for each in self._open.values() if only in (None, each.token_id)]
        return ServerStatus(
            version=self._version,
            history_available=self._history.available,
            open_sessions=len(sessions),
            kernels=sum(session.has_kernel for session in sessions),
            running=sum(session.running is not None for session in sessions),
            queued=sum(session.queued for session in sessions),
            ledger=self._history.ledger_head,
            search_ready=self._history.ready,
        )

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Do something that blocks on the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, call)

    # -- helpers -----------------------------------------------------------------------------------

    async def _new_session(
        self, asked: OpenSession, caller: Caller, bounds: Bounds, source: KernelSource
    ) -> LiveSession:
        if len(self._open) + self._opening >= self._settings.max_sessions:
            raise TooManyRequests(
                f"{self._settings.max_sessions} sessions are open already; close one.",
                limit=self._settings.max_sessions,
            )
        self._opening += 1
        try:
            with self._usage.opening(caller, self._open.values()):
                self._usage.count(caller, bool(asked.preload) + (asked.init_source is not None))
                session, kernel = await self._opener.open(asked, caller, bounds, source)
                self._open[session.id] = session
        finally:
            self._opening -= 1
        try:
            await session.open(kernel, caller.by(), caller.host_kernels)
        except AgentExecError:
            await session.close("init_failed", SERVER)
            self._forget(session)
            raise
        return session

    def _forget(self, session: LiveSession) -> None:
        self._open.pop(session.id, None)
        self._keys.forget(session.id)
        self._clients.forget(session)

    async def live_session(self, id: str) -> LiveSession:
        """Return an open session.

        Raises
        ------
        SessionNotFound, SessionClosed
        """
        await self._begun()
        live = self._open.get(SessionId(id))
        if live is None:
            record = await self._read(self._history.session, id)
            why = "" if record.close_reason == "closed" else f" ({record.close_reason})"
            raise SessionClosed(
                f"The session is closed{why}; open another.",
                session_id=record.id,
                reason=record.close_reason,
            )
        return live

    def _as_it_stands(self, record: Session) -> Session:
        """Return a session with what is not recorded of one that is open."""
        live = self._open.get(record.id)
        if live is None:
            return record
        return replace(live.record(), unreviewed=record.unreviewed, review=record.review)

    async def _begun(self) -> None:
        """Wait until the history has been taken up; ServerStopping when it is put down."""
        if self._stopping:
            raise ServerStopping("The server is stopping; nothing new is taken.")
        self.start()
        assert self._started is not None
        if not self._started.done():
            await asyncio.shield(self._started)

    async def _read(self, read: Callable[..., T], *args: Any, **named: Any) -> T:
        await self._begun()
        return await self.in_thread(partial(read, *args, **named))
