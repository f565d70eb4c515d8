"""The session in which an adapter's code runs, opened at its first use, for any thread or loop.

Callers may block or await, in any order and from any event loop. Code whose caller stops waiting is
stopped in the kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from uuid import uuid4

import anyio
from anyio.from_thread import BlockingPortal

from ..client import (
    Agent,
    AsyncAgentExecClient,
    AsyncSession,
    ClientError,
    Event,
    Finished,
    Preloadable,
    Result,
    StatusChanged,
    Step,
)
from ..client.servers import Server, named
from ..client.session import print_needed_decision
from ..errors import AgentExecError, AlreadyFinished, SessionClosed
from ..types import FINAL_STATUSES
from .own_servers import OWN_SERVERS
from .result_pieces import InNewSession

T = TypeVar("T")
Life: TypeAlias = tuple[str, int]
"""The id of a session, and the number of its kernel's life."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionTarget:
    """Where code is to run; by default in a scratch kernel of a server that is started for it."""

    url: str | None = None
    """The Jupyter server; when None, that of ``JUPYTER_AGENT_EXEC_URL``. If that is not set, the
    newest that runs here for a notebook or a kernel, else one of our own."""
    token: str | None = None
    """The credential; ``JUPYTER_AGENT_EXEC_TOKEN``, or that of a server that runs here, when
    None."""
    notebook: str | None = None
    """Contents path of a person's notebook: code runs in its kernel, cells go into it."""
    kernel_id: str | None = None
    """Of a kernel that runs: code runs in it, without a document."""

    @property
    def is_scratch(self) -> bool:
        """Whether the kernel is the session's own."""
        return self.notebook is None and self.kernel_id is None


@dataclass(kw_only=True, slots=True)
class SessionOptions:
    """What the session of an adapter is like; see `AgentExecClient.open_session`."""

    agent: str | Agent
    title: str | None = None
    kernel_name: str | None = None
    """For a scratch kernel only; the server's default when None."""
    folder: Path | None = None
    """Where a scratch kernel starts on a server of our own; the current folder when None. A server
    that is named has `cwd`."""
    cwd: str | None = None
    """Contents path of a scratch kernel's folder on a server that is named."""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    init_source: str | None = None
    preload: Sequence[Preloadable] = ()


class KernelSession:
    """A session of an adapter.

    It is opened when it is first used, and again after `close`. Any thread may use it, whether an
    event loop runs there or not.

    Parameters
    ----------
    where
        The server and the kernel.
    options
        What else the session is like.
    """

    def __init__(self, where: SessionTarget, options: SessionOptions) -> None:
        self.where = where
        self.options = options
        self._lock = threading.Lock()
        self._open: SessionThread | None = None
        self._ran_in: Result | None = None
        """What told last in which session and kernel code ran."""
        self._submissions: dict[str, Submission] = {}
        """By its key, what `ask_async` has asked for, until somebody waits for its end."""

    def run(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
    ) -> list[Result]:
        """Run sources in order, nothing else of the session between them, and wait for their end.

        Whatever interrupts the waiting, such as Ctrl-C, stops the code too.

        Parameters
        ----------
        sources
            At least one. Each becomes an execution.
        timeout
            Seconds each may run; the session's limit when None.
        stop_on_error
            Cancel what comes after one that does not end as ``ok``.

        Raises
        ------
        AgentExecError
            The server refuses; nothing was run.
        ServerUnreachable
            There is no connection, or no server could be started.
        """
        asked = Submission(list(sources), timeout, stop_on_error)
        place = self._opened()
        future = place.begin(asked.run)
        try:
            results = future.result()
        except BaseException:
            if not future.done():
                place.give_up(asked).result()
            raise
        return self._with_losses_told(results)

    async def run_async(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
        key: str | None = None,
    ) -> list[Result]:
        """Run sources in order, as `run` does; cancelling the task stops the code first.

        Parameters
        ----------
        key
            Of what was asked for by `ask_async` with the same arguments, and runs once.
        """
        asked = None if key is None else self._submissions.pop(key, None)
        if asked is None:
            asked = Submission(list(sources), timeout, stop_on_error, key)
        return self._with_losses_told(await self._awaited(asked, asked.run))

    async def ask_async(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
        key: str,
    ) -> Result | None:
        """Have sources accepted, and wait until it is decided whether the first of them may run.

        Once it may, it does; `run_async` with the same key waits for the end, and `take_back_async`
        stops it. Cancelling the task takes all of them back.

        Returns
        -------
        The first one as it stands then; None if people need not approve what this session runs:
        then nothing was asked for.
        """
        asked = Submission(list(sources), timeout, stop_on_error, key)
        first = await self._awaited(asked, asked.decided)
        if first is not None and (first.ok or first.status not in FINAL_STATUSES):
            self._submissions[key] = asked
        return first

    async def take_back_async(self, key: str) -> None:
        """Stop what `ask_async` has asked for, unless `run_async` already waits for it."""
        asked = self._submissions.pop(key, None)
        if asked is not None:
            await asyncio.shield(asyncio.wrap_future(self._opened().give_up(asked)))

    async def _awaited(self, asked: Submission, work: SessionWork[T]) -> T:
        place = self._opened()
        running = asyncio.wrap_future(place.begin(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # Who cancels again, such as a loop that ends, does not wait for it; it goes on.
            await asyncio.shield(asyncio.wrap_future(place.give_up(asked)))
            if asked.was_sent:
                with suppress(Exception):  # who cancels has no use for what went wrong meanwhile
                    await running
            else:
                running.cancel()  # the session is opened all the same, for what comes next
            raise

    def open(self) -> None:
        """Have the session open, and its kernel ready, before it is first used."""
        self.do(_nothing)

    async def open_async(self) -> None:
        """Have the session open, as `open` does."""
        await self.do_async(_nothing)

    def do(self, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do something else with the session, such as sending a file, and return what comes of it.

        Parameters
        ----------
        work
            A function of the session, which runs on this object's own loop.
        """
        return self._opened().begin(lambda _, session: work(session)).result()

    async def do_async(self, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do something else with the session, as `do` does."""
        return await asyncio.wrap_future(self._opened().begin(lambda _, session: work(session)))

    def life(self) -> Life | None:
        """Return in which life of its kernel the session is; None if code will find a fresh one."""
        return self._opened().begin(_life).result()

    async def is_dead(self) -> bool:
        """Return whether the kernel has ended since it was last used; one that never was is not."""
        with self._lock:
            place = self._open
        if place is None or self._ran_in is None:
            return False
        return await asyncio.wrap_future(place.begin(_life)) is None

    def begin_anew(self) -> None:
        """Close the session; the next use opens another, and variables are gone as was wanted."""
        self.do(AsyncSession.close)
        self._ran_in = None

    def close(self) -> None:
        """Close the session, its kernel, and the server if it is our own; twice is no harm."""
        with self._lock:
            place, self._open = self._open, None
            self._ran_in = None
            self._submissions.clear()
        if place is not None:
            place.close()

    async def close_async(self) -> None:
        """Close, as `close` does, without holding up the loop."""
        await asyncio.to_thread(self.close)

    def _opened(self) -> SessionThread:
        with self._lock:
            if self._open is None or self._open.is_inherited:
                self._open = SessionThread(self.where, self.options)
            return self._open

    def _with_losses_told(self, results: list[Result]) -> list[Result]:
        """Return results, of which the first in another session's place says that it is that."""
        return [self._with_loss_told(each) for each in results]

    def _with_loss_told(self, result: Result) -> Result:
        kernel = result.execution.kernel
        if kernel is None:
            return result
        before, self._ran_in = self._ran_in, result
        if before is None or before.execution.session_id == result.execution.session_id:
            return result
        known = before.execution.kernel
        is_same = known is not None and known.id == kernel.id  # a person's, that went on
        return result if is_same else InNewSession(result.execution)


def life_of(result: Result) -> Life | None:
    """Return in which life of the kernel code ran; None if it did not."""
    kernel = result.execution.kernel
    return None if kernel is None else (result.execution.session_id, kernel.incarnation)


async def _nothing(_: AsyncSession) -> None:
    """Do nothing; for this the session is opened."""


async def _life(client: AsyncAgentExecClient, session: AsyncSession) -> Life | None:
    info = (await client.session(session.id)).info
    is_over = info.status == "closed" or info.kernel is None
    return None if is_over or info.kernel is None else (info.id, info.kernel.incarnation)


SessionWork: TypeAlias = Callable[[AsyncAgentExecClient, AsyncSession], Awaitable[T]]

_CLOSED: Final = "The session was closed by this program while something waited for it."


class SessionThread:
    """An event loop in a thread of its own, and the session there; any thread may use it.

    Parameters
    ----------
    where
        The server and the kernel.
    options
        What else the session is like.
    """

    def __init__(self, where: SessionTarget, options: SessionOptions) -> None:
        self._where = where
        self._options = options
        # Not anyio's own thread: it would be waited for in a process that was forked, and is not
        # there.
        serving: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(
            target=_serve, args=(serving,), name="agent-exec-adapter", daemon=True
        )
        self._thread.start()
        self._portal = serving.result()
        self._opening = self._portal.call(anyio.Lock)
        self._beginning = threading.Lock()
        self._closing = False
        self._at_work: set[asyncio.Task[None]] = set()
        self._client: AsyncAgentExecClient | None = None
        self._session: AsyncSession | None = None
        self._own_root = options.folder or Path.cwd()
        self._own_server: Server | None = None
        self._process = os.getpid()
        # For a program that forgets to: once the interpreter goes, the loop's thread answers no
        # more.
        atexit.register(self.close)

    @property
    def is_inherited(self) -> bool:
        """Whether the process from which this one was forked made it: its thread is not here."""
        return os.getpid() != self._process

    def begin(self, work: SessionWork[T]) -> Future[T]:
        """Start work with the session, and open it first if needed.

        Raises
        ------
        SessionClosed
            `close` was called.
        """
        with self._beginning:
            if self._closing:
                raise SessionClosed(_CLOSED)
            return self._portal.start_task_soon(self._do, work)

    def give_up(self, asked: Submission) -> Future[None]:
        """Stop a submission; this opens nothing and raises nothing."""
        asked.give_up()
        with self._beginning:
            if not self._closing:
                return self._portal.start_task_soon(self._stop, asked)
        stopped: Future[None] = Future()
        stopped.set_result(None)
        return stopped

    def close(self) -> None:
        """Close the session, and the server if it is our own."""
        if self.is_inherited:
            return
        atexit.unregister(self.close)
        with self._beginning:
            self._closing = True
        try:
            self._portal.call(self._leave)
        finally:
            self._portal.call(self._portal.stop)
            self._thread.join()
            if self._own_server is not None:
                OWN_SERVERS.release(self._own_root)

    async def _do(self, work: SessionWork[T]) -> T:
        with self._working():
            client, session = await self._in_session()
            try:
                return await work(client, session)
            except SessionClosed:
                # Somebody closed it. It took nothing of this, so another may.
                if self._session is session:
                    self._session = None
                return await work(*await self._in_session())

    async def _stop(self, asked: Submission) -> None:
        with self._working():
            await asked.stop()

    @contextmanager
    def _working(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._at_work.add(task)
        try:
            yield
        finally:
            self._at_work.discard(task)

    async def _in_session(self) -> tuple[AsyncAgentExecClient, AsyncSession]:
        async with self._opening:
            if self._closing:
                raise SessionClosed(_CLOSED)
            # Nobody would end a server or a session that came to be after its opener was gone.
            with anyio.CancelScope(shield=True):
                if self._client is None:
                    self._client = await self._connected()
                if self._session is None:
                    self._session = await self._new_session(self._client)
            assert self._client is not None
            assert self._session is not None
            return self._client, self._session

    async def _connected(self) -> AsyncAgentExecClient:
        where = self._where
        if named(where.url, where.token) is not None or not where.is_scratch:
            return await AsyncAgentExecClient(where.url, where.token).connect()
        if self._own_server is None:
            # Not anyio's thread: an idle one of those keeps a program that forgot to close from
            # ending.
            self._own_server = await asyncio.to_thread(OWN_SERVERS.acquire, self._own_root)
        return await AsyncAgentExecClient(self._own_server.url, self._own_server.token).connect()

    async def _new_session(self, client: AsyncAgentExecClient) -> AsyncSession:
        options = self._options
        return await client.open_session(
            options.agent,
            notebook=self._where.notebook,
            kernel_id=self._where.kernel_id,
            kernel_name=options.kernel_name if self._where.is_scratch else None,
            cwd=options.cwd if self._where.is_scratch else None,
            env=options.env if self._where.is_scratch else None,
            title=options.title,
            timeout=options.timeout,
            restart_if_interrupt_ignored=self._where.is_scratch or None,
            init_source=options.init_source,
            preload=options.preload,
        )

    async def _leave(self) -> None:
        async with self._opening:
            if self._session is not None:
                with suppress(ClientError, AgentExecError):
                    await self._session.close()
        # They end because the session has; until then they need the connection.
        await asyncio.gather(*self._at_work, return_exceptions=True)
        if self._client is not None:
            await self._client.close()


def _serve(serving: Future[BlockingPortal]) -> None:
    async def serve() -> None:
        async with BlockingPortal() as portal:
            serving.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve)
    except BaseException as error:
        if serving.done():
            raise
        serving.set_exception(error)


class Submission:
    """Sources that are sent to a session once, under one idempotency key.

    Parameters
    ----------
    sources
        Each becomes an execution.
    timeout
        Seconds each may run; the session's limit when None.
    stop_on_error
        Cancel what comes after one that does not end as ``ok``.
    key
        The idempotency key; a new one when None.
    """

    def __init__(
        self,
        sources: list[str | Step],
        timeout: float | None,
        stop_on_error: bool,
        key: str | None = None,
    ) -> None:
        self._sources = sources
        self._timeout = timeout
        self._stop_on_error = stop_on_error
        self._key = key or uuid4().hex
        self._sent: tuple[AsyncAgentExecClient, AsyncSession] | None = None
        self._wanted = True

    def give_up(self) -> None:
        """Mark the sources as no longer wanted: what was not sent never will be."""
        self._wanted = False

    def is_wanted(self) -> bool:
        """Whether the sources are still wanted."""
        return self._wanted

    @property
    def was_sent(self) -> bool:
        """Whether the server may have received the sources."""
        return self._sent is not None

    async def run(self, client: AsyncAgentExecClient, session: AsyncSession) -> list[Result]:
        """Wait for the end of all of them."""
        if not self.is_wanted():
            return []
        self._sent = client, session
        try:
            results = await session.run_steps(
                self._sources,
                stop_on_error=self._stop_on_error,
                timeout=self._timeout,
                idempotency_key=self._key,
            )
        except SessionClosed:
            if self.is_wanted():
                raise
            return []
        return [
            await client.execution(each.id) if each.execution.left_out else each for each in results
        ]

    async def decided(self, client: AsyncAgentExecClient, session: AsyncSession) -> Result | None:
        """Wait until it is decided whether the first may run; None if people need not decide."""
        if (await client.session(session.id)).info.approval == "none" or not self._wanted:
            return None
        self._sent = client, session
        first = (await self._accepted(session))[0]
        if first.status == "awaiting_approval":
            print_needed_decision(first.execution)
            async for event in client.follow(first.id):
                if isinstance(event, Finished) or _is_decided(event):
                    break
        return await client.execution(first.id)

    async def stop(self) -> None:
        """Cancel what was sent and has not finished, as far as the server can be reached."""
        if self._sent is None:
            return
        client, session = self._sent
        with suppress(ClientError, AgentExecError):
            # The same key: it tells what was accepted, and runs nothing again.
            accepted = await self._accepted(session)
            # The last one first, so that none of them begins because of this.
            for each in reversed(accepted):
                with suppress(AlreadyFinished):
                    await client.cancel(each.id)

    async def _accepted(self, session: AsyncSession) -> list[Result]:
        return await session.submit_steps(
            self._sources,
            stop_on_error=self._stop_on_error,
            timeout=self._timeout,
            idempotency_key=self._key,
        )


def _is_decided(event: Event) -> bool:
    return isinstance(event, StatusChanged) and event.change.status != "awaiting_approval"
