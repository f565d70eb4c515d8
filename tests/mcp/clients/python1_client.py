"""What a program with the official Python SDK of before does, told as one line of JSON.

python1_client.py <revision> <what to do, as JSON>
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import mcp.types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def connected(asked):
    if "command" in asked:
        async with stdio_client(StdioServerParameters(**asked["command"])) as streams:
            yield streams
        return
    headers = {"Authorization": f"Bearer {asked['token']}"}
    async with (
        httpx.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        streamable_http_client(asked["url"], http_client=http) as streams,
    ):
        yield streams[:2]


async def main(revision, asked):
    mcp.types.LATEST_PROTOCOL_VERSION = revision  # the newest that it asks for
    progress = []

    async def told(done, total, message):
        if not progress:
            await asyncio.to_thread(Path(asked["gate"]).write_text, "")
        progress.append(message)

    async with connected(asked) as (read, write), ClientSession(read, write) as session:
        began = await session.initialize()
        tools = (await session.list_tools()).tools
        opened = await session.call_tool("open_session", {"agent": "python 1"})
        session_id = opened.structuredContent["session_id"]
        run = {
            "session_id": session_id,
            "source": asked["source"],
            "idempotency_key": asked["key"],
        }
        ran = await session.call_tool("execute", run, progress_callback=told)
        again = await session.call_tool("execute", run)
        refused = await session.call_tool("execute", {"session_id": "s_nothing", "source": "1"})
        part = {"execution_id": ran.structuredContent["execution_id"], "offset": 0}
        again_read = await session.call_tool("get_execution", part)
        await session.call_tool("stop", {"session_id": session_id})
    return {
        "revision": began.protocolVersion,
        "tools": [tool.name for tool in tools],
        "progress": len(progress),
        "text": ran.content[0].text,
        "structured": ran.structuredContent,
        "again": again.structuredContent["execution_id"],
        "refused": {"is_error": refused.isError, "text": refused.content[0].text},
        "read": again_read.content[0].text,
    }


sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))) + "\n")
