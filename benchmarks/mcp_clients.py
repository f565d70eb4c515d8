"""Clients of our MCP server and of others, each with its own kernel."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_servers import CELL, NOTEBOOK, McpServer
from mcp_types import CallToolResult, ImageContent, TextContent
from PIL import Image

CLIENT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that a client got, and how long it took."""

    seconds: float
    text: str
    images: list[tuple[int, int, int]]
    """Width, height and bytes of each."""
    failed: bool
    """Whether the answer says that the code did not run to its end."""


Ask = Callable[[str, float], Any]
"""Runs a source with a timeout, and returns an awaitable answer."""


@asynccontextmanager
async def ours(endpoint: str, token: str) -> AsyncIterator[Ask]:
    """Open a session with our tools."""
    async with connected(endpoint, token) as client:
        opened = await client.call_tool("open_session", {"agent": "benchmark"})
        session = opened.structured_content["session_id"]

        async def ask(source: str, timeout: float) -> Answer:
            begin = perf_counter()
            result = await client.call_tool(
                "execute", {"session_id": session, "source": source, "timeout": timeout}
            )
            return _answer(perf_counter() - begin, result)

        yield ask


@asynccontextmanager
async def running_nothing(endpoint: str, token: str) -> AsyncIterator[Callable[[], Any]]:
    """Yield a call of a tool of ours that runs no code: it lists the newest session."""
    async with connected(endpoint, token) as client:
        yield partial(client.call_tool, "list_sessions", {})


@asynccontextmanager
async def jupyter_mcp_server(server: McpServer) -> AsyncIterator[Ask]:
    """Use the `execute_code` of jupyter-mcp-server."""
    async with connected(server.endpoint, server.token) as client:

        async def ask(source: str, timeout: float) -> Answer:
            begin = perf_counter()
            result = await client.call_tool(
                "execute_code",
                {"code": source, "kernel_id": server.kernel_id, "timeout": round(timeout)},
            )
            return _answer(perf_counter() - begin, result)

        yield ask


@asynccontextmanager
async def jupyter_server_mcp(server: McpServer) -> AsyncIterator[Ask]:
    """Use the tools of jupyter-ai-tools through jupyter-server-mcp: edit a cell and run it.

    A cell is edited only when its source is another than before, outside of what is measured.
    """
    cell = {"file_path": NOTEBOOK, "cell_id": CELL}
    written = "1+1"
    async with connected(server.endpoint, server.token) as client:

        async def ask(source: str, timeout: float) -> Answer:
            nonlocal written
            if source != written:
                await client.call_tool("edit_cell", {**cell, "content": source})
                written = source
            begin = perf_counter()
            result = await client.call_tool("run_cell", {**cell, "timeout": timeout})
            return _answer(perf_counter() - begin, result)

        yield ask


@asynccontextmanager
async def connected(endpoint: str, token: str) -> AsyncIterator[Client]:
    """Connect with the official client."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=CLIENT_SECONDS) as http,
        Client(streamable_http_client(endpoint, http_client=http), mode="auto") as client,
    ):
        yield client


def _answer(seconds: float, result: CallToolResult) -> Answer:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    images = [block for block in result.content if isinstance(block, ImageContent)]
    status = (result.structured_content or {}).get("status", "ok")
    return Answer(
        seconds=seconds,
        text="\n".join(texts),
        images=[_measured(base64.b64decode(image.data)) for image in images],
        failed=bool(result.is_error) or status != "ok",
    )


def _measured(data: bytes) -> tuple[int, int, int]:
    with Image.open(io.BytesIO(data)) as image:
        return (*image.size, len(data))
