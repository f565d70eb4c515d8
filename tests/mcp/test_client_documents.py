"""Metadata documents of clients: from where they are fetched, and how much of them."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jupyter_agent_exec.mcp import sign_in
from jupyter_agent_exec.mcp.sign_in import (
    MAX_DOCUMENT_BYTES,
    PublicResolver,
    fetch_document,
)

LONG = b" " * (MAX_DOCUMENT_BYTES + 1)
ANSWERS = {
    "/document": b"Content-Length: 2\r\n\r\n{}",
    "/longest": b"Content-Length: %d\r\n\r\n%s" % (MAX_DOCUMENT_BYTES, LONG[1:]),
    "/long": b"Content-Length: %d\r\n\r\n%s" % (len(LONG), LONG),
    "/in-chunks": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(LONG), LONG),
    "/for-ever": b"Content-Length: 2\r\n\r\n{",
}


class Website:
    """A server on this machine."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        self.asked.append(path)
        if path == "/redirect":
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {self.url}/document\r\n".encode())
            writer.write(b"Content-Length: 2\r\n\r\n{}")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n" + ANSWERS[path])
        await reader.read()  # until the client leaves
        writer.close()


@asynccontextmanager
async def open_website() -> AsyncIterator[Website]:
    website = Website()
    async with await asyncio.start_server(website.serve, "127.0.0.1", 0) as server:
        website.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield website


NOT_PUBLIC = [
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.168.1.1",
    "224.0.0.1",
    "::1",
    "::",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "2002:7f00:1::1",
    "fc00::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


async def test_no_document_is_fetched_from_this_machine_or_its_network() -> None:
    for host in NOT_PUBLIC:
        with pytest.raises(OSError, match="is not a public address"):
            await PublicResolver().resolve(host, 443)
    async with open_website() as website:
        assert await fetch_document(f"{website.url}/document") is None
        assert website.asked == []
    for host in ("8.8.8.8", "2001:4860:4860::8888"):
        assert await PublicResolver().resolve(host, 443)


async def test_a_document_is_small_and_comes_soon_and_without_a_redirect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ipaddress.IPv4Address, "is_global", True)
    async with open_website() as website:
        assert await fetch_document(f"{website.url}/document") == b"{}"
        assert await fetch_document(f"{website.url}/longest") == LONG[1:]
        for path in ("/redirect", "/long", "/in-chunks"):
            assert await fetch_document(f"{website.url}{path}") is None, path
        monkeypatch.setattr(sign_in, "DOCUMENT_TIMEOUT", 1.0)
        async with asyncio.timeout(10):  # Tornado's own limit is 20 seconds
            assert await fetch_document(f"{website.url}/for-ever") is None
        assert website.asked == [
            "/document",
            "/longest",
            "/redirect",
            "/long",
            "/in-chunks",
            "/for-ever",
        ]
