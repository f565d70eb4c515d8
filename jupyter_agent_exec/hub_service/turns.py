"""When the calls of a user with many are forwarded."""

from __future__ import annotations

from typing import Final

CALLS_A_SECOND: Final = 20.0
"""Of one user; the service forwards some hundred in all."""
CALLS_AT_ONCE: Final = 40.0
"""So many calls of one user are forwarded without a delay, after a time without calls."""


class Turns:
    """Whose call is forwarded when, so that one user's many calls do not delay those of others."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def delay(self, username: str, now: float) -> float:
        """Return the seconds that a user's call waits that arrives at a time, also in seconds."""
        at = max(self._next.get(username, 0.0), now - (CALLS_AT_ONCE - 1) / CALLS_A_SECOND)
        self._next[username] = at + 1 / CALLS_A_SECOND
        return max(0.0, at - now)
