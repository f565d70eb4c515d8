"""The client's side of a call, by the revision of MCP that it speaks."""

from __future__ import annotations

from typing import Any, Final, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .call import Elicited, LogLevel

_QUESTION: Final = "question"
"""The key of the one thing that a call asks."""

_LEVELS: Final[tuple[str, ...]] = get_args(types.LoggingLevel)


class AskFirst(Exception):
    """The call ends with a question; the client sends it again with the answer.

    Parameters
    ----------
    result
        What the client is told instead of an answer.
    """

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class LogLevels:
    """From which level on a client of the older revisions wants its log; it sets this once.

    Parameters
    ----------
    most
        For how many of the clients' sessions it is remembered; the oldest is forgotten.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._levels: dict[str, types.LoggingLevel] = {}

    def set(self, session_id: str, level: types.LoggingLevel) -> None:
        """Remember a client's level."""
        self._levels.pop(session_id, None)
        while len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[session_id] = level

    def takes(self, session_id: str | None, level: LogLevel) -> bool:
        """Tell whether a client wants what is written with a level."""
        least = self._levels.get(session_id or "", "info")
        return _LEVELS.index(level) >= _LEVELS.index(least)


class SdkClient:
    """The client of one call, as the SDK knows it.

    Parameters
    ----------
    context
        Of the SDK, for this call.
    answers
        What the client answered in the rounds before.
    session_id
        The client's own; None in revisions without.
    """

    def __init__(
        self,
        context: ServerRequestContext[Any, Any],
        *,
        answers: types.InputResponses | None,
        session_id: str | None,
        levels: LogLevels,
    ) -> None:
        self._context = context
        self._answers = answers or {}
        self._session_id = session_id
        self._levels = levels
        self._told = 0

    @property
    def _stateless(self) -> bool:
        return self._context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def name(self) -> str | None:
        """What it calls itself; None if it does not say."""
        params = self._context.session.client_params
        return None if params is None else params.client_info.name

    @property
    def can_elicit(self) -> bool:
        """Whether it can ask its person something, with a form."""
        able = self._context.session.client_capabilities
        if able is None or able.elicitation is None:
            return False
        only_urls = able.elicitation.form is None and able.elicitation.url is not None
        return not only_urls and (self._stateless or self._context.session.can_send_request)

    async def progress(self, message: str, fraction: float | None) -> None:
        """Tell how far a call is, if the client asked for that; the number only ever grows."""
        self._told += 1
        progress, total = (self._told, None) if fraction is None else (fraction, 1.0)
        await self._context.session.report_progress(progress, total, message)

    async def log(self, level: LogLevel, text: str) -> None:
        """Write to the client's log, if it takes that level."""
        if self._stateless:
            wanted = level in allowed_log_levels(self._context.protocol_version, self._context.meta)
        else:
            wanted = self._levels.takes(self._session_id, level)
        if wanted:
            params = types.LoggingMessageNotificationParams(
                level=level, data=text, logger="jupyter-agent-exec"
            )
            await self._context.session.send_notification(
                types.LoggingMessageNotification(params=params), self._context.request_id
            )

    async def elicit(self, message: str, schema: dict[str, Any], state: str) -> Elicited:
        """Ask the client's person; end the call with the question where the revision wants that."""
        if not self._stateless:
            answer: Any = await self._context.session.elicit_form(
                message, schema, self._context.request_id
            )
            return _elicited(answer)
        answer = self._answers.get(_QUESTION)
        if isinstance(answer, types.ElicitResult):
            return _elicited(answer)
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        raise AskFirst(
            types.InputRequiredResult(
                input_requests={_QUESTION: types.ElicitRequest(params=params)},
                request_state=state,
            )
        )


def _elicited(answer: types.ElicitResult) -> Elicited:
    return Elicited(action=answer.action, content=answer.content or {})
