"""Requests for access: scopes for lack of which agents were refused, listed for people.

A request is for one notebook or one plain scope, so that a click gives no more than the words say.
All of this is in memory: after a restart, the agent is refused again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ulid import ULID

from ..errors import NotFound
from ..models import AccessRequest, TokenRef
from ..records import timestamp
from ..types import TokenId
from .scopes import is_narrow
from .token_form import scope_in_words
from .tokens import Tokens

MAX_REQUESTS: Final = 8
"""How many requests of a token are kept, with those that a person dismissed: the agent cannot fill
the list, and not ask again and again in other words."""
REQUEST_SECONDS: Final = 3600.0
"""How long a request waits since the last refusal."""


@dataclass(slots=True, kw_only=True)
class _Kept:
    request: AccessRequest
    refused_at: float
    is_dismissed: bool = False


class AccessRequests:
    """The requests for access.

    Parameters
    ----------
    changed
        Called when the list of requests may have changed.
    clock
        Returns seconds that only grow.
    """

    def __init__(
        self,
        tokens: Tokens,
        *,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._changed = changed
        self._clock = clock
        self._kept: dict[TokenId, dict[str, _Kept]] = {}  # by token and scope

    def note(self, token: TokenRef, scope: object) -> None:
        """Take up that a token was refused for lack of a scope.

        Nothing is taken up for a scope that is not narrow, or that a person dismissed.
        """
        if not isinstance(scope, str) or not is_narrow(scope):
            return
        self._forget()
        kept, now = self._kept.setdefault(token.id, {}), self._clock()
        if scope in kept:
            kept[scope].refused_at = now
        elif len(kept) < MAX_REQUESTS:
            request = AccessRequest(
                id=f"r_{ULID()}",
                token=token,
                scope=scope,
                text=scope_in_words(scope),
                asked_at=timestamp(),
            )
            kept[scope] = _Kept(request=request, refused_at=now)
            self._changed()

    def waiting(self) -> list[AccessRequest]:
        """Return the requests that wait for a person, the oldest first."""
        self._forget()
        found = [
            kept.request
            for each in self._kept.values()
            for kept in each.values()
            if not kept.is_dismissed
        ]
        return sorted(found, key=lambda request: request.id)

    def dismiss(self, id: str) -> None:
        """Take a request from the list; it does not come back while its token is valid.

        Raises
        ------
        NotFound
            It does not wait any more.
        """
        for each in self._kept.values():
            for kept in each.values():
                if kept.request.id == id and not kept.is_dismissed:
                    kept.is_dismissed = True
                    self._changed()
                    return
        raise NotFound("This request for access does not wait any more.", request_id=id)

    def _forget(self) -> None:
        """Drop what was given meanwhile, what is old, and what belongs to tokens that ended."""
        too_old = self._clock() - REQUEST_SECONDS
        for id, each in list(self._kept.items()):
            if self._tokens.standing(id) != "active":
                del self._kept[id]
                continue
            grants = self._tokens.grants(id)
            for scope, kept in list(each.items()):
                is_old = kept.refused_at < too_old and not kept.is_dismissed
                if is_old or grants.allows(scope):
                    del each[scope]
