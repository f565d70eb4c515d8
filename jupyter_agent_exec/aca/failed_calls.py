"""What follows a failure within one call of AutoGen's client.

It sends the blocks of a call one by one and goes on after one that failed. What belongs to one call
cannot be seen in what it sends, but in how: each call has an HTTP session of its own, with cookies
and connections of its own. So a failure leaves a cookie, which comes back with the rest of the call
and with nothing else. That HTTP library takes no cookies from a server that is named by its IP
address; there, the connection tells, unless a proxy may share it among clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final
from weakref import WeakKeyDictionary

from tornado.httputil import HTTPServerRequest

from .client import Client

COOKIE: Final = "agent-exec-failed-call"

SECONDS: Final = 5
"""For which a failure counts: the rest of a call follows at once. So a client of another make, that
keeps its HTTP session, is not refused for long."""

_PROXY_HEADERS: Final = ("Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip")


class FailedCalls:
    """Knows which requests follow a failure within one call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._connections: WeakKeyDictionary[Any, tuple[str, float]] = WeakKeyDictionary()

    def failed(self, request: HTTPServerRequest, client: Client) -> str | None:
        """Take note that the code which a request brought has failed.

        Returns
        -------
        What the cookie of the answer holds; None if it gets none.
        """
        if not _is_autogen(request):
            return None
        mark = _mark(client)
        if _has_own_connection(request):
            self._connections[_connection(request)] = (mark, self._clock() + SECONDS)
        return mark

    def follows(self, request: HTTPServerRequest, client: Client) -> bool:
        """Tell whether a request follows one whose code has failed, in the same call."""
        if not _is_autogen(request):
            return False
        mark = _mark(client)
        cookie = request.cookies.get(COOKIE)
        if cookie is not None and cookie.value == mark:
            return True
        if not _has_own_connection(request):
            return False
        failed, until = self._connections.get(_connection(request), ("", 0.0))
        return failed == mark and self._clock() < until


def _mark(client: Client) -> str:
    """Return what tells a client from all others, also from those with another credential."""
    return sha256(repr(tuple(client)).encode()).hexdigest()


def _connection(request: HTTPServerRequest) -> Any:
    """Return what is one for all requests of a connection."""
    return request.connection.stream  # type: ignore[union-attr]


def _is_autogen(request: HTTPServerRequest) -> bool:
    """Tell whether a request comes from AutoGen's client, as far as that can be seen."""
    return "aiohttp/" in request.headers.get("User-Agent", "")


def _has_own_connection(request: HTTPServerRequest) -> bool:
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    try:
        ip_address(request.host_name.strip("[]"))
    except ValueError:
        return False
    return True
