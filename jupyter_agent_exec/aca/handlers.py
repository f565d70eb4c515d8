"""The routes of dynamic sessions, as in Azure Container Apps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Annotated, Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from msgspec import Meta
from tornado import web
from tornado.httputil import HTTPFile, HTTPServerRequest

from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..errors import InvalidRequest
from ..files.handlers import OneFileBase
from ..models import Request
from ..tasks import settle
from .manager import Client, DynamicSessions
from .outcome import NOT_RUN, CodeExecuted, DynamicFileList, ExecuteCode

_OWN: Final = "sessions of its own, by their identifiers"

COOKIE: Final = "agent-exec-failed-call"

SECONDS: Final = 5
"""Seconds for which a failure counts. The other blocks of a call follow at once, and a different
client that reuses its HTTP session is not refused for long."""

_PROXY_HEADERS: Final = ("Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip")


class DynamicSessionQuery(
    Request, frozen=True, kw_only=True, rename={"api_version": "api-version"}
):
    """The query that selects a dynamic session."""

    identifier: Annotated[str, Meta(min_length=1, max_length=128)]
    """The client's own name for the session. It selects the same session while that is open."""
    api_version: str | None = None
    """Accepted and ignored."""


class DynamicSessionsBase(AgentExecHandler):
    """Base of the handlers below."""

    dynamic_sessions: DynamicSessions

    def client(self, query: DynamicSessionQuery) -> Client:
        """Return the client of a request."""
        if self.caller.token is not None:
            return Client(query.identifier, self.caller.token.id)
        return Client(query.identifier, None, None if self._is_anyone else self.caller.username)

    @property
    def _is_anyone(self) -> bool:
        """Whether the user is unknown.

        The server's own token does not identify a user: Jupyter makes up a name for each request.
        """
        provider = self.identity_provider
        shown = provider.get_token(self)
        return not provider.auth_enabled or (bool(shown) and shown == provider.token)


class DynamicExecuteHandler(DynamicSessionsBase):
    """Code to run in a dynamic session."""

    failed_calls: FailedCalls

    def initialize(self, services: Mapping[str, object], route: str) -> None:
        """Store the services, and prepare to notice that the client disconnects."""
        super().initialize(services, route)
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_connection_close(self) -> None:
        """Stop the code, because users of such clients disconnect to cancel it."""
        super().on_connection_close()
        settle(self._gone)

    @web.authenticated
    @requires(
        "exec:scratch",
        body=ExecuteCode,
        query=DynamicSessionQuery,
        answers={200: CodeExecuted},
        agents=_OWN,
    )
    async def post(self, body: ExecuteCode, query: DynamicSessionQuery) -> None:
        """Run code in the session of an identifier, and wait for it."""
        client = self.client(query)
        if self.failed_calls.follows(self.request, client):
            self.answer(CodeExecuted(properties=NOT_RUN))
            return
        told = await self.dynamic_sessions.execute(
            client, body.properties, self.caller, self._gone, self.public_path
        )
        if told is None:
            return
        self.check_token()
        if not told.succeeded:
            self._mark_failure(client)
        self.answer(told.executed)

    def _mark_failure(self, client: Client) -> None:
        mark = self.failed_calls.failed(self.request, client)
        if mark is not None:
            path = self.public(self.request.path)
            self.set_cookie(
                COOKIE, mark, max_age=SECONDS, path=path, httponly=True, samesite="Strict"
            )


class DynamicUploadHandler(DynamicSessionsBase):
    """An upload into a dynamic session."""

    @web.authenticated
    @requires(
        "files",
        "exec:scratch",
        body="multipart/form-data",
        query=DynamicSessionQuery,
        answers={200: DynamicFileList},
        agents=_OWN,
    )
    async def post(self, query: DynamicSessionQuery) -> None:
        """Upload a file into a session's folder. It replaces a file of the same name."""
        file = self._file()
        name = unquote(file.filename)  # clients percent-encode it
        self.answer(
            await self.dynamic_sessions.upload(self.client(query), name, file.body, self.caller)
        )

    def _file(self) -> HTTPFile:
        files = self.request.files.get("file", [])
        if len(files) != 1 or not files[0].filename:
            raise InvalidRequest(
                "file: send one file with a name, as the field 'file' of multipart/form-data.",
                field="file",
            )
        return files[0]


class DynamicFilesHandler(DynamicSessionsBase):
    """The files of a dynamic session."""

    @web.authenticated
    @requires(
        "files",
        "exec:scratch",
        query=DynamicSessionQuery,
        answers={200: DynamicFileList},
        agents=_OWN,
    )
    async def get(self, query: DynamicSessionQuery) -> None:
        """List the files in a session's folder."""
        self.answer(await self.dynamic_sessions.files(self.client(query), self.caller))


class DynamicFileHandler(DynamicSessionsBase, OneFileBase):
    """One file of a dynamic session."""

    @web.authenticated
    @requires(
        "files",
        "exec:scratch",
        query=DynamicSessionQuery,
        answers={200: "*/*"},
        agents=_OWN,
    )
    async def get(self, filename: str, query: DynamicSessionQuery) -> None:
        """Read a file. Its content is untrusted."""
        file = await self.dynamic_sessions.open_file(self.client(query), filename, self.caller)
        try:
            if self.describe(file):
                await self.send_pieces(file.pieces())
        finally:
            file.close()


ROUTES: list[tuple[str, type[DynamicSessionsBase]]] = [
    ("/aca/code/execute", DynamicExecuteHandler),
    ("/aca/files/upload", DynamicUploadHandler),
    ("/aca/files", DynamicFilesHandler),
    ("/aca/files/content/{filename}", DynamicFileHandler),
]
"""Paths under the namespace, and their handlers."""


class FailedCalls:
    """Detects requests of AutoGen's client that follow a failure within the same call.

    The client sends the blocks of a call one by one, and continues after a failed block. A request
    does not identify its call, but each call has its own HTTP session, with cookies and
    connections. So a failure sets a cookie, which only the rest of the call sends back. The
    client's HTTP library ignores cookies of a server that is addressed by IP. Then the connection
    identifies the call, unless a proxy may share it between clients.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._connections: WeakKeyDictionary[Any, tuple[str, float]] = WeakKeyDictionary()

    def failed(self, request: HTTPServerRequest, client: Client) -> str | None:
        """Record that the code of a request has failed.

        Returns
        -------
        The value of the response's cookie; None for no cookie.
        """
        if not _is_autogen(request):
            return None
        mark = _mark(client)
        if _has_own_connection(request):
            self._connections[_connection(request)] = (mark, self._clock() + SECONDS)
        return mark

    def follows(self, request: HTTPServerRequest, client: Client) -> bool:
        """Return whether the code of an earlier request in the same call has failed."""
        if not _is_autogen(request):
            return False
        mark = _mark(client)
        cookie = request.cookies.get(COOKIE)
        if cookie is not None and cookie.value == mark:
            return True
        if not _has_own_connection(request):
            return False
        failed, until = self._connections.get(_connection(request), ("", 0.0))
        return failed == mark and self._clock() < until


def _mark(client: Client) -> str:
    """Return an identifier of a client, different for each credential."""
    return sha256(repr(tuple(client)).encode()).hexdigest()


def _connection(request: HTTPServerRequest) -> Any:
    """Return an identifier of a request's connection."""
    return request.connection.stream  # type: ignore[union-attr]


def _is_autogen(request: HTTPServerRequest) -> bool:
    """Return whether a request seems to come from AutoGen's client."""
    return "aiohttp/" in request.headers.get("User-Agent", "")


def _has_own_connection(request: HTTPServerRequest) -> bool:
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    try:
        ip_address(request.host_name.strip("[]"))
    except ValueError:
        return False
    return True
