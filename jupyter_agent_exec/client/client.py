"""The client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import overload

import httpx2

from .. import models
from ..types import ApprovalMode, Digest, Verdict
from . import approval_calls, calls, notebook_calls
from .async_session import AsyncSession
from .drivers import AsyncDriver
from .events import Event
from .preload import Preloadable
from .requests import session_request, session_target
from .result import Result
from .servers import named, running
from .token_methods import AsyncTokenMethods


class AsyncAgentExecClient(AsyncTokenMethods):
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
        isolated: bool = False,
        title: str | None = None,
        client_id: str | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        restart_if_interrupt_ignored: bool | None = None,
        init_source: str | None = None,
        preload: Iterable[Preloadable] = (),
        allow_stdin: bool = False,
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
                isolated=isolated,
            ),
            models.Limits(
                timeout=timeout,
                max_output_bytes=max_output_bytes,
                restart_if_interrupt_ignored=restart_if_interrupt_ignored,
            ),
            title=title,
            client_id=client_id,
            init_source=init_source,
            preload=preload,
            allow_stdin=allow_stdin,
        )
        return AsyncSession(self._driver, await self._driver.run(calls.open_session(request)))

    async def session(self, session_id: str) -> AsyncSession:
        """Return the session with this id, to look at it or to go on in it."""
        return AsyncSession(self._driver, await self._driver.run(calls.session(session_id)))

    async def sessions(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        target: str | None = None,
        since: str | None = None,
        until: str | None = None,
        unreviewed: bool | None = None,
    ) -> AsyncIterator[AsyncSession]:
        """Give sessions, as `AgentExecClient.sessions` does."""
        found = calls.sessions(
            status=status,
            agent=agent,
            target=target,
            since=since,
            until=until,
            unreviewed=unreviewed,
        )
        async for info in self._driver.feed(found):
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

    async def give_input(
        self, execution_id: str, value: str, *, asked_at: str | None = None
    ) -> Result:
        """Answer what the code of an execution asks for."""
        return await self._driver.run(calls.give_input(execution_id, value, asked_at))

    async def approvals(self) -> models.Approvals:
        """Return what asks for approval, as `AgentExecClient.approvals` does."""
        return await self._driver.run(approval_calls.approvals())

    async def approve(
        self, execution_id: str, source_sha256: str, *, source: str | None = None
    ) -> Result:
        """Let an execution run, as `AgentExecClient.approve` does."""
        request = models.Approve(source_sha256=Digest(source_sha256), source=source)
        return await self._driver.run(approval_calls.decide(execution_id, request))

    async def reject(self, execution_id: str, reason: str | None = None) -> Result:
        """Do not let an execution run, as `AgentExecClient.reject` does."""
        request = models.Reject(reason=reason)
        return await self._driver.run(approval_calls.decide(execution_id, request))

    async def set_policy(
        self,
        *,
        scratch: ApprovalMode | None = None,
        notebook: ApprovalMode | None = None,
        kernel: ApprovalMode | None = None,
    ) -> models.Approvals:
        """Say what agents must ask for, as `AgentExecClient.set_policy` does."""
        policy = models.SetPolicy(scratch=scratch, notebook=notebook, kernel=kernel)
        return await self._driver.run(approval_calls.rule(policy))

    async def unlock(self, passphrase: str) -> str:
        """Prove that a person decides, as `AgentExecClient.unlock` does."""
        return await self._driver.run(approval_calls.unlock(passphrase))

    async def pause(self) -> models.Approvals:
        """Hold all agents, as `AgentExecClient.pause` does."""
        return await self._driver.run(approval_calls.rule(models.SetPause(paused=True)))

    async def resume(self) -> models.Approvals:
        """End a pause."""
        return await self._driver.run(approval_calls.rule(models.SetPause(paused=False)))

    async def review(
        self, execution_id: str, verdict: Verdict | None, *, comment: str | None = None
    ) -> Result:
        """Say what to think of an execution, as `AgentExecClient.review` does."""
        request = models.SetReview(verdict=verdict, comment=comment)
        return await self._driver.run(calls.review_execution(execution_id, request))

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
        target: str | None = None,
        status: str | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        has_image: bool | None = None,
        review: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[models.SearchHit]:
        """Search the history, as `AgentExecClient.search` does."""
        found = calls.search(
            q,
            limit,
            agent=agent,
            target=target,
            status=status,
            session_id=session_id,
            since=since,
            until=until,
            has_image=has_image,
            review=review,
        )
        return self._driver.feed(found)
