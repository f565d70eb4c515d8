"""Asking for a session's files."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from tests.asking import NAMESPACE, Answered, Send


class Files:
    """The files of one session."""

    def __init__(self, ask: Send, session: dict[str, Any], headers: dict[str, str]) -> None:
        self.session = session
        self._ask = ask
        self._headers = headers

    async def ask(self, method: str, raw: str, body: Any = None, **headers: str) -> Answered:
        """Ask for a path that is encoded already."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._ask(
            method,
            f"sessions/{self.session['id']}/files/{raw}",
            headers={**self._headers, **named},
            body=body,
        )

    async def get(self, path: str, **headers: str) -> Answered:
        return await self.ask("GET", quote(path), **headers)

    async def head(self, path: str) -> Answered:
        return await self.ask("HEAD", quote(path))

    async def put(self, path: str, body: bytes | str, **headers: str) -> Answered:
        return await self.ask("PUT", quote(path), body, **headers)

    async def delete(self, path: str, **headers: str) -> Answered:
        return await self.ask("DELETE", quote(path), **headers)

    async def list(self, **query: Any) -> Answered:
        said = {name: str(value).lower() for name, value in query.items()}
        return await self._ask(
            "GET", f"sessions/{self.session['id']}/files", headers=self._headers, query=said
        )

    async def paths(self, **query: Any) -> list[str]:
        answered = await self.list(**query)
        assert answered.status == 200, answered.body
        return [file["path"] for file in answered.json["files"]]


class Wire:
    """A connection to the server, on which bytes are sent as they are."""

    def __init__(self, port: int, base_url: str, headers: dict[str, str]) -> None:
        self._port = port
        self._base_url = base_url
        self._headers = headers
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def begin(self, method: str, path: str, **headers: str) -> None:
        """Connect if need be, and send the head of a request."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        lines = [f"{method} {self._base_url}{NAMESPACE}/{path} HTTP/1.1"]
        said = {"Host": "127.0.0.1", **self._headers, **headers}
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in said.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        assert self._streams is not None
        self._streams[1].write(data)
        await self._streams[1].drain()

    async def send_chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def send_without_end(self) -> None:
        while True:
            await self.send_chunk(bytes(4_000_000))

    async def answer(self) -> tuple[int, bytes]:
        """Read an answer's status and its whole body."""
        assert self._streams is not None
        head = (await self._streams[0].readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(head.split(" ", 2)[1])
        length = next(
            int(line.partition(":")[2])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length:")
        )
        return status, await self._streams[0].readexactly(length)

    async def interim(self) -> int:
        """Read an answer's status that comes before the answer."""
        assert self._streams is not None
        return int((await self._streams[0].readuntil(b"\r\n\r\n")).split(b" ")[1])

    async def some(self) -> bytes:
        """Read what has come."""
        assert self._streams is not None
        return await self._streams[0].read(1000)

    async def at_end(self) -> bool:
        """Wait until the server closes, and tell whether nothing came before."""
        assert self._streams is not None
        rest = await self._streams[0].read()
        self.close()
        return rest == b""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
