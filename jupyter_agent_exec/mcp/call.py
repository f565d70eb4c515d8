"""One call of a tool: who asks, what it reaches, and how it speaks to the client meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ..approvals.manager import Approvals
from ..auth.access import AccessControl
from ..auth.scopes import Caller, Scope
from ..errors import AgentExecError
from ..executions.limits import Settings
from ..files.manager import SessionFiles
from ..notebooks.manager import NotebookManager
from ..sessions.kernel_inspection import KernelInspection
from ..sessions.manager import AgentSessions
from ..tasks import first_of
from ..types import ExecutionId

T = TypeVar("T")

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error"]


class Gone(Exception):
    """The client cancelled the call, or went away; nobody reads an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Elicited:
    """What a person answered, through the client."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]
    """What they entered; empty unless they accepted."""


class Client(Protocol):
    """The client's side of a call, in whatever revision it speaks."""

    @property
    def name(self) -> str | None:
        """What it calls itself; None if it does not say."""

    @property
    def can_elicit(self) -> bool:
        """Whether it can ask its person something."""

    async def progress(self, message: str, fraction: float | None) -> None:
        """Tell how far a call is, if the client asked for that."""

    async def log(self, level: LogLevel, text: str) -> None:
        """Write to the client's log, if it takes that level."""

    async def elicit(self, message: str, schema: dict[str, Any], state: str) -> Elicited:
        """Ask the client's person."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asker:
    """Who sent a request, and whether they are still there."""

    caller: Caller
    owner: str
    """By which a client's session of the older revisions is known to be its own."""
    authorize: Callable[[Scope], Awaitable[None]]
    """Raises Forbidden if they do not have a scope."""
    check_still: Callable[[], None]
    """Raises Unauthenticated if the agent token that was shown has ended since."""
    note_denial: Callable[[AgentExecError, str, str], None]
    """Has it recorded if an error is what an agent token was refused: with the method of MCP, and
    the tool's name."""
    gone: asyncio.Future[None]
    """Done when their connection is closed, or they have been answered."""


class Call:
    """One call of a tool, or of a resource or a prompt.

    A tool that waits does so with `until`, and nowhere else does a call end early: what it has
    begun, such as to open a session, is done as a whole also for a client that went away. Once an
    agent token has ended, what tells its client anything raises Unauthenticated instead.
    """

    def __init__(
        self,
        *,
        asker: Asker,
        managers: Managers,
        client: Client,
        state: str | None = None,
    ) -> None:
        self.asker = asker
        self.caller = asker.caller
        self.managers = managers
        self.state = state
        """What `elicit` was given in the round before, if this call goes on after that. It came
        through the client's hands: check it as any argument."""
        self.cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client has cancelled the call, or went away."""
        self.watched: ExecutionId | None = None
        """The execution for which it waits: interrupted when the client goes, if the operator
        wants that. The tool sets it."""
        self._client = client

    def cancel(self) -> None:
        """Tell the call that nobody waits for its answer any more. Idempotent."""
        if not self.cancelled.done():
            self.cancelled.set_result(None)

    async def authorize(self, scope: Scope) -> None:
        """Ask whether the caller has a scope, as each route does; raise Forbidden if not."""
        await self.asker.authorize(scope)

    async def reach_session(self, scope: Scope, session_id: str) -> None:
        """Check whether the caller may do something to a session.

        Raises
        ------
        Forbidden, SessionNotFound
        """
        await self.authorize(scope)
        await self.managers.access.session(self.caller, scope, session_id)

    async def reach_execution(self, scope: Scope, execution_id: str) -> None:
        """Check whether the caller may do something to an execution.

        Raises
        ------
        Forbidden, ExecutionNotFound
        """
        await self.authorize(scope)
        await self.managers.access.execution(self.caller, scope, execution_id)

    async def reach_notebook(self, scope: Scope, path: str) -> None:
        """Check whether the caller may do something to the notebook at a path.

        Raises
        ------
        Forbidden, NotebookNotFound
        """
        await self.authorize(scope)
        self.managers.access.notebook(self.caller, scope, path)

    async def until(self, wait: Coroutine[Any, Any, T]) -> T:
        """Wait for something of which the waiting may be broken off, but not what is waited for.

        Raises
        ------
        Gone
            The client cancelled the call, or went away.
        """
        waiting = asyncio.ensure_future(wait)
        try:
            await first_of(waiting, self.cancelled)
            if not waiting.done():
                raise Gone
            return waiting.result()
        finally:
            waiting.cancel()

    async def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell how far the call is, if the client asked for that.

        Parameters
        ----------
        message
            A short sentence for people.
        fraction
            From 0 to 1, never less than before; None where nobody knows. A call gives one always
            or never.
        """
        self.asker.check_still()
        if not self.cancelled.done():
            await self._client.progress(message, fraction)

    async def log(self, level: LogLevel, text: str) -> None:
        """Write to the client's log, if it takes that level."""
        self.asker.check_still()
        if not self.cancelled.done():
            await self._client.log(level, text)

    @property
    def client_name(self) -> str | None:
        """What the client calls itself; None if it does not say."""
        return self._client.name

    @property
    def can_elicit(self) -> bool:
        """Whether the client can ask its person something."""
        return self._client.can_elicit

    async def elicit(self, message: str, schema: dict[str, Any], *, state: str) -> Elicited:
        """Ask the client's person; only where `can_elicit`.

        In the revision 2026-07-28 the call ends here, and the client sends it again with the
        answer: then `state` is there from the start, and this returns at once. So ask for one
        thing in a call, and do before it only what may be done twice or `state` tells to leave.

        Parameters
        ----------
        message
            What the person is asked.
        schema
            JSON schema of an object with flat properties.
        state
            What the tool needs to go on, such as an execution's id. No secret.
        """
        self.asker.check_still()
        return await self.until(self._client.elicit(message, schema, state))


@dataclass(frozen=True, kw_only=True, slots=True)
class Managers:
    """The managers behind the tools. Each is the one that the routes use too."""

    sessions: AgentSessions
    notebooks: NotebookManager
    approvals: Approvals
    inspection: KernelInspection
    files: SessionFiles
    """The files in a session's folder."""
    access: AccessControl
    base_url: str
    """Path of the namespace on this server, such as `/api/agent-exec`, for links in answers."""
    settings: Settings
