"""One tool call: its caller, the managers it uses, and its messages to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec

from ..auth.access import AccessControl
from ..auth.scopes import Caller, Scope
from ..errors import AgentExecError
from ..executions.limits import Settings
from ..files.manager import SessionFiles
from ..models import NotebookTarget, Target
from ..notebooks.manager import NotebookManager
from ..notebooks.proposals import Proposals
from ..sessions.kernel_inspection import KernelInspection
from ..sessions.manager import AgentSessions
from ..sessions.restores import Restores
from ..tasks import first_of
from ..types import ExecutionId

T = TypeVar("T")


class ClientGone(Exception):
    """The client cancelled the call or disconnected, so nobody reads the answer."""


class Client(Protocol):
    """The client of a call, whatever MCP revision it uses."""

    @property
    def name(self) -> str | None:
        """The name that the client gives itself; None if it gives none."""

    async def tell(self, progress: str, output: str) -> None:
        """Send a progress notification and new output as a log message, if the client wants it."""


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


class Call:
    """One call of a tool.

    A tool waits with `until`. Only there can a call end early. Work that a tool has started, such
    as opening a session, completes even if the client has disconnected. `tell` raises
    Unauthenticated once the agent token is no longer valid.
    """

    def __init__(
        self,
        *,
        asker: RequestSender,
        managers: Managers,
        client: Client,
    ) -> None:
        self.asker = asker
        self.caller = asker.caller
        self.managers = managers
        self.cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client has cancelled the call or disconnected."""
        self.watched: ExecutionId | None = None
        """The execution that the call waits for. The tool sets it. If the operator has configured
        so, this execution is interrupted when the client cancels the call or disconnects."""
        self._client = client

    def cancel(self) -> None:
        """End the call's waits, because nobody needs the answer any more. Idempotent."""
        if not self.cancelled.done():
            self.cancelled.set_result(None)

    async def authorize(self, scope: Scope) -> None:
        """Raise Forbidden if the caller does not have a scope."""
        await self.asker.authorize(scope)

    async def reach_session(self, scope: Scope, session_id: str) -> None:
        """Check whether the caller may use a session with a scope.

        Raises
        ------
        Forbidden, SessionNotFound
        """
        await self.authorize(scope)
        await self.managers.access.session(self.caller, scope, session_id)

    async def reach_execution(self, scope: Scope, execution_id: str) -> None:
        """Check whether the caller may use an execution with a scope.

        Raises
        ------
        Forbidden, ExecutionNotFound
        """
        await self.authorize(scope)
        await self.managers.access.execution(self.caller, scope, execution_id)

    async def reach_notebook(self, scope: Scope, path: str) -> None:
        """Check whether the caller may use the notebook at a path with a scope.

        Raises
        ------
        Forbidden, NotebookNotFound
        """
        await self.authorize(scope)
        self.managers.access.notebook(self.caller, scope, path)

    async def until(self, wait: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; cancel it when the call is cancelled.

        Pass a coroutine that only waits: work inside it would be cancelled too.

        Raises
        ------
        Gone
            The client cancelled the call or disconnected.
        """
        waiting = asyncio.ensure_future(wait)
        try:
            await first_of(waiting, self.cancelled)
            if not waiting.done():
                raise ClientGone
            return waiting.result()
        finally:
            waiting.cancel()

    async def tell(self, progress: str, output: str) -> None:
        """Tell the client how far the work is.

        Parameters
        ----------
        progress
            A short sentence for the user.
        output
            New output of the code; empty if there is none.
        """
        self.asker.check_still()
        if not self.cancelled.done():
            await self._client.tell(progress, output)

    @property
    def client_name(self) -> str | None:
        """The name that the client gives itself; None if it gives none."""
        return self._client.name


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
