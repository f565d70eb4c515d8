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
async def answering(headers: bytes, body: bytes, **statuses: bytes) -> AsyncIterator[str]:
    """Yield the address of a server that answers everything with these headers and this body.

    The statuses are those of verbs; of others it is 200.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb = (await reader.readuntil(b"\r\n\r\n")).split()[0].decode()
        status = statuses.get(verb, b"200 OK")
        head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n"
        writer.write(head % (status, len(body), headers))
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
async def user_servers(hub_url: str = "http://127.0.0.1") -> AsyncIterator[UserServers]:
    users = UserServers(hub_url, f"{hub_url}/hub/api", "token", bool)
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


@pytest.mark.parametrize("passphrase", ["", "sesame"])
async def test_an_answer_of_the_hub_in_the_place_of_a_server_is_no_wrong_passphrase(
    passphrase: str,
) -> None:
    asked = MintToken(label="agent", scopes=())
    not_running = {"POST": b"424 Failed Dependency"}
    async with answering(b"", b"<html>", **not_running) as address, user_servers() as users:
        with pytest.raises(ServerUnavailable, match=r"\(424\)"):
            await users.mint(address, "token", asked, passphrase)


async def test_a_start_whose_progress_cannot_be_read_is_told_with_that_answer() -> None:
    statuses = {"POST": b"202 Accepted", "GET": b"599 Odd"}
    async with answering(b"", b"", **statuses) as address, user_servers(address) as users:
        with pytest.raises(ServerUnavailable, match=r"not started. The answer was: 599"):
            await anext(users.start("ada", ""))
