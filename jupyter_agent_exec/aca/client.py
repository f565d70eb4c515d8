"""Whose a dynamic session is, and which one its client has known. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote

from ..types import SessionId, TokenId

MOST_KNOWN: Final = 10_000
"""Clients that are known."""


class Client(NamedTuple):
    """Who names a session, and how."""

    identifier: str
    """The client's own word for its session."""
    token_id: TokenId | None
    """The agent token that it shows."""
    username: str | None = None
    """The person, if they come without an agent token; None if it is not known who that is."""

    @property
    def id(self) -> str:
        """What names its session among those of its token, or of all who come without one."""
        if self.username is None:
            return f"aca:{self.identifier}"
        return f"aca@{quote(self.username, safe='')}:{self.identifier}"


class KnownClients:
    """The sessions that clients know to be theirs; of those clients that were heard last.

    Parameters
    ----------
    most
        How many clients are known; one that is forgotten is not told of a session that was closed.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._sessions: dict[Client, SessionId] = {}

    def heard(self, client: Client, session_id: SessionId) -> None:
        """Take note that a client uses a session, of which it need not be told."""
        self._know(client, self._sessions.get(client, session_id))

    def is_news(self, client: Client, session_id: SessionId) -> bool:
        """Tell, once, whether a client knows of another session than the one it uses."""
        known = self._sessions.get(client, session_id)
        self._know(client, session_id)
        return known != session_id

    def _know(self, client: Client, session_id: SessionId) -> None:
        self._sessions.pop(client, None)
        self._sessions[client] = session_id
        if len(self._sessions) > self._most:
            del self._sessions[next(iter(self._sessions))]
