"""What a user's own server may answer to the hub's service: it may be hostile."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from jupyter_agent_exec.hub_service.user_servers import (
    MAX_ANSWER_BYTES,
    ServerUnavailable,
    UserServers,
    pieces,
    read,
)
from jupyter_agent_exec.models import MintToken

BOMB = gzip.compress(bytes(256 * 2**20))
"""Less than 300 kB that become 256 MiB."""
LARGE = bytes(4 * MAX_ANSWER_BYTES)


@asynccontextmanager
async def answering(headers: bytes, body: bytes) -> AsyncIterator[str]:
    """Yield the address of a server that answers everything with these headers and this body."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (len(body), headers))
        with suppress(ConnectionError):  # the reader has closed it
            for start in range(0, len(body), 65_536):
                writer.write(body[start : start + 65_536])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.close()


@asynccontextmanager
async def user_servers() -> AsyncIterator[UserServers]:
    users = UserServers("http://127.0.0.1", "http://127.0.0.1/hub/api", "token", bool)
    yield users
    await users.stop()


@pytest.mark.parametrize(
    ("headers", "body", "why"),
    [(b"Content-Encoding: gzip\r\n", BOMB, "compressed"), (b"", LARGE, "more than")],
    ids=["compressed", "large"],
)
async def test_an_answer_that_is_read_whole_takes_no_more_memory_than_its_bound(
    headers: bytes, body: bytes, why: str
) -> None:
    async with answering(headers, body) as address, user_servers() as users:
        tracemalloc.start()
        with pytest.raises(ServerUnavailable, match=why):
            await users.mint(address, "token", MintToken(label="agent", scopes=()), "")
        response = await users.send("POST", f"{address}/mcp", {}, b"{}")
        with pytest.raises(ServerUnavailable, match=why):
            await read(response)
        await response.aclose()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3 * MAX_ANSWER_BYTES


async def test_an_answer_that_is_passed_on_is_whole_but_never_decompressed() -> None:
    async with answering(b"", LARGE) as address, user_servers() as users:
        response = await users.send("POST", f"{address}/mcp", {}, b"{}")
        assert sum([len(piece) async for piece in pieces(response)]) == len(LARGE)
    async with answering(b"Content-Encoding: gzip\r\n", BOMB) as address, user_servers() as users:
        response = await users.send("POST", f"{address}/mcp", {}, b"{}")
        with pytest.raises(ServerUnavailable, match="compressed"):
            await anext(pieces(response))
        await response.aclose()
