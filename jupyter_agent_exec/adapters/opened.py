"""An open session of an adapter, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from ..client import AsyncAgentExecClient, AsyncSession, ClientError
from ..client.servers import Server, named
from ..errors import AgentExecError, SessionClosed
from .own_servers import OWN_SERVERS

if TYPE_CHECKING:
    from .kernel_session import SessionOptions, SessionTarget

T = TypeVar("T")
SessionWork: TypeAlias = Callable[[AsyncAgentExecClient, AsyncSession], Awaitable[T]]

_CLOSED: Final = "The session was closed by this program while something waited for it."


class SessionThread:
    """A loop in a thread, and the session there; any thread may use it.

    Parameters
    ----------
    where
        The server and the kernel.
    wishes
        What else the session is like.
    """

    def __init__(self, where: SessionTarget, wishes: SessionOptions) -> None:
        self._where = where
        self._wishes = wishes
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
        self._own_root = wishes.folder or Path.cwd()
        self._own_server: Server | None = None
        self._process = os.getpid()
        # For a program that forgets to: once the interpreter goes, the loop's thread answers no
        # more.
        atexit.register(self.close)

    @property
    def is_inherited(self) -> bool:
        """Whether it is that of the process which this one was forked from: no thread is here."""
        return os.getpid() != self._process

    def begin(self, deed: SessionWork[T]) -> Future[T]:
        """Have something done with the session, which is opened before if need be.

        Raises
        ------
        SessionClosed
            `close` was called.
        """
        with self._beginning:
            if self._closing:
                raise SessionClosed(_CLOSED)
            return self._portal.start_task_soon(self._do, deed)

    def give_up(self, asked: Submission) -> Future[None]:
        """Stop what was asked for; for this nothing is opened, and nothing is raised."""
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

    async def _do(self, deed: SessionWork[T]) -> T:
        with self._working():
            client, session = await self._in_session()
            try:
                return await deed(client, session)
            except SessionClosed:
                # Somebody closed it. It took nothing of this, so another may.
                if self._session is session:
                    self._session = None
                return await deed(*await self._in_session())

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
        wishes = self._wishes
        return await client.open_session(
            wishes.agent,
            notebook=self._where.notebook,
            kernel_id=self._where.kernel_id,
            kernel_name=wishes.kernel_name if self._where.is_scratch else None,
            cwd=wishes.cwd if self._where.is_scratch else None,
            env=wishes.env if self._where.is_scratch else None,
            title=wishes.title,
            timeout=wishes.timeout,
            restart_if_interrupt_ignored=self._where.is_scratch or None,
            init_source=wishes.init_source,
            preload=wishes.preload,
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
