"""Idempotency: a request that is repeated gets the execution, or the session, of the first one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from ..auth.scopes import Caller
from ..errors import IdempotencyConflict, InvalidRequest
from ..executions.execution import LiveExecution
from ..models import Session
from ..types import Digest, ExecutionId, SessionId, TokenId
from .factory import NewSession
from .session import LiveSession


class _Known(NamedTuple):
    """An execution that was submitted with an idempotency key."""

    id: ExecutionId
    body: Digest
    accepted: asyncio.Future[None]

    @property
    def refused(self) -> bool:
        """Whether it could not be recorded, so that the key is free again."""
        return self.accepted.done() and self.accepted.exception() is not None


class IdempotencyKeys:
    """The keys that were used in open sessions; those of closed ones are in the history.

    Parameters
    ----------
    find
        Finds the execution with a key in the history, and tells whether it has this body.
    """

    def __init__(
        self, find: Callable[[SessionId, str, Digest], Awaitable[tuple[ExecutionId, bool] | None]]
    ) -> None:
        self._find = find
        self._known: dict[tuple[SessionId, str], _Known] = {}
        self._locks: WeakValueDictionary[tuple[SessionId, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    def lock(self, id: SessionId, key: str) -> asyncio.Lock:
        """Return the lock to hold from looking up a key until it is used."""
        return self._locks.setdefault((id, key), asyncio.Lock())

    def use(self, id: SessionId, key: str, body: Digest, execution: LiveExecution) -> None:
        """Remember that an execution was submitted with a key."""
        self._known[id, key] = _Known(execution.id, body, execution.accepted)

    async def known(
        self, id: SessionId, key: str, body: Digest, *, is_open: bool
    ) -> ExecutionId | None:
        """Return the execution that was submitted with this key before; None if there is none.

        Raises
        ------
        IdempotencyConflict
            The key was used with another body.
        """
        first = self._known.get((id, key))
        if first is not None and first.refused:
            del self._known[id, key]
            first = None
        if first is not None:
            execution: tuple[ExecutionId, bool] | None = first.id, first.body == body
        else:
            execution = None if is_open else await self._find(id, key, body)
        if execution is None:
            return None
        execution_id, is_same = execution
        if not is_same:
            raise IdempotencyConflict(
                "Idempotency-Key: it was used in this session with another body.",
                field="Idempotency-Key",
                execution_id=execution_id,
            )
        if first is not None:
            await asyncio.shield(first.accepted)
        return execution_id

    def forget(self, id: SessionId) -> None:
        """Forget the keys of a closed session."""
        for used in [used for used in self._known if used[0] == id]:
            del self._known[used]


_Client = tuple[TokenId | None, str]


class Clients:
    """Remembers which client has opened which session."""

    def __init__(self) -> None:
        self._sessions: dict[_Client, LiveSession] = {}
        self._locks: WeakValueDictionary[_Client, asyncio.Lock] = WeakValueDictionary()

    async def open(
        self,
        client_id: str,
        asked: NewSession,
        new: Callable[[], Awaitable[LiveSession]],
    ) -> tuple[LiveSession, bool]:
        """Return a client's open session, and whether it is new.

        Parameters
        ----------
        client_id
            The client's id. With another agent token, it is another client's.
        new
            Opens a session.

        Raises
        ------
        InvalidRequest
            The client has an open session with another target.
        """
        client = _client(client_id, asked.caller)
        async with self._locks.setdefault(client, asyncio.Lock()):
            session = self._sessions.get(client)
            if session is None or not session.is_open:
                session = self._sessions[client] = await new()
                return session, True
            if not _is_same_target(session.record(), asked):
                raise InvalidRequest(
                    "client_id: it has an open session with another target; close that first.",
                    field="client_id",
                    session_id=session.id,
                )
            return session, False

    def find(self, client_id: str, caller: Caller) -> LiveSession | None:
        """Return a client's open session; None if it has none."""
        session = self._sessions.get(_client(client_id, caller))
        return session if session is not None and session.is_open else None

    def forget(self, session: LiveSession) -> None:
        """Forget a closed session."""
        for client in [client for client, other in self._sessions.items() if other is session]:
            del self._sessions[client]


def _client(client_id: str, caller: Caller) -> _Client:
    return None if caller.token is None else caller.token.id, client_id


def _is_same_target(session: Session, asked: NewSession) -> bool:
    """Return whether an open session has the requested target, also after a rename."""
    if asked.kernels.path is not None:
        return session.path == asked.kernels.path
    return session.target == asked.request.target
