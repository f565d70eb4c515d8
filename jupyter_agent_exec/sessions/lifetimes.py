"""What becomes of sessions whose agent token has ended: revoked, they end; else they run out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Literal, Protocol, TypeAlias

from ..errors import HistoryUnavailable
from ..records import SERVER, By
from ..tasks import Tasks, start_apart
from ..types import CloseReason, TokenId
from .session import LiveSession

LOOK_DELAY: Final = 1.0
"""Seconds between two looks at tokens with which something is open. Nothing tells a server what
another one on the same history has revoked."""


Standing: TypeAlias = Literal["active", "expired", "revoked"]


class Sessions(Protocol):
    """What is asked of the sessions."""

    def all_open(self) -> Iterable[LiveSession]:
        """Return the sessions that are open."""

    async def end(self, live: LiveSession, reason: CloseReason, by: By) -> None:
        """Close a session that is open."""


class Tokens(Protocol):
    """What is asked of the agent tokens."""

    async def refresh(self) -> None:
        """Take note of what other servers changed; HistoryUnavailable if that cannot be read."""

    def standing(self, id: TokenId) -> Standing:
        """Tell whether a token is valid."""


class TokenEnds:
    """Ends the sessions of tokens that have ended."""

    def __init__(self, sessions: Sessions, tokens: Tokens, log: logging.Logger) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._log = log
        self._tasks = Tasks(log)
        self._ending: dict[LiveSession, Standing] = {}
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Watch as long as sessions of tokens are open; one is about to be."""
        if self._watching is None or self._watching.done():
            self._watching = start_apart(self._watch(), "watch agent tokens")

    async def stop(self) -> None:
        """Watch no more, and wait for what is being ended. Idempotent."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await self._tasks.end()

    def look(self) -> None:
        """End the sessions of tokens that are known to have ended."""
        for live in list(self._sessions.all_open()):
            standing = "active" if live.token_id is None else self._tokens.standing(live.token_id)
            if standing != "active" and self._ending.get(live) != standing:
                self._ending[live] = standing
                self._tasks.start(self._end(live, standing), f"end of {live.id}")

    async def _watch(self) -> None:
        await asyncio.sleep(LOOK_DELAY)
        while any(live.token_id is not None for live in self._sessions.all_open()):
            try:
                await self._tokens.refresh()
            except HistoryUnavailable as error:
                self._log.warning("%s", error.message)
            self.look()
            await asyncio.sleep(LOOK_DELAY)

    async def _end(self, live: LiveSession, standing: Standing) -> None:
        reason: CloseReason = "token_revoked"
        if standing == "expired":
            reason = "token_expired"
            await live.run_out("The agent's token has expired.")
        await self._sessions.end(live, reason, SERVER)
        self._ending.pop(live, None)
