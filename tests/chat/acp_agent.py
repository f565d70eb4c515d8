"""An agent of the Agent Client Protocol: it runs each prompt's last line in a notebook, by MCP.

It works with what its client gives it: the MCP servers of a session and their headers.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import acp
import httpx2
from acp import schema
from acp.helpers import update_agent_message_text
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

TARGET = {"kind": "notebook", "path": "sales.ipynb"}


class RunningAgent(acp.Agent):
    def __init__(self) -> None:
        self._servers: dict[str, list[Any]] = {}

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        takes = schema.McpCapabilities(http=True)
        return schema.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(mcp_capabilities=takes),
        )

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.NewSessionResponse:
        session_id = uuid4().hex
        self._servers[session_id] = mcp_servers or []
        return schema.NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        try:
            text = await self._run(self._servers[session_id], prompt[0].text.splitlines()[-1])
        except Exception as error:
            text = f"failed: {error!r}"
        await self._client.session_update(session_id, update_agent_message_text(text))
        return schema.PromptResponse(stop_reason="end_turn")

    async def _run(self, servers: list[Any], source: str) -> str:
        (server,) = servers
        headers = {each.name: each.value for each in server.headers}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            asked = {"target": TARGET, "source": source, "wait": 60}
            answered = await client.call_tool("execute", asked)
        return f"{server.name}: {answered.content[0].text}"


if __name__ == "__main__":
    asyncio.run(acp.run_agent(RunningAgent()))
