"""Fetches the metadata documents of clients whose id is an address.

Anybody can name any address, so only public ones are connected to, and what they answer is small.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.netutil import DefaultLoopResolver
from tornado.simple_httpclient import SimpleAsyncHTTPClient

PUBLIC_IPV6: Final = ipaddress.ip_network("2000::/3")
"""All others stay in some network, or carry an IPv4 address to a translator."""
MAX_BYTES: Final = 16 * 1024
TIMEOUT: Final = 5.0
"""Seconds."""


class PublicResolver(DefaultLoopResolver):
    """Finds the addresses of a host, and refuses those of this machine and of private networks."""

    async def resolve(self, host: str, port: int, family: Any = 0) -> list[tuple[int, Any]]:
        """Return the addresses; raise OSError if one of them is not public."""
        found = await super().resolve(host, port, family)
        for _, address in found:
            if not _is_public(address[0].partition("%")[0]):
                raise OSError(f"{host} is not a public address")
        return found


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and (ip not in PUBLIC_IPV6 or ip.sixtofour):
        return False
    return ip.is_global and not ip.is_multicast


async def fetch_document(url: str) -> bytes | None:
    """Return what an address answers; None if it cannot be had. Redirects are not followed."""
    client = SimpleAsyncHTTPClient(
        force_instance=True, resolver=PublicResolver(), max_body_size=MAX_BYTES
    )
    request = HTTPRequest(
        url,
        follow_redirects=False,
        decompress_response=False,  # a small answer may be large then
        connect_timeout=TIMEOUT,
        request_timeout=TIMEOUT,
    )
    try:
        return (await client.fetch(request)).body
    except (HTTPClientError, OSError, ValueError):
        return None
    finally:
        client.close()
