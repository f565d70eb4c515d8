"""The routes of dynamic sessions, as in Azure Container Apps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import unquote

from msgspec import Meta
from tornado import web
from tornado.httputil import HTTPFile
from traitlets import Float, HasTraits

from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..errors import InvalidRequest
from ..files.handlers import OneFileBase
from ..models import Request
from ..services import Leaf, Services
from ..tasks import settle
from .manager import Client, DynamicSessions
from .outcome import CodeExecuted, DynamicFileList, ExecuteCode

_OWN: Final = "sessions of its own, by their identifiers"


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
        executed = await self.dynamic_sessions.execute(
            self.client(query), body.properties, self.caller, self._gone, self.public_path
        )
        if executed is None:
            return
        self.check_token()
        self.answer(executed)


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


class DynamicSessionsTraits(HasTraits):
    """The traits of dynamic sessions."""

    aca_idle_timeout = Float(
        3600,
        min=0,
        config=True,
        help="""Seconds after which an unused session of the protocol of Azure's dynamic sessions is
        closed together with its folder; 0: never.""",
    )


class DynamicSessionsLeaf(Leaf):
    """Serves the protocol of Azure's dynamic sessions."""

    traits = DynamicSessionsTraits
    settings: DynamicSessionsTraits
    routes = (
        ("/aca/code/execute", DynamicExecuteHandler),
        ("/aca/files/upload", DynamicUploadHandler),
        ("/aca/files", DynamicFilesHandler),
        ("/aca/files/content/{filename}", DynamicFileHandler),
    )
    _sessions: DynamicSessions

    def attach(self, services: Services) -> dict[str, object]:
        """Make the manager of dynamic sessions."""
        self._sessions = DynamicSessions(
            services.manager,
            services.files,
            services.access,
            services.settings,
            idle_timeout=self.settings.aca_idle_timeout,
            log=self.log,
        )
        return {"dynamic_sessions": self._sessions}

    async def stop(self) -> None:
        """Stop closing idle sessions."""
        await self._sessions.stop()
