"""Answers as a server would send them, and a connection that gives them without I/O."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext
from typing import Any

import httpx2
import msgspec

from jupyter_agent_exec import models
from jupyter_agent_exec.client import AsyncAgentExecClient, AsyncSession, ServerUnreachable
from jupyter_agent_exec.client.blocking import iterate, run
from jupyter_agent_exec.client.connection import Connection, Request
from jupyter_agent_exec.client.servers import Server
from jupyter_agent_exec.models import Problem
from jupyter_agent_exec.types import Digest, ExecutionId, SessionId

DIGEST = Digest("0" * 64)
CHAIN = models.Chain(head=DIGEST, length=3)


def execution(status: str = "ok", **changes: Any) -> models.Execution:
    outputs = changes.pop("outputs", [])
    plain = models.Execution(
        id=ExecutionId("x_1"),
        session_id=SessionId("s_1"),
        seq=1,
        init=False,
        status=status,  # type: ignore[arg-type]
        reason=None,
        source="1+1",
        source_sha256=DIGEST,
        execution_count=1,
        cell={
            "cell_type": "code",
            "id": "x_1",
            "metadata": {},
            "source": "1+1",
            "execution_count": 1,
            "outputs": outputs,
        },
        text="2",
        images=[],
        error=None,
        values=None,
        kernel=None,
        agent=models.Agent(name="tester"),
        username="ada",
        token=None,
        timeout=60.0,
        accepted_at="2026-01-01T00:00:00.000Z",
        started_at=None,
        finished_at=None,
        duration=0.25,
        outputs_complete=True,
        omitted=models.Omitted(),
        interrupt_ignored=False,
        waiting_for=None,
        document=None,
        chain=CHAIN,
    )
    return msgspec.structs.replace(plain, **changes)


def session(session_id: str = "s_1") -> models.Session:
    return models.Session(
        id=SessionId(session_id),
        agent=models.Agent(name="tester"),
        target=models.ScratchTarget(),
        title=None,
        client_id=None,
        limits=models.Limits(),
        status="open",
        close_reason=None,
        username="ada",
        access="full",
        path=None,
        record_people="off",
        kernel=None,
        executions=0,
        opened_at="2026-01-01T00:00:00.000Z",
        last_activity_at="2026-01-01T00:00:00.000Z",
        closed_at=None,
        chain=CHAIN,
    )


def server_status() -> models.ServerStatus:
    return models.ServerStatus(
        version="0.1.0",
        history_available=True,
        open_sessions=0,
        kernels=0,
        running=0,
        queued=0,
        ledger=CHAIN,
        search_ready=True,
    )


def reply(body: Any, status: int = 200, etag: str = "") -> httpx2.Response:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return httpx2.Response(status, headers={"ETag": etag} if etag else {}, content=content)


def problem(code: str, message: str, status: int, /, **detail: Any) -> httpx2.Response:
    return reply(Problem(message=message, reason=None, code=code, detail=detail), status)


class Script(Connection):
    """Answers a client's requests with what is given beforehand, and keeps what was sent.

    Parameters
    ----------
    answers
        For each request and each piece of a download in turn: a reply, bytes, or an error to raise.
    servers
        The servers to find; None if the connection is there already.
    """

    def __init__(
        self,
        *answers: httpx2.Response | bytes | ServerUnreachable,
        servers: list[Server] | None = None,
    ) -> None:
        super().__init__(None, None)
        self.connected = servers is None
        self._connecting = nullcontext()
        self._servers = servers or []
        self._answers = list(answers)
        self.client = AsyncAgentExecClient.over(self)
        self.session = AsyncSession(self, session())
        self.sent: list[Request] = []
        self.pauses: list[float] = []
        self.emitted: list[Any] = []
        self.tried: list[str] = []

    def run(self, work: Any) -> Any:
        """Run a coroutine, or keep in `emitted` what an async generator gives."""
        if callable(work):
            work = work(self)
        if isinstance(work, AsyncGenerator):
            self.emitted += iterate(work)
            value = None
        else:
            value = run(work)
        assert not self._answers, "the call ended before all answers were taken"
        return value

    def _next(self) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, ServerUnreachable):
            raise answer
        return answer

    def _here(self) -> list[Server]:
        return self._servers

    async def use(self, server: Server) -> None:
        self.tried.append(server.address)

    async def exchange(self, request: Request) -> httpx2.Response:
        self.sent.append(request)
        reply: httpx2.Response = self._next()
        return reply

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[httpx2.Response]:
        reply = await self.exchange(request)
        async with aclosing(self._pieces()) as pieces:
            yield httpx2.Response(
                reply.status_code,
                headers={
                    "ETag": reply.headers.get("ETag", ""),
                    "Content-Type": "text/event-stream",
                },
                content=pieces if reply.is_success else reply.content,
                request=httpx2.Request("GET", "http://127.0.0.1"),
            )

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        while piece := self._next():
            yield piece

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def close(self) -> None: ...

    async def in_thread(self, function: Any, *args: Any) -> Any:
        return function(*args)
