"""A reverse proxy that strips a prefix from the paths of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
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
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return  # the client has not used the connection
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(self._prefix + b"/"):
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            return
        version, _, headers = rest.partition(b"\r\n")
        kept = [
            line for line in headers.split(b"\r\n") if not line.lower().startswith(b"connection:")
        ]
        server = urlsplit(self.upstream)
        from_server, to_server = await asyncio.open_connection(server.hostname, server.port)
        request = b" ".join((method, path.removeprefix(self._prefix), version))
        to_server.write(b"\r\n".join((request, b"Connection: close", *kept)))
        pumps = [
            asyncio.ensure_future(_pass_on(reader, to_server)),
            asyncio.ensure_future(_pass_on(from_server, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)
            await _close(to_server)

    async def serve_and_close(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a connection, and close it."""
        try:
            await self.serve(reader, writer)
        finally:
            await _close(writer)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def stripping_proxy(prefix: str) -> AsyncIterator[StrippingProxy]:
    """Start a proxy on a free port; its server is for the caller to name."""
    proxy = StrippingProxy(prefix)
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(proxy.serve_and_close(reader, writer))
        connections.add(serving)
        serving.add_done_callback(connections.discard)

    # At its end the server waits for its connections, from Python 3.12 on.
    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        try:
            proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}"
            yield proxy
        finally:
            server.close()
            for serving in connections:
                serving.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
