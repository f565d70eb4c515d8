"""What somebody asks to be run: sent once, and stopped when nobody wants it any more."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from ..client import (
    AsyncAgentExecClient,
    AsyncSession,
    ClientError,
    Event,
    Finished,
    Result,
    StatusChanged,
    Step,
)
from ..client.session import print_needed_decision
from ..errors import AgentExecError, AlreadyFinished, SessionClosed


class Submission:
    """Sources that are asked for once.

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
        self._sent: tuple[AsyncAgentExecClient, AsyncSession] | None = None
        self._wanted = True

    def give_up(self) -> None:
        """Note that nobody wants it any more: what was not sent never is."""
        self._wanted = False

    def is_wanted(self) -> bool:
        """Whether somebody still wants it."""
        return self._wanted

    @property
    def was_sent(self) -> bool:
        """Whether the server may have got it."""
        return self._sent is not None

    async def run(self, client: AsyncAgentExecClient, session: AsyncSession) -> list[Result]:
        """Wait for the end of all of them."""
        if not self.is_wanted():
            return []
        self._sent = client, session
        try:
            results = await session.run_steps(
                self._sources,
                stop_on_error=self._stop_on_error,
                timeout=self._timeout,
                idempotency_key=self._key,
            )
        except SessionClosed:
            if self.is_wanted():
                raise
            return []
        return [
            await client.execution(each.id) if each.execution.left_out else each for each in results
        ]

    async def decided(self, client: AsyncAgentExecClient, session: AsyncSession) -> Result | None:
        """Wait until it is decided whether the first may run; None if people need not decide."""
        if (await client.session(session.id)).info.approval == "none" or not self._wanted:
            return None
        self._sent = client, session
        first = (await self._accepted(session))[0]
        if first.status == "awaiting_approval":
            print_needed_decision(first.execution)
            async for event in client.follow(first.id):
                if isinstance(event, Finished) or _is_decided(event):
                    break
        return await client.execution(first.id)

    async def stop(self) -> None:
        """Cancel what was sent and has not finished, as far as the server can be reached."""
        if self._sent is None:
            return
        client, session = self._sent
        with suppress(ClientError, AgentExecError):
            # The same key: it tells what was accepted, and runs nothing again.
            accepted = await self._accepted(session)
            # The last one first, so that none of them begins because of this.
            for each in reversed(accepted):
                with suppress(AlreadyFinished):
                    await client.cancel(each.id)

    async def _accepted(self, session: AsyncSession) -> list[Result]:
        return await session.submit_steps(
            self._sources,
            stop_on_error=self._stop_on_error,
            timeout=self._timeout,
            idempotency_key=self._key,
        )


def _is_decided(event: Event) -> bool:
    return isinstance(event, StatusChanged) and event.change.status != "awaiting_approval"
