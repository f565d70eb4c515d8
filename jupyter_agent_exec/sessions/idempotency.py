"""Idempotency keys: asked again with the same, the same execution comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from ..errors import IdempotencyConflict
from ..executions.execution import LiveExecution
from ..types import Digest, ExecutionId, SessionId


class _Known(NamedTuple):
    """An execution that was asked for with an idempotency key."""

    id: ExecutionId
    body: Digest
    accepted: asyncio.Future[None] | None

    @property
    def refused(self) -> bool:
        """Whether it could not be recorded, so that the key is free again."""
        done = self.accepted is not None and self.accepted.done()
        return done and self.accepted.exception() is not None  # type: ignore[union-attr]


class Keys:
    """The keys that were used in open sessions; those of closed ones are in the history.

    Parameters
    ----------
    find
        Finds in the history which execution was asked for with a key, and its body's digest.
    """

    def __init__(
        self, find: Callable[[SessionId, str], Awaitable[tuple[ExecutionId, Digest] | None]]
    ) -> None:
        self._find = find
        self._known: dict[tuple[SessionId, str], _Known] = {}
        self._locks: WeakValueDictionary[tuple[SessionId, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    def lock(self, id: SessionId, key: str) -> asyncio.Lock:
        """Return what is held from looking a key up to using it."""
        return self._locks.setdefault((id, key), asyncio.Lock())

    def use(self, id: SessionId, key: str, body: Digest, execution: LiveExecution) -> None:
        """Take note that an execution was asked for with a key."""
        self._known[id, key] = _Known(execution.id, body, execution.accepted)

    async def known(
        self, id: SessionId, key: str, body: Digest, *, is_open: bool
    ) -> ExecutionId | None:
        """Return the execution that was asked for with this key before; None if none was.

        Raises
        ------
        IdempotencyConflict
            It was used with another body.
        """
        known = self._known.get((id, key))
        if known is not None and known.refused:
            del self._known[id, key]
            known = None
        if known is None and not is_open:
            found = await self._find(id, key)
            known = None if found is None else _Known(*found, None)
        if known is None:
            return None
        if known.body != body:
            raise IdempotencyConflict(
                "Idempotency-Key: it was used in this session with another body.",
                field="Idempotency-Key",
                execution_id=known.id,
            )
        if known.accepted is not None:
            await asyncio.shield(known.accepted)
        return known.id

    def forget(self, id: SessionId) -> None:
        """Drop the keys of a session that has closed."""
        for known in [known for known in self._known if known[0] == id]:
            del self._known[known]
