"""A reverse proxy that strips a prefix from the paths of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class StrippingProxy:
    """Passes requests on as they are, but for the prefix; and one for each connection."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()
        self.url = ""
        """Where clients reach the server, without a slash at the end."""
        self.upstream = ""
        """The server's own address."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(self._prefix + b"/"):
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            writer.close()
            return
        version, _, headers = rest.partition(b"\r\n")
        kept = [
            line for line in headers.split(b"\r\n") if not line.lower().startswith(b"connection:")
        ]
        server = urlsplit(self.upstream)
        from_server, to_server = await asyncio.open_connection(server.hostname, server.port)
        request = b" ".join((method, path.removeprefix(self._prefix), version))
        to_server.write(b"\r\n".join((request, b"Connection: close", *kept)))
        pump = asyncio.create_task(_pass_on(reader, to_server))
        await _pass_on(from_server, writer)
        pump.cancel()
        to_server.close()
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()


@asynccontextmanager
async def stripping_proxy(prefix: str) -> AsyncIterator[StrippingProxy]:
    """Start a proxy on a free port; its server is for the caller to name."""
    proxy = StrippingProxy(prefix)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}"
        yield proxy
