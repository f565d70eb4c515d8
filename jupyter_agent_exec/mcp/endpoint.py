"""The MCP endpoint: its route, its options, and the SDK that answers its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final, TypeAlias

import msgspec
from tornado import web
from traitlets import Bool, Float, HasTraits, Int

from ..auth.access import AccessControl
from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..auth.scopes import Caller, Scope
from ..errors import AgentExecError, Forbidden, NotInstalled, PayloadTooLarge, ServerStopping
from ..executions.limits import Settings
from ..executions.live_executions import Checkpoints
from ..files.manager import SessionFiles
from ..models import NotebookTarget, Target
from ..notebooks.manager import NotebookManager
from ..notebooks.proposals import Proposals
from ..sessions.kernel_inspection import KernelInspection
from ..sessions.manager import AgentSessions
from ..sessions.restores import Restores
from ..tasks import start_apart
from .exchange import Exchange

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of an MCP request, unless the server's own limit is lower."""

TOOLS: Final = "the tools within its scopes"
"""What an agent token may use of MCP."""

SDK: Final = "mcp"
OLDEST: Final = (2, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """The chat of Jupyter AI from which a request comes, as its headers say."""

    id: str
    persona: str
    """What users call the agent there."""

    def client_id(self, target: Target) -> str:
        """Return the id of the agent as a client: it has one session for each target."""
        where = target.path.strip("/") if isinstance(target, NotebookTarget) else target
        digest = sha256(msgspec.json.encode((self.persona, where))).hexdigest()
        return f"chat {self.id[:100]} {digest[:16]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestSender:
    """The sender of a request."""

    caller: Caller
    owner: str
    """Identifies the client. In older MCP revisions it owns the sessions that it opened."""
    authorize: Callable[[Scope], Awaitable[None]]
    """Raises Forbidden if the caller does not have the scope."""
    check_still: Callable[[], None]
    """Raises Unauthenticated if the request's agent token is no longer valid."""
    refused: Callable[[AgentExecError, str, str], None]
    """Notes an error that refuses the caller something. Takes the error, the MCP method and
    the tool's name."""
    gone: asyncio.Future[None]
    """Done when the connection is closed or the response is complete."""
    base_url: str
    """Path at which the client reaches the server, with a slash at both ends."""
    lab_url: str | None
    """Address of JupyterLab; None if this server does not have it."""
    chat: Chat | None = None
    """None: it comes from elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Managers:
    """The managers that the tools use. The HTTP routes use the same instances."""

    sessions: AgentSessions
    notebooks: NotebookManager
    proposals: Proposals
    inspection: KernelInspection
    files: SessionFiles
    """The files in a session's folder."""
    restores: Restores
    access: AccessControl
    open_notebooks: Callable[[], list[str]]
    """Returns the paths of the notebooks that are open in JupyterLab, the one in front first."""
    kernel_names: Callable[[], Awaitable[list[str]]]
    """Returns the names of the kernels that can be started."""
    settings: Settings
    checkpoints: Checkpoints | None = None
    """Undoes executions; None if this server cannot."""


Application: TypeAlias = Callable[[Exchange, RequestSender], Awaitable[None]]
"""The ASGI application: answers one request."""


class Endpoint:
    """Serves MCP clients. The first request imports the SDK, which takes half a second."""

    def __init__(self, managers: Managers, traits: McpTraits, log: logging.Logger) -> None:
        self._managers = managers
        self._traits = traits
        self._log = log
        self._serving: asyncio.Task[None] | None = None
        self._application: asyncio.Future[Application] | None = None
        self._stopping = asyncio.Event()

    async def serve(self, exchange: Exchange, asker: RequestSender) -> None:
        """Answer a request.

        Raises
        ------
        NotInstalled, ServerStopping
        """
        application = await self._begun()
        self._check_open()
        await application(exchange, asker)

    async def stop(self) -> None:
        """Refuse new requests, end all waits, and return when no request is open. Idempotent."""
        self._stopping.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    def _check_open(self) -> None:
        if self._stopping.is_set():
            raise ServerStopping("The server is going down.")

    async def _begun(self) -> Application:
        self._check_open()
        if self._serving is None or self._serving.done():
            check_installed()
            self._application = asyncio.get_running_loop().create_future()
            self._serving = start_apart(self._serve(self._application), "mcp")
        assert self._application is not None
        return await asyncio.shield(self._application)

    async def _serve(self, application: asyncio.Future[Application]) -> None:
        loop = asyncio.get_running_loop()
        try:
            module = await loop.run_in_executor(
                None, partial(import_module, ".sdk_server", __package__)
            )
            async with module.serving(self._managers, self._traits, self._log) as serve:
                application.set_result(serve)
                await self._stopping.wait()
        except Exception as error:
            if application.done():
                self._log.exception("The MCP endpoint failed; a new one will be made")
            else:
                application.set_exception(error)


def is_installed(sdk: str = SDK, oldest: tuple[int, int] = OLDEST) -> bool:
    """Whether the SDK is installed, and not older than `oldest`."""
    try:
        found = version(sdk)
    except PackageNotFoundError:
        return False
    return tuple(int(part) for part in found.split(".")[:2] if part.isdecimal()) >= oldest


def check_installed(sdk: str = SDK, oldest: tuple[int, int] = OLDEST) -> None:
    """Raise NotInstalled if the SDK is missing or older than `oldest`."""
    if not is_installed(sdk, oldest):
        raise NotInstalled(
            "MCP is not installed on this server. Its operator can add it: "
            "pip install 'jupyter-agent-exec[mcp]'.",
            extra="mcp",
        )


class McpHandler(AgentExecHandler):
    """The MCP endpoint. Each tool checks the scopes that it needs."""

    endpoint: Endpoint
    manager: AgentSessions
    namespace: str
    _exchange: Exchange | None = None

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse pages of another origin, whatever credential they have: MCP demands it."""
        self._check_token_placement()
        if not self.check_origin():
            raise Forbidden("Requests from pages of another origin are refused.")
        await super().prepare()

    def skip_check_origin(self) -> bool:
        """Check the origin of requests with a token too."""
        return False

    def challenge(self, is_agent: bool) -> str:
        """Return where a client finds out how to sign in."""
        error = 'error="invalid_token", ' if is_agent else ""
        url = f"{self.public_url}{self.namespace}/.well-known/oauth-protected-resource"
        return f'Bearer {error}realm="Jupyter", resource_metadata="{url}"'

    @web.authenticated
    @requires("history:read", answers={200: "application/json"}, agents=TOOLS)
    async def post(self) -> None:
        """Send an MCP message."""
        await self._serve()

    @web.authenticated
    @requires("history:read", answers={200: "text/event-stream"}, agents=TOOLS)
    async def get(self) -> None:
        """Keep an MCP session while it is silent, in MCP revisions that have sessions."""
        with self.manager.streaming(self.caller):
            await self._serve()

    @web.authenticated
    @requires("history:read", answers={200: "application/json"}, agents=TOOLS)
    async def delete(self) -> None:
        """End an MCP session, in MCP revisions that have sessions."""
        await self._serve()

    async def _serve(self) -> None:
        limit = min(self.body_limit, MAX_BODY_BYTES)
        if len(self.request.body) > limit:
            raise PayloadTooLarge(
                f"The body has {len(self.request.body):,} bytes; {limit:,} are allowed.",
                limit_bytes=limit,
            )
        self._exchange = Exchange(self, self.send_timeout)
        asker = RequestSender(
            caller=self.caller,
            owner=self._owner(),
            authorize=self.authorize,
            check_still=self.check_token,
            refused=self.refused,
            gone=self._exchange.gone,
            base_url=self.public_path,
            lab_url=self._lab_url(),
            chat=self._chat(),
        )
        try:
            await self.endpoint.serve(self._exchange, asker)
        finally:
            self._exchange.leave()

    def _lab_url(self) -> str | None:
        apps = self.settings["serverapp"].extension_manager.extension_apps
        return f"{self.public_url}lab" if apps.get("jupyterlab") else None

    def _chat(self) -> Chat | None:
        id = self.request.headers.get("X-Jupyter-Chat-Id")
        persona = self.request.headers.get("X-JupyterAI-Persona-Id", "")
        name = persona.rpartition("::")[2][:200] or "Jupyter AI"
        return Chat(id=id, persona=name) if id else None

    def _owner(self) -> str:
        """Return an identifier that is the same for all requests of a client.

        A client with the server's own token is identified by a hash of that token: without cookies,
        Jupyter gives each of its requests a different username.
        """
        if self.caller.token is not None:
            return self.caller.token.id
        shown = self.identity_provider.get_token(self)
        if shown is None:
            return self.caller.username
        return sha256(shown.encode()).hexdigest()

    def on_connection_close(self) -> None:
        """End the exchange, because the client has disconnected."""
        super().on_connection_close()
        if self._exchange is not None:
            self._exchange.leave()


class McpTraits(HasTraits):
    """The endpoint's configuration traits."""

    mcp_disconnect_interrupts = Bool(
        False,
        config=True,
        help="""Whether to interrupt an execution when the MCP client that waits for it cancels its
        call or disconnects. False: only the wait ends. The code continues, and the same call with
        the same idempotency key finds it again.""",
    )
    mcp_session_idle_timeout = Float(
        1800,
        min=1,
        config=True,
        help="""Seconds after which the server forgets the session of an MCP client that sends
        nothing and listens to nothing. Agent sessions, and what runs in them, stay.""",
    )
    mcp_max_sessions = Int(
        1000, min=1, config=True, help="How many sessions of MCP clients may exist at once."
    )

    mcp_client_documents = Bool(
        False,
        config=True,
        help="""Whether MCP clients may name themselves by the address of a metadata document, which
        the server then fetches when they sign in. It needs the internet. False: clients register
        themselves.""",
    )
