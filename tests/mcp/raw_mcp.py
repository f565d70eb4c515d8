"""Messages of MCP, sent by hand: what no well-behaved client would do, too."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from tests.asking import Answered, Send

EARLIER = "2025-11-25"
LATEST = "2026-07-28"

_ids = count(1)


def request(method: str, params: dict[str, Any] | None = None, *, modern: bool) -> dict[str, Any]:
    said = dict(params or {})
    if modern:
        said["_meta"] = {
            **said.get("_meta", {}),
            "io.modelcontextprotocol/protocolVersion": LATEST,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": said}


def headers_of(
    message: dict[str, Any], token: str, session: str | None, revision: str = EARLIER
) -> dict[str, str]:
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if "_meta" in message.get("params", {}) and session is None:
        headers |= {"MCP-Protocol-Version": LATEST, "Mcp-Method": message["method"]}
        if "name" in message["params"]:
            headers["Mcp-Name"] = message["params"]["name"]
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": revision}
    return headers


class RawMcp:
    """Sends messages with one token.

    Parameters
    ----------
    ask
        Sends a request to a path of ours.
    modern
        Whether to speak the latest revision, in which each message stands alone.
    revision
        The revision to speak otherwise.
    """

    def __init__(
        self, ask: Send, token: str, *, modern: bool = False, revision: str = EARLIER
    ) -> None:
        self.revision = revision
        self._ask = ask
        self.token = token
        self.modern = modern
        self.session: str | None = None

    async def send(self, message: Any, **headers: str) -> Answered:
        shown = (
            headers_of(message, self.token, self.session, self.revision)
            if isinstance(message, dict)
            else {}
        )
        body = message if isinstance(message, str) else json.dumps(message)
        return await self._ask("POST", "mcp", headers=shown | headers, body=body)

    async def begin(self) -> Answered:
        """Open a session, as older clients do; in the latest revision there is none."""
        said = {
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answered = await self.send(request("initialize", said, modern=False))
        if answered.status == 200:
            self.session = answered.headers["Mcp-Session-Id"]
            initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await self.send(initialized)).status == 202
        return answered

    async def ready(self) -> RawMcp:
        if not self.modern:
            assert (await self.begin()).status == 200
        return self

    async def ask(self, method: str, **params: Any) -> Answered:
        return await self.send(request(method, params, modern=self.modern))

    async def call(self, tool: str, **arguments: Any) -> Any:
        answered = await self.ask("tools/call", name=tool, arguments=arguments)
        assert answered.status == 200, answered.body
        return answered.json["result"]

    async def tools(self) -> list[str]:
        answered = await self.ask("tools/list")
        assert answered.status == 200, answered.body
        return [tool["name"] for tool in answered.json["result"]["tools"]]

    async def opened(self) -> str:
        told = await self.call("open_session", agent="raw")
        assert not told.get("isError"), told
        return str(told["structuredContent"]["session_id"])


class Line:
    """A call whose connection can be closed before it has been answered."""

    def __init__(self, id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.id = id
        self._reader = reader
        self._writer = writer

    @classmethod
    async def call(cls, url: str, raw: RawMcp, tool: str, **arguments: Any) -> Line:
        params = {"name": tool, "arguments": arguments}
        message = request("tools/call", params, modern=raw.modern)
        parts = urlsplit(url)
        assert parts.hostname is not None
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        body = json.dumps(message).encode()
        headers = headers_of(message, raw.token, raw.session) | {
            "Host": parts.netloc,
            "Content-Length": str(len(body)),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {parts.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        return cls(message["id"], reader, writer)

    async def until(self, text: bytes) -> bytes:
        """Read until a text has come."""
        return await self._reader.readuntil(text)

    def close(self) -> None:
        self._writer.close()
