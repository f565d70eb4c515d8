"""One tool call: its caller, the managers it uses, and its messages to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeAlias, TypeVar, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext

from ..auth.scopes import Scope
from ..tasks import first_of, settle
from ..types import ExecutionId
from .endpoint import Managers, RequestSender

T = TypeVar("T")

Context: TypeAlias = ServerRequestContext[Any, Any]

_LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)
LEVEL: Final = "info"
"""The level of the log messages with new output, and the default of clients."""


class LogLevels:
    """The lowest log level of each client session, in older revisions. A client sets it once.

    Parameters
    ----------
    most
        Maximum number of sessions to store. Beyond it, the oldest is removed.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._levels: dict[str, types.LoggingLevel] = {}

    def set(self, session_id: str, level: types.LoggingLevel) -> None:
        """Store the lowest level that a client wants."""
        self._levels.pop(session_id, None)
        while len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[session_id] = level

    def of(self, session_id: str | None) -> Sequence[types.LoggingLevel]:
        """Return the levels that a client wants."""
        return _LEVELS[_LEVELS.index(self._levels.get(session_id or "", LEVEL)) :]


def session_id_of(context: Context) -> str | None:
    """Return the id of a client's MCP session; None in revisions without sessions."""
    assert context.request is not None
    session_id: str | None = context.request.headers.get("mcp-session-id")
    return session_id


class ClientGone(Exception):
    """The client cancelled the call or disconnected, so nobody reads the answer."""


class Call:
    """One call of a tool.

    A tool waits with `until`. Only there can a call end early. Work that a tool has started, such
    as opening a session, completes even if the client has disconnected. `tell` raises
    Unauthenticated once the agent token is no longer valid.
    """

    def __init__(
        self, context: Context, *, asker: RequestSender, managers: Managers, levels: LogLevels
    ) -> None:
        self.asker = asker
        self.caller = asker.caller
        self.managers = managers
        self.cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client has cancelled the call or disconnected."""
        self.watched: ExecutionId | None = None
        """The execution that the call waits for. The tool sets it. If the operator has configured
        so, this execution is interrupted when the client cancels the call or disconnects."""
        self._context = context
        self._levels = levels
        self._told = 0

    def cancel(self) -> None:
        """End the call's waits, because nobody needs the answer any more. Idempotent."""
        settle(self.cancelled)

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
        ClientGone
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
        """Tell the client how far the work is: as progress and in its log, if it wants that.

        Parameters
        ----------
        progress
            A short sentence for the user.
        output
            New output of the code; empty if there is none.
        """
        self.asker.check_still()
        if not self.cancelled.done():
            await self._send(progress, output)

    async def _send(self, progress: str, output: str) -> None:
        """Send progress: the number of notifications, because MCP requires that it increases."""
        self._told += 1
        context = self._context
        await context.session.report_progress(self._told, None, progress)
        wanted = allowed_log_levels(context.protocol_version, context.meta)
        if output and LEVEL in wanted and LEVEL in self._levels.of(session_id_of(context)):
            params = types.LoggingMessageNotificationParams(
                level=LEVEL, data=output, logger="jupyter-agent-exec"
            )
            await context.session.send_notification(
                types.LoggingMessageNotification(params=params), context.request_id
            )

    @property
    def client_name(self) -> str | None:
        """The name that the client gives itself; None if it gives none."""
        params = self._context.session.client_params
        return None if params is None else params.client_info.name
