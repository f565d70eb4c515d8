"""To which addresses a client's answers may go, and which of them are the same. Imports the SDK."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import AnyUrl

LOOPBACK: Final = ("127.0.0.1", "localhost")
"""Without `[::1]`: a page's policy (`form-action`) cannot name an IPv6 address."""
KNOWN: Final = frozenset({"cursor://anysphere.cursor-mcp/oauth/callback"})
"""What widespread clients register although the scheme is no domain name."""

_HOST = re.compile(r"[a-z0-9.-]+")
_REVERSED_DOMAIN = re.compile(r"[a-z]{2,}(\.[a-z0-9-]+)+")
"""An application's own scheme (RFC 8252, 7.1). Schemes of systems, such as `ms-*`, never fit."""


def is_allowed(uri: AnyUrl) -> bool:
    """Return whether answers may be sent to an address."""
    if uri.fragment is not None or uri.username is not None or uri.password is not None:
        return False
    if uri.scheme in ("http", "https"):
        is_host = _HOST.fullmatch(uri.host or "") is not None
        return is_host and (uri.scheme == "https" or uri.host in LOOPBACK)
    return str(uri) in KNOWN or _REVERSED_DOMAIN.fullmatch(uri.scheme) is not None


def is_registered(uri: AnyUrl, registered: Sequence[AnyUrl]) -> bool:
    """Return whether an address is allowed and is one that a client has registered."""
    wanted = _without_port(uri)
    return is_allowed(uri) and any(_without_port(each) == wanted for each in registered)


def _without_port(uri: AnyUrl) -> object:
    """Return an address for comparison; on this machine without its port (RFC 8252, 7.3)."""
    if uri.scheme == "http":
        return uri.host, uri.path or "/", uri.query
    return str(uri)
