"""Records denials in the ledger: requests that were refused to agent tokens.

The first denial of a kind is recorded at once. Similar denials within the next minute are counted,
and recorded as one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..records import AccessDenied, By, timestamp
from ..tasks import Tasks, call_later_apart
from ..types import TokenId


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that was answered with one of our errors."""

    code: str
    """The code of the error."""
    status: int
    """The HTTP status of the error; MCP sends the error in an answer of its own."""
    method: str
    """The HTTP verb, or the method of MCP."""
    route: str
    """A path template or the name of a tool. It holds no text of the caller."""
    username: str | None
    """Null if nobody is signed in."""
    ip: str | None
    """The client's address, as Jupyter knows it behind a proxy."""
    token_id: TokenId | None
    session_id: str | None
    """What the path names as session. The caller chose it."""
    execution_id: str | None
    """What the path names as execution. The caller chose it."""


MERGE_DELAY: Final = 60.0
"""Seconds for which denials like a recorded one are counted before they are recorded as one."""


class _Denied(NamedTuple):
    token_id: TokenId
    code: str
    method: str
    route: str


class Denials:
    """Records denials.

    Parameters
    ----------
    record
        Writes an entry; blocks.
    thread
        Runs blocking work.
    """

    def __init__(
        self, record: Callable[[AccessDenied], None], *, thread: Executor, log: logging.Logger
    ) -> None:
        self._record = record
        self._thread = thread
        self._tasks = Tasks(log)
        self._more: dict[_Denied, int] = {}
        self._timers: dict[_Denied, asyncio.TimerHandle] = {}

    def note(self, token_id: TokenId, code: str, method: str, route: str) -> None:
        """Record that a token was refused access.

        Parameters
        ----------
        code
            The code of the error.
        method, route
            A verb and a path template, or the name of a tool. They hold no text of the agent.
        """
        denied = _Denied(token_id, code, method, route)
        if denied in self._more:
            self._more[denied] += 1
            return
        self._more[denied] = 0
        self._timers[denied] = call_later_apart(MERGE_DELAY, self._record_merged, denied)
        self._write(denied, 1)

    async def stop(self) -> None:
        """Record the denials that were only counted so far."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for denied in list(self._more):
            self._record_merged(denied)
        await self._tasks.end()

    def _record_merged(self, denied: _Denied) -> None:
        self._timers.pop(denied, None)
        count = self._more.pop(denied)
        if count:
            self._write(denied, count)

    def _write(self, denied: _Denied, count: int) -> None:
        entry = AccessDenied(
            at=timestamp(),
            by=By(kind="agent", token_id=denied.token_id),
            token_id=denied.token_id,
            code=denied.code,
            method=denied.method,
            route=denied.route,
            count=count,
        )
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(self._thread, self._record, entry)
        self._tasks.start(_done(writing), "record a denial")


async def _done(future: asyncio.Future[None]) -> None:
    await future
