"""The client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import overload

import httpx2

from .. import models
from . import calls, notebook_calls
from .async_session import AsyncSession
from .drivers import AsyncDriver
from .events import Event
from .requests import session_request, session_target
from .result import Result
from .servers import named, running


class AsyncAgentExecClient:
    """`AgentExecClient`, awaited; on asyncio or trio. Tasks of one event loop may share one.

    Examples
    --------
    >>> async with AsyncAgentExecClient() as client:
    ...     async with await client.open_session(agent="analyst") as session:
    ...         print((await session.run("1 + 1")).text)
    2
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        given = named(url, token)
        self._driver = AsyncDriver(
            lambda: calls.connect(given, [] if given else running()), transport
        )

    async def __aenter__(self) -> AsyncAgentExecClient:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> AsyncAgentExecClient:
        """Find the server, as the first call does otherwise, and return this client."""
        await self._driver.connect()
        return self

    async def close(self) -> None:
        """Close the connections. Sessions stay open."""
        await self._driver.close()

    @property
    def address(self) -> str | None:
        """The address of the server; None before there is one."""
        return self._driver.address

    async def status(self) -> models.ServerStatus:
        """Ask how the extension is doing."""
        return await self._driver.run(calls.status())

    async def open_session(
        self,
        agent: str | models.Agent = "python-client",
        *,
        notebook: str | None = None,
        create: bool = False,
        kernel_id: str | None = None,
        kernel_name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        title: str | None = None,
        client_id: str | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        restart_if_interrupt_ignored: bool | None = None,
        init_source: str | None = None,
    ) -> AsyncSession:
        """Open a session, as `AgentExecClient.open_session` does."""
        request = session_request(
            agent,
            session_target(
                notebook=notebook,
                kernel_id=kernel_id,
                kernel_name=kernel_name,
                create=create,
                cwd=cwd,
                env=env,
            ),
            models.Limits(
                timeout=timeout,
                max_output_bytes=max_output_bytes,
                restart_if_interrupt_ignored=restart_if_interrupt_ignored,
            ),
            title=title,
            client_id=client_id,
            init_source=init_source,
        )
        return AsyncSession(self._driver, await self._driver.run(calls.open_session(request)))

    async def session(self, session_id: str) -> AsyncSession:
        """Return the session with this id, to look at it or to go on in it."""
        return AsyncSession(self._driver, await self._driver.run(calls.session(session_id)))

    async def sessions(self) -> AsyncIterator[AsyncSession]:
        """Give all sessions, open and closed, the newest first."""
        async for info in self._driver.feed(calls.sessions()):
            yield AsyncSession(self._driver, info)

    async def execution(self, execution_id: str) -> Result:
        """Look at an execution, any number of times."""
        return await self._driver.run(calls.execution(execution_id))

    async def wait(self, execution_id: str) -> Result:
        """Wait until an execution has finished."""
        return await self._driver.run(calls.wait(execution_id))

    def follow(self, execution_id: str) -> AsyncIterator[Event]:
        """Give the events of an execution: those that were, and those to come."""
        return self._driver.feed(calls.follow(execution_id))

    async def cancel(self, execution_id: str) -> None:
        """Take back an execution, as `AgentExecClient.cancel` does."""
        await self._driver.run(calls.cancel(execution_id))

    @overload
    async def text(
        self, execution_id: str, offset: int = 0, limit: int | None = None, grep: None = None
    ) -> models.Text: ...

    @overload
    async def text(
        self, execution_id: str, offset: int = 0, limit: int | None = None, *, grep: str
    ) -> models.TextMatches: ...

    async def text(
        self,
        execution_id: str,
        offset: int = 0,
        limit: int | None = None,
        grep: str | None = None,
    ) -> models.Text | models.TextMatches:
        """Read an execution's whole text, as `AgentExecClient.text` does."""
        if grep is not None:
            return await self._driver.run(calls.grep(execution_id, grep, offset))
        return await self._driver.run(calls.text(execution_id, offset, limit))

    async def notebooks(self) -> list[models.OpenNotebook]:
        """List the notebooks in use, as `AgentExecClient.notebooks` does."""
        return await self._driver.run(notebook_calls.notebooks())

    async def cells(
        self, path: str, *, outputs: bool = True, text_limit: int | None = None
    ) -> models.NotebookCells:
        """Read a notebook as it is now, as `AgentExecClient.cells` does."""
        return await self._driver.run(notebook_calls.cells(path, outputs, text_limit))

    def search(
        self,
        q: str = "",
        *,
        agent: str | None = None,
        status: str | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        has_image: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[models.SearchHit]:
        """Search the history, as `AgentExecClient.search` does."""
        filters: dict[str, str | bool | None] = {
            "agent": agent,
            "status": status,
            "session_id": session_id,
            "since": since,
            "until": until,
            "has_image": has_image,
        }
        return self._driver.feed(calls.search(q, limit, filters))
