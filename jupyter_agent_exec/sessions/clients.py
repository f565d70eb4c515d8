"""The open sessions of clients that give an id: asked again with it, the same one comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from ..errors import InvalidRequest
from ..kernels.kernel import KernelSource
from ..models import NotebookTarget, OpenSession, Session
from ..types import TokenId
from .notebook_kernels import AttachedNotebook
from .session import LiveSession

_Client = tuple[TokenId | None, str]


class Clients:
    """Knows which client has which session open."""

    def __init__(self) -> None:
        self._sessions: dict[_Client, LiveSession] = {}
        self._locks: WeakValueDictionary[_Client, asyncio.Lock] = WeakValueDictionary()

    async def open(
        self,
        client_id: str,
        token_id: TokenId | None,
        asked: OpenSession,
        source: KernelSource,
        new: Callable[[], Awaitable[LiveSession]],
    ) -> tuple[LiveSession, bool]:
        """Return a client's open session, and whether it is new.

        Parameters
        ----------
        token_id
            Of the agent token that was shown: no other's sessions are a client's with it.
        source
            The target that is asked for.
        new
            Opens a session.

        Raises
        ------
        InvalidRequest
            It has one with another target.
        """
        client = (token_id, client_id)
        async with self._locks.setdefault(client, asyncio.Lock()):
            known = self._sessions.get(client)
            if known is None or not known.is_open:
                session = self._sessions[client] = await new()
                return session, True
            if not _is_same_target(known.record(), asked, source):
                raise InvalidRequest(
                    "client_id: it has an open session with another target; close that first.",
                    field="client_id",
                    session_id=known.id,
                )
            return known, False

    def find(self, client_id: str, token_id: TokenId | None) -> LiveSession | None:
        """Return the session that a client has open; None if it has none."""
        found = self._sessions.get((token_id, client_id))
        return found if found is not None and found.is_open else None

    def forget(self, session: LiveSession) -> None:
        """Take note that a session is closed."""
        for client in [client for client, other in self._sessions.items() if other is session]:
            del self._sessions[client]


def _is_same_target(session: Session, asked: OpenSession, source: KernelSource) -> bool:
    """Tell whether an open session has the target that is asked for, also after a rename."""
    if isinstance(asked.target, NotebookTarget) and isinstance(source, AttachedNotebook):
        return session.path == source.path
    return session.target == asked.target
