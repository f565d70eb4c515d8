"""Quotas: how much an agent token may use, and how much it uses now."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from ..auth.access import denied
from ..auth.scopes import Caller
from ..errors import TooManyRequests
from ..text.counts import counted
from ..types import TokenId
from .session import LiveSession

WINDOW: Final = 60.0
"""Length in seconds of the time window in which executions are counted."""

RETRY_AFTER: Final = 5
"""Seconds after which a client with too many held answers should try again."""

NAMED_SESSIONS: Final = 10
"""How many open sessions an error for too many sessions names."""


class Quotas:
    """Counts what each agent token uses, and refuses what exceeds its caps.

    Parameters
    ----------
    max_sessions
        How many sessions may be open on this server. One token gets half of them, so that there is
        room for others.
    idle_timeout
        Seconds after which a session that nobody uses is closed; 0 for never.
    max_held
        How many answers may be held, or streams open, for all agent tokens. One token gets half of
        them. Users without a token have as many again, so that agents never lock them out.
    """

    def __init__(self, max_sessions: int, idle_timeout: float, max_held: int) -> None:
        self._max_held = max_held
        self._held: Counter[TokenId | None] = Counter()
        self._max_sessions = max_sessions
        self._most_sessions = max(1, max_sessions // 2)
        self._idle_timeout = idle_timeout
        self._opening: Counter[TokenId | None] = Counter()
        self._times: dict[TokenId, deque[float]] = {}

    @contextmanager
    def opening(self, caller: Caller, sessions: Collection[LiveSession]) -> Iterator[None]:
        """Count a session as open while it is being opened.

        Raises
        ------
        TooManyRequests
            This server or this token may have no more open sessions.
        """
        id = None if caller.token is None else caller.token.id
        own = [each for each in sessions if id is None or _is_of(caller, each)]
        if len(sessions) + self._opening.total() >= self._max_sessions:
            raise self._too_many(
                f"This server has {counted(self._max_sessions, 'open session')}, the most that it "
                "allows",
                self._max_sessions,
                own,
            )
        most = min(caller.caps.kernels or self._most_sessions, self._most_sessions)
        if id is not None and self._opening[id] + len(own) >= most:
            raise denied(
                self._too_many(
                    f"With this token {counted(most, 'session')} may be open at once", most, own
                )
            )
        self._opening[id] += 1
        try:
            yield
        finally:
            self._opening[id] -= 1

    def _too_many(self, what: str, most: int, closable: Collection[LiveSession]) -> TooManyRequests:
        """Return the error for too many sessions; it names sessions that the caller could close."""
        unused = sorted(closable, key=lambda each: each.idle_for(), reverse=True)
        advice = "wait until one is closed, or ask the user to close one."
        if unused:
            advice = f"close one that you do not need any more, such as {unused[0].id}."
        if self._idle_timeout:
            advice += (
                f" One that nobody uses closes by itself after {self._idle_timeout:g} seconds."
            )
        return TooManyRequests(
            f"{what}; {advice}", limit=most, sessions=[each.id for each in unused[:NAMED_SESSIONS]]
        )

    @contextmanager
    def holding(self, caller: Caller) -> Iterator[None]:
        """Count a held answer, or an open stream, for the time of the block.

        Raises
        ------
        TooManyRequests
            No more may be held.
        """
        id = None if caller.token is None else caller.token.id
        if id is None:
            held, most, whose = self._held[None], self._max_held, "for people and their programs"
        else:
            held, most, whose = self._held[id], max(1, self._max_held // 2), "for this token"
            of_all = self._held.total() - self._held[None]
            if held < most and of_all >= self._max_held:
                held, most, whose = of_all, self._max_held, "for all agents"
        if held >= most:
            refusal = TooManyRequests(
                f"{most} answers are held or streamed {whose}, the most that this server allows; "
                f"let one end, ask with a wait of 0, or try again in {RETRY_AFTER} seconds.",
                limit=most,
                retry_after=RETRY_AFTER,
            )
            raise refusal if id is None else denied(refusal)
        self._held[id] += 1
        try:
            yield
        finally:
            self._held[id] -= 1
            if not self._held[id]:
                del self._held[id]

    def check_execute(self, caller: Caller, sessions: Collection[LiveSession], count: int) -> None:
        """Raise TooManyRequests if a token may not run `count` more executions now."""
        if caller.token is None:
            return
        most = caller.caps.concurrent_executions
        unfinished = sum(len(each.unfinished) for each in sessions if _is_of(caller, each))
        if most is not None and unfinished + count > most:
            raise denied(
                TooManyRequests(
                    f"With this token {counted(most, 'execution')} may wait and run at once; "
                    "wait for one to finish.",
                    limit=most,
                )
            )
        self._check_rate(caller.token.id, caller.caps.executions_per_minute, count)

    def count(self, caller: Caller, count: int) -> None:
        """Count an action as `count` executions; raise TooManyRequests if they are too many."""
        if caller.token is not None:
            self._check_rate(caller.token.id, caller.caps.executions_per_minute, count)
            self.executed(caller, count)

    def executed(self, caller: Caller, count: int) -> None:
        """Count executions that were accepted."""
        if caller.token is not None and caller.caps.executions_per_minute is not None:
            now = asyncio.get_running_loop().time()
            self._times.setdefault(caller.token.id, deque()).extend([now] * count)

    def _check_rate(self, id: TokenId, most: int | None, count: int) -> None:
        if most is None:
            return
        times = self._times.get(id, deque())
        now = asyncio.get_running_loop().time()
        while times and times[0] <= now - WINDOW:
            times.popleft()
        if count > most:
            raise denied(
                TooManyRequests(
                    f"This token may submit {counted(most, 'execution')} in a minute; "
                    f"this request has {count}.",
                    limit=most,
                )
            )
        if (over := len(times) + count - most) > 0:
            wait = math.ceil(times[over - 1] + WINDOW - now)
            raise denied(
                TooManyRequests(
                    f"This token may submit {counted(most, 'execution')} in a minute; "
                    f"try again in {counted(wait, 'second')}.",
                    limit=most,
                    retry_after=wait,
                )
            )


def _is_of(caller: Caller, session: LiveSession) -> bool:
    return caller.token is not None and session.token_id == caller.token.id
