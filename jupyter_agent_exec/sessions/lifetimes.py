"""Ends sessions that nobody uses, and sessions whose agent token has ended."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ..auth.tokens import Standing, Tokens
from ..errors import HistoryUnavailable
from ..records import SERVER
from ..tasks import Tasks, call_later_apart, start_apart
from ..types import CloseReason, SessionId
from .session import LiveSession
from .session_history import SessionHistory

TOKEN_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks of the tokens that have open sessions. A server is not notified when
another one on the same history revokes a token."""


class SessionLifetimes:
    """Closes sessions after their idle timeout, and at the end of their agent token.

    A revoked token's sessions close at once. An expired token's sessions first finish their running
    executions.

    Parameters
    ----------
    idle_timeout
        Seconds after which an unused session is closed; 0 for never.
    """

    def __init__(
        self, sessions: SessionHistory, tokens: Tokens, idle_timeout: float, log: logging.Logger
    ) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._idle_timeout = idle_timeout
        self._log = log
        self._tasks = Tasks(log)
        self._ending: dict[LiveSession, Standing] = {}
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False

    def watch_use(self, session: LiveSession) -> None:
        """Close a session when nobody has used it for the idle timeout."""
        self._check_idle_after(session.id, self._idle_timeout)

    def watch_token(self, session: LiveSession) -> None:
        """Close a session when its agent token ends."""
        if session.token_id is not None and (self._watching is None or self._watching.done()):
            self._watching = start_apart(self._watch_tokens(), "watch agent tokens")

    async def stop(self) -> None:
        """Stop watching, and wait for the sessions that are being closed. Idempotent."""
        self._stopping = True
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await self._tasks.end()

    def check_tokens(self) -> None:
        """End the sessions of tokens that are known to have ended."""
        for live in self._sessions.all_open():
            standing = "active" if live.token_id is None else self._tokens.standing(live.token_id)
            if standing != "active" and self._ending.get(live) != standing:
                self._ending[live] = standing
                self._tasks.start(self._end(live, standing), f"end of {live.id}")

    async def _watch_tokens(self) -> None:
        await asyncio.sleep(TOKEN_CHECK_INTERVAL)
        while any(live.token_id is not None for live in self._sessions.all_open()):
            try:
                await self._tokens.refresh()
            except HistoryUnavailable as error:
                self._log.warning("%s", error.message)
            self.check_tokens()
            await asyncio.sleep(TOKEN_CHECK_INTERVAL)

    async def _end(self, live: LiveSession, standing: Standing) -> None:
        reason: CloseReason = "token_revoked"
        if standing == "expired":
            reason = "token_expired"
            await live.run_out("The agent's token has expired.")
        await live.close(reason, SERVER)
        self._ending.pop(live, None)

    def _check_idle_after(self, id: SessionId, delay: float) -> None:
        if delay:  # the timer has the id alone, so that no closed session is kept in memory
            call_later_apart(delay, self._check_idle, id)

    def _check_idle(self, id: SessionId) -> None:
        session = self._sessions.open_session(id)
        if self._stopping or session is None or not session.is_open:
            return
        left = self._idle_timeout - session.idle_for()
        if left > 0:
            self._check_idle_after(id, left)
        else:
            self._tasks.start(session.close("idle", SERVER), f"close {session.id}")
