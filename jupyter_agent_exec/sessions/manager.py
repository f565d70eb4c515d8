"""The use cases: open a session, run something, look at it, find it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from ..access.scopes import Caller
from ..errors import (
    AgentExecError,
    AlreadyFinished,
    InvalidRequest,
    ServerStopping,
    SessionClosed,
    TooManyRequests,
)
from ..journal.history import History
from ..kernels.kernel import KernelSource
from ..kernels.live import LiveKernels
from ..kernels.scratch import ScratchKernels
from ..models import (
    Execute,
    NotebookTarget,
    OpenSession,
    ServerStatus,
    Session,
)
from ..records import SERVER, ExecutionRecord, digest_of
from ..types import Digest, ExecutionId, SessionId
from .attached import AttachedNotebook
from .bounds import Bounds, Settings
from .execution import LiveExecution
from .finding import Finding
from .keys import Keys
from .opening import Opener
from .queries import SessionsQuery
from .session import LiveSession

T = TypeVar("T")

DOCUMENT_WAIT = 1.0
"""Seconds for which the answer of a finished execution waits for its cell in the notebook."""


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
        self._by_client: dict[str, LiveSession] = {}
        self._client_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.finding = Finding(history, self._read, self.execution)
        self._keys = Keys(partial(self._read, history.find_by_key))
        self._started: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to take up the history; what needs it waits for that. Idempotent."""
        if self._started is None:
            self._started = asyncio.create_task(self.in_thread(self._history.start))

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
        await self.in_thread(self._history.stop)
        self._disk.shutdown()

    # -- sessions ----------------------------------------------------------------------------------

    async def open(self, asked: OpenSession, caller: Caller) -> tuple[Session, bool]:
        """Open a session; return it, and whether it is new.

        Raises
        ------
        InvalidRequest, KernelSpecNotFound, NotebookNotFound, KernelNotFound, TooManyRequests,
        KernelUnavailable, InitFailed, HistoryUnavailable, ServerStopping
            Nothing was opened.
        """
        await self._begun()
        bounds = self._opener.bounds(asked.limits)
        source = await self._opener.source(asked)
        if asked.client_id is None:
            return (await self._new_session(asked, caller, bounds, source)).record(), True
        lock = self._client_locks.setdefault(asked.client_id, asyncio.Lock())
        async with lock:
            known = self._by_client.get(asked.client_id)
            if known is not None and known.id in self._open:
                if not _is_same_target(known.record(), asked, source):
                    raise InvalidRequest(
                        "client_id: it has an open session with another target; close that first.",
                        field="client_id",
                        session_id=known.id,
                    )
                return known.record(), False
            session = await self._new_session(asked, caller, bounds, source)
            self._by_client[asked.client_id] = session
            return session.record(), True

    async def session(self, id: str) -> Session:
        """Return a session; SessionNotFound if there is none."""
        live = self._open.get(SessionId(id))
        return live.record() if live is not None else await self._read(self._history.session, id)

    def sessions_on(self, path: str) -> list[LiveSession]:
        """Return the open sessions whose notebook is at a contents path now."""
        return [session for session in self._open.values() if session.path == path]

    def open_sessions(self) -> list[Session]:
        """Return the sessions that are open, as they stand."""
        return [session.record() for session in self._open.values()]

    def open_session(self, id: str) -> LiveSession | None:
        """Return a session that is open; None if it is not."""
        return self._open.get(SessionId(id))

    async def sessions(self, query: SessionsQuery) -> tuple[list[Session], SessionId | None]:
        """Return sessions, the newest first, and where to go on."""
        records, next_after = await self._read(
            self._history.sessions,
            status=query.status,
            agent=query.agent,
            after=query.after,
            limit=query.limit,
        )
        return [self._as_it_stands(record) for record in records], next_after

    async def close(self, id: str, caller: Caller) -> Session:
        """Close a session; one that is closed stays as it is."""
        live = self._open.get(SessionId(id))
        if live is not None:
            await live.close("closed", caller.by())
            self._forget(live)
        return await self._read(self._history.session, id)

    async def interrupt(self, id: str, caller: Caller) -> Session:
        """Interrupt what runs in a session's kernel."""
        live = await self.live_session(id)
        await live.interrupt(caller.by())
        return live.record()

    async def restart(self, id: str, caller: Caller) -> Session:
        """Give a session a fresh kernel."""
        live = await self.live_session(id)
        await live.restart(caller.by())
        return live.record()

    # -- executions --------------------------------------------------------------------------------

    async def execute(
        self, id: str, asked: Execute, caller: Caller, key: str | None
    ) -> ExecutionRecord:
        """Run a source once, and return it when it has finished or the wait is over.

        Parameters
        ----------
        key
            An idempotency key: asked again with the same, the same execution comes back.

        Raises
        ------
        SessionNotFound, SessionClosed, InvalidRequest, IdempotencyConflict, CellNotFound,
        DocumentChanged, TooManyRequests, HistoryUnavailable
            Nothing was run.
        """
        wait = self._wait(asked.wait)
        self._settings.check_timeout(asked.timeout, "timeout")
        self._settings.check_output(asked.max_output_bytes, "max_output_bytes")
        body = digest_of(msgspec.json.encode(asked, order="sorted"))
        if key is None:
            live, execution = await self._take(id, asked, caller, None, body)
        else:
            session_id = SessionId(id)
            async with self._keys.lock(session_id, key):
                is_open = session_id in self._open
                known = await self._keys.known(session_id, key, body, is_open=is_open)
                if known is None:
                    live, execution = await self._take(id, asked, caller, key, body)
            if known is not None:
                return await self.execution(known, wait)
        await asyncio.shield(execution.accepted)
        await self._until_finished(execution, wait)
        if execution.finished.done():
            await live.showing.until_shown(execution, min(wait, DOCUMENT_WAIT))
        return live.execution_record(execution)

    async def _take(
        self, id: str, asked: Execute, caller: Caller, key: str | None, body: Digest
    ) -> tuple[LiveSession, LiveExecution]:
        """Take an execution on its way."""
        live = await self.live_session(id)
        place = await live.place(asked)
        execution = live.execute(
            asked,
            by=caller.by(),
            place=place,
            idempotency_key=key,
            body_sha256=None if key is None else body,
        )
        if key is not None:
            self._keys.use(live.id, key, body, execution)
        return live, execution

    async def execution(self, id: str, wait: float | None = 0) -> ExecutionRecord:
        """Return an execution, after it has finished or `wait` seconds are over."""
        found = self.watching(id)
        if found is None:
            return self._with_document(await self._read(self._history.execution, id))
        session, execution = found
        await self._until_finished(execution, self._wait(wait))
        return session.execution_record(execution)

    async def executions(
        self, id: str, *, after: int | None, before: int | None, limit: int
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where to go on."""
        records, next_after = await self._read(
            self._history.executions, id, after=after, before=before, limit=limit
        )
        live = self._open.get(SessionId(id))
        if live is not None:
            records = [
                live.execution_record(execution)
                if (execution := live.live(record.id)) is not None
                else self._with_document(record)
                for record in records
            ]
        return records, next_after

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
        await self._until_finished(execution, self._settings.bounds.interrupt_grace)
        return session.execution_record(execution)

    def watching(self, id: str) -> tuple[LiveSession, LiveExecution] | None:
        """Return an execution that is not finished yet, with its session; None if it is."""
        for session in self._open.values():
            execution = session.live(ExecutionId(id))
            if execution is not None:
                return session, execution
        return None

    # -- the server --------------------------------------------------------------------------------

    async def status(self) -> ServerStatus:
        """Return how things stand."""
        await self._begun()
        sessions = list(self._open.values())
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
            session, kernel = await self._opener.open(asked, caller, bounds, source)
            self._open[session.id] = session
        finally:
            self._opening -= 1
        try:
            await session.open(kernel, caller.by())
        except AgentExecError:
            await session.close("init_failed", SERVER)
            self._forget(session)
            raise
        return session

    def _forget(self, session: LiveSession) -> None:
        self._open.pop(session.id, None)
        self._keys.forget(session.id)
        for client_id in [id for id, other in self._by_client.items() if other is session]:
            del self._by_client[client_id]

    def _wait(self, wait: float | None) -> float:
        return min(self._settings.default_wait if wait is None else wait, self._settings.max_wait)

    async def _until_finished(self, execution: LiveExecution, wait: float) -> None:
        if wait and not execution.finished.done():
            await asyncio.wait({execution.finished}, timeout=wait)

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
            raise SessionClosed(
                f"The session is closed ({record.close_reason}); open another.",
                session_id=record.id,
                reason=record.close_reason,
            )
        return live

    def _as_it_stands(self, record: Session) -> Session:
        live = self._open.get(record.id)
        return record if live is None else live.record()

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


def _is_same_target(session: Session, asked: OpenSession, source: KernelSource) -> bool:
    """Tell whether an open session has the target that is asked for, also after a rename."""
    if isinstance(asked.target, NotebookTarget) and isinstance(source, AttachedNotebook):
        return session.path == source.path
    return session.target == asked.target
