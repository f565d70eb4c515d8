"""What somebody asks to be run: sent once, and stopped when nobody wants it any more."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from ..client import (
    AsyncAgentExecClient,
    AsyncSession,
    ClientError,
    Event,
    Finished,
    Result,
    Session,
    StatusChanged,
    Step,
)
from ..errors import AgentExecError, AlreadyFinished, SessionClosed


class InSession(NamedTuple):
    """A session that is open, as a loop uses it and as any thread may."""

    client: AsyncAgentExecClient
    session: AsyncSession
    blocking: Session


class Asked:
    """Sources that are asked for once; any thread may use it.

    Parameters
    ----------
    sources
        Each becomes an execution.
    timeout
        Seconds each may run; the session's limit when None.
    stop_on_error
        Cancel what comes after one that does not end as ``ok``.
    key
        The idempotency key; a new one when None.
    """

    def __init__(
        self,
        sources: list[str | Step],
        timeout: float | None,
        stop_on_error: bool,
        key: str | None = None,
    ) -> None:
        self._sources = sources
        self._timeout = timeout
        self._stop_on_error = stop_on_error
        self._key = key or uuid4().hex
        self._lock = threading.Lock()
        self._sent: InSession | None = None
        self._wanted = True

    def give_up(self) -> None:
        """Note that nobody wants it any more: what was not sent never is."""
        with self._lock:
            self._wanted = False

    @property
    def was_sent(self) -> bool:
        """Whether the server may have got it."""
        return self._sent is not None

    def run(self, place: InSession) -> list[Result]:
        """Wait in this thread for the end of all of them."""
        if not self._is_to_go(place):
            return []
        try:
            return place.blocking.run_steps(
                self._sources,
                stop_on_error=self._stop_on_error,
                timeout=self._timeout,
                idempotency_key=self._key,
            )
        except SessionClosed:
            if self._wanted:
                raise
            return []

    async def decided(self, place: InSession) -> Result | None:
        """Wait until it is decided whether the first may run; None if people need not decide."""
        client, session = place.client, place.session
        must_ask = (await client.session(session.id)).info.approval != "none"
        if not must_ask or not self._is_to_go(place):
            return None
        first = (await self._accepted(session))[0]
        if first.status == "awaiting_approval":
            async for event in client.follow(first.id):
                if isinstance(event, Finished) or _is_decided(event):
                    break
        return await client.execution(first.id)

    async def stop(self) -> None:
        """Cancel what was sent and has not finished, as far as the server can be reached."""
        if self._sent is None:
            return
        with suppress(ClientError, AgentExecError):
            # The same key: it tells what was accepted, and runs nothing again.
            accepted = await self._accepted(self._sent.session)
            # The last one first, so that none of them begins because of this.
            for each in reversed(accepted):
                with suppress(AlreadyFinished):
                    await self._sent.client.cancel(each.id)

    def _is_to_go(self, place: InSession) -> bool:
        """Note that it goes to the server now, unless nobody wants it any more."""
        with self._lock:
            if self._wanted:
                self._sent = place
            return self._wanted

    async def _accepted(self, session: AsyncSession) -> list[Result]:
        return await session.submit_steps(
            self._sources,
            stop_on_error=self._stop_on_error,
            timeout=self._timeout,
            idempotency_key=self._key,
        )


def _is_decided(event: Event) -> bool:
    return isinstance(event, StatusChanged) and event.change.status != "awaiting_approval"
