"""The routes of dynamic sessions, as Azure Container Apps has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from tornado import web
from tornado.httputil import HTTPFile

from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..errors import InvalidRequest
from ..files.handlers import OneFileBase
from ..models import CodeExecuted, DynamicFileList, ExecuteCode
from ..tasks import settle
from .client import Client
from .failed_calls import COOKIE, SECONDS, FailedCalls
from .manager import DynamicSessions
from .outcome import NOT_RUN
from .queries import DynamicSessionQuery

_OWN: Final = "sessions of its own, by their identifiers"


class DynamicSessionsBase(AgentExecHandler):
    """Base of the handlers below."""

    dynamic_sessions: DynamicSessions

    def client(self, query: DynamicSessionQuery) -> Client:
        """Return whose session a request is about."""
        if self.caller.token is not None:
            return Client(query.identifier, self.caller.token.id)
        return Client(query.identifier, None, None if self._is_anyone else self.caller.username)

    @property
    def _is_anyone(self) -> bool:
        """Whether it is not known which person asks.

        The server's own token does not tell, and Jupyter makes up a name for each request with it.
        """
        provider = self.identity_provider
        shown = provider.get_token(self)
        return not provider.auth_enabled or (bool(shown) and shown == provider.token)


class DynamicExecuteHandler(DynamicSessionsBase):
    """Code in a dynamic session."""

    failed_calls: FailedCalls

    def initialize(self, services: Mapping[str, object], route: str) -> None:
        """Take the services, before the client can go away."""
        super().initialize(services, route)
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_connection_close(self) -> None:
        """Hear that the client went away: its users mean that the code is to stop."""
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
        told = await self.dynamic_sessions.execute(client, body.properties, self.caller, self._gone)
        if told is None:
            return
        self.check_token()
        if not told.succeeded:
            self._mark_failure(client)
        self.answer(told.executed)

    def _mark_failure(self, client: Client) -> None:
        mark = self.failed_calls.failed(self.request, client)
        if mark is not None:
            path = self.request.path
            self.set_cookie(
                COOKIE, mark, max_age=SECONDS, path=path, httponly=True, samesite="Strict"
            )


class DynamicUploadHandler(DynamicSessionsBase):
    """A file on its way into a dynamic session."""

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
        """Put a file into the folder of a session; it replaces one that has its name."""
        file = self._file()
        name = unquote(file.filename)  # which clients encode as they do in an address
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
        """List the files in the folder of a session."""
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
        """Read a file; what it holds was made by code that nobody vouches for."""
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
"""Paths under the namespace, and what answers there."""
