"""The use cases: open a session, run something, look at it, find it again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import (
    AgentExecError,
    AlreadyFinished,
    HistoryUnavailable,
    InputNotAsked,
    ServerStopping,
    SessionClosed,
    SessionElsewhere,
    SessionNotFound,
)
from ..executions.completion import until_finished
from ..executions.execution import LiveExecution
from ..executions.limits import Bounds, Settings
from ..journal.brief import brief
from ..journal.history import History
from ..kernels.kernel import KernelSource
from ..kernels.live_kernels import LiveKernels
from ..kernels.scratch_kernels import ScratchKernels
from ..models import Execute, GiveInput, OpenSession, ServerStatus, Session
from ..records import SERVER, By, ExecutionRecord
from ..tasks import Tasks, call_later_apart, start_apart
from ..types import FINAL_STATUSES, CloseReason, ExecutionId, SessionId, TokenId
from .closing import CLOSED_BECAUSE
from .factory import Opener
from .history import Finding, LongReads
from .idempotency import Clients, Keys
from .queries import SessionsQuery
from .quotas import Usage
from .session import LiveSession
from .submission import Running

T = TypeVar("T")

SETTLE_INTERVAL: Final = 60.0
"""Seconds between two looks whether other servers on the history have died, or what could not be
written can be now. Whoever asks for such a session has it looked at once."""


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
        log: logging.Logger,
    ) -> None:
        self._tasks = Tasks(log)
        self._history = history
        self._kernels = kernels
        self._live_kernels = live_kernels
        self._opener = opener
        self._settings = settings
        self._version = version
        self._disk = disk
        self._open: dict[SessionId, LiveSession] = {}
        self._clients = Clients()
        self._usage = Usage(settings.max_sessions, settings.session_idle_timeout, settings.max_held)
        self._long_reads = LongReads()
        self.finding = Finding(history, self._read, self._long_reads, self.execution)
        self._keys = Keys(partial(self._read, history.find_by_key))
        self.running = Running(self, self._keys, self._usage, settings, opener.check_edit)
        self._started: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to take up the history; what needs it waits for that. Idempotent."""
        if self._started is None:
            self._started = start_apart(self.in_thread(self._history.start), "take up history")
            self._settling = self._tasks.start(
                self._settle_now_and_then(), "settle what dead servers left"
            )

    async def stop(self) -> None:
        """Take nothing new, end what runs, and return when that is recorded. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        if self._settling is not None:
            self._settling.cancel()
        sessions = list(self._open.values())
        await asyncio.gather(*(session.close("server_stopped", SERVER) for session in sessions))
        await self._tasks.end()
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
        IsolationUnavailable, GatewayNotSupported, ServerStopping
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
            return self._as_it_stands(await self._read_session(id))
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
        listed = partial(
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
        records, next_after = await self._read(listed)
        if any(self._is_elsewhere(record) for record in records):
            await self.in_thread(self._history.settle)
            records, next_after = await self._read(listed)
        return [self._as_it_stands(record) for record in records], next_after

    async def close(self, id: str, caller: Caller) -> Session:
        """Close a session; one that is closed stays as it is.

        Raises
        ------
        SessionNotFound, SessionElsewhere
        """
        live = self._open.get(SessionId(id))
        if live is not None:
            await self.end(live, "closed", caller.by())
        record = await self._read_session(id)
        if self._is_elsewhere(record):
            raise await self._elsewhere(record.id)
        return record

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
        """Give a session a fresh kernel.

        Nothing of it needs approval: what runs first in the new kernel asks for itself.
        """
        live = await self.live_session(id)
        count = max(1, live.first_sources)
        if caller.token is not None:  # the user restarts it in JupyterLab, also in a pause
            self.admit(live, caller, "A restart", is_code=False, executions=count)
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

        Raises
        ------
        ExecutionNotFound
        SessionElsewhere
            It is to be waited for, but runs on another server.
        """
        found = self.watching(id)
        if found is None:
            record = await (self._read_execution(id) if wait == 0 else self.unwatched(id))
            return self._with_document(record)
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
        page = partial(
            self._history.executions, id, after=after, before=before, limit=limit, brief=leave_out
        )
        records, next_after = await self._read(page)
        live = self._open.get(SessionId(id))
        if live is None and any(record.status not in FINAL_STATUSES for record in records):
            await self.in_thread(self._history.settle)
            records, next_after = await self._read(page)
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

    def holding(
        self, caller: Caller, wait: float | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Count an answer as held for as long as it is; one that waits for nothing is not.

        Raises
        ------
        TooManyRequests
            The caller, or all agents, have as many as the operator allows.
        """
        held = self._settings.wait(wait) > 0
        return self._usage.holding(caller) if held else contextlib.nullcontext()

    def streaming(self, caller: Caller) -> contextlib.AbstractContextManager[None]:
        """Count a stream for as long as it is open; TooManyRequests as for `holding`."""
        return self._usage.holding(caller)

    async def cancel(self, id: str, caller: Caller) -> ExecutionRecord:
        """Take back an execution that waits, or interrupt it if it runs.

        Raises
        ------
        ExecutionNotFound, AlreadyFinished, SessionElsewhere
        """
        found = self.watching(id)
        if found is None:
            record = await self.unwatched(id)
            raise AlreadyFinished(
                f"The execution has finished with status {record.status}.", status=record.status
            )
        session, execution = found
        await session.cancel(execution, caller.by())
        await until_finished([execution], self._settings.bounds.interrupt_grace)
        return session.execution_record(execution)

    async def give_input(self, id: str, given: GiveInput, caller: Caller) -> ExecutionRecord:
        """Answer what the code of an execution asks for; return the execution as it goes on.

        Raises
        ------
        ExecutionNotFound
            There is no such execution.
        InputNotAsked, Paused, ApprovalRequired, TooManyRequests, HistoryUnavailable
            Nothing was answered.
        """
        found = self.watching(id)
        if found is None:
            record = await self.unwatched(id)
            raise InputNotAsked(
                f"The execution has finished with status {record.status}.",
                execution_id=record.id,
                status=record.status,
            )
        session, execution = found
        if caller.token is not None:  # the user answers in JupyterLab, also in a pause
            self.admit(session, caller, "An agent's answer", is_code=True, executions=1)
        await session.give_input(execution, given, caller.by())
        return await self.execution(id, given.wait)

    def watching(self, id: str) -> tuple[LiveSession, LiveExecution] | None:
        """Return an execution that is not finished yet, with its session; None if it is."""
        for session in self._open.values():
            execution = session.live(ExecutionId(id))
            if execution is not None:
                return session, execution
        return None

    async def unwatched(self, id: str) -> ExecutionRecord:
        """Return an execution that this server does not have on its way; it has finished.

        Raises
        ------
        ExecutionNotFound, SessionElsewhere
        """
        record = await self._read_execution(id)
        if record.status not in FINAL_STATUSES and record.session_id not in self._open:
            raise await self._elsewhere(record.session_id)
        return record

    # -- the server --------------------------------------------------------------------------------

    async def status(self, *, only: TokenId | None = None) -> ServerStatus:
        """Return how things stand; of sessions that were opened with one token, if one is named."""
        await self._begun()
        sessions = [each for each in self._open.values() if only in (None, each.token_id)]
        return ServerStatus(
            version=self._version,
            history_available=await self.in_thread(self._history.look),
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
        with self._usage.opening(caller, self._open.values()):
            self._usage.count(caller, bool(asked.preload) + (asked.init_source is not None))
            session, kernel = await self._opener.open(asked, caller, bounds, source)
            self._open[session.id] = session
        try:
            await session.open(kernel, caller.by(), caller.host_kernels)
        except AgentExecError:
            await session.close("init_failed", SERVER)
            self._forget(session)
            raise
        self._look_again(session.id, self._settings.session_idle_timeout)
        return session

    def _look_again(self, id: SessionId, delay: float) -> None:
        """Look whether a session is used, after a delay; 0 is never."""
        if delay:  # by its id: nothing is to be kept of sessions that were closed since
            call_later_apart(delay, self._look_whether_used, id)

    def _look_whether_used(self, id: SessionId) -> None:
        session = self._open.get(id)
        if self._stopping or session is None or not session.is_open:
            return
        timeout = self._settings.session_idle_timeout
        left = timeout - session.idle_for()
        if left > 0:
            self._look_again(id, left)
        else:
            self._tasks.start(self.end(session, "idle", SERVER), f"close {session.id}")

    def _forget(self, session: LiveSession) -> None:
        self._open.pop(session.id, None)
        self._keys.forget(session.id)
        self._clients.forget(session)

    def admit(
        self, live: LiveSession, caller: Caller, what: str, *, is_code: bool, executions: int = 0
    ) -> None:
        """Let something of an agent's pass the gate that is no execution, or refuse it at once.

        Everything that runs or changes something is asked for here, or waits as an execution.

        Parameters
        ----------
        what
            What the agent is about to do, as the beginning of a sentence.
        is_code
            Whether it runs code, or can become code that somebody runs: then it needs approval
            where executions do.
        executions
            How many executions it counts as, against the caps of an agent token.

        Raises
        ------
        Paused, ApprovalRequired, TooManyRequests
        """
        live.asking.check(what, is_code=is_code)
        self._usage.count(caller, executions)

    async def live_session(self, id: str) -> LiveSession:
        """Return an open session.

        Raises
        ------
        SessionNotFound, SessionClosed, SessionElsewhere
        """
        await self._begun()
        live = self._open.get(SessionId(id))
        if live is None:
            record = await self._read_session(id)
            if self._is_elsewhere(record):
                raise await self._elsewhere(record.id)
            raise self._closed(record)
        live.touch()
        return live

    def _closed(self, record: Session) -> SessionClosed:
        """Return that a session is closed, why, and what to do."""
        told = "The session is closed; open another."
        if record.close_reason is not None and record.close_reason != "closed":
            why = CLOSED_BECAUSE[record.close_reason]
            told = f"The session is closed. {why} Open another; its record can still be read."
        return SessionClosed(
            told,
            session_id=record.id,
            reason=record.close_reason,
        )

    def _is_elsewhere(self, record: Session) -> bool:
        return record.status == "open" and record.id not in self._open

    async def _elsewhere(self, id: SessionId) -> SessionElsewhere:
        """Return whose an open session is that is not open here."""
        owner = await self.in_thread(partial(self._history.owner, id))
        server: dict[str, object] = {"alive": owner is not None and owner.is_alive}
        if owner is not None:
            server |= {"address": owner.address, "host": owner.host, "pid": owner.pid}
        if owner is not None and owner.is_alive:
            where = "" if owner.address is None else f" at {owner.address}"
            process = "" if owner.pid is None else f" (process {owner.pid} on {owner.host})"
            told = (
                f"The session belongs to another Jupyter server on the same history{where}"
                f"{process}, which is running. Ask that server, or open a session here."
            )
        else:
            told = (
                "The session's server has died, and that cannot be recorded now: the history "
                "cannot be written. Open another session."
            )
        return SessionElsewhere(told, session_id=id, server=server)

    async def _read_session(self, id: str) -> Session:
        """Return a session as recorded; one that a dead server left open is ended before."""
        record = await self._read(self._history.session, id)
        if self._is_elsewhere(record):
            await self.in_thread(self._history.settle)
            record = await self._read(self._history.session, id)
        return record

    async def _read_execution(self, id: str) -> ExecutionRecord:
        """Return an execution as recorded; one that a dead server left open is ended before."""
        record = await self._read(self._history.execution, id)
        if record.status not in FINAL_STATUSES and record.session_id not in self._open:
            await self.in_thread(self._history.settle)
            record = await self._read(self._history.execution, id)
        return record

    async def _settle_now_and_then(self) -> None:
        """End what other servers leave when they die, also if nobody asks for it."""
        while True:
            await asyncio.sleep(SETTLE_INTERVAL)
            await self._begun()
            await self.in_thread(self._history.settle)

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
