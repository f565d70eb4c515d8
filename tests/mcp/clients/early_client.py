"""What a program with an early official Python SDK does, told as one line of JSON.

early_client.py <revision> <what to do, as JSON>
"""

import asyncio
import json
import re
import sys
from contextlib import asynccontextmanager

import mcp.client.session
import mcp.types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


@asynccontextmanager
async def connected(asked):
    if "command" in asked:
        async with stdio_client(StdioServerParameters(**asked["command"])) as streams:
            yield streams
        return
    from mcp.client.streamable_http import streamablehttp_client  # not in 1.6

    headers = {"Authorization": f"Bearer {asked['token']}"}
    async with streamablehttp_client(asked["url"], headers=headers) as streams:
        yield streams[:2]


async def main(revision, asked):
    mcp.types.LATEST_PROTOCOL_VERSION = revision  # the newest that it asks for
    mcp.client.session.SUPPORTED_PROTOCOL_VERSIONS = (revision,)
    async with connected(asked) as (read, write), ClientSession(read, write) as session:
        began = await session.initialize()
        tools = (await session.list_tools()).tools
        answers = []

        async def call(name, **arguments):
            result = await session.call_tool(name, arguments)
            kinds = [block.type for block in result.content]
            text = result.content[0].text
            answers.append({"is_error": result.isError, "kinds": kinds, "text": text})
            return text

        opened = await call("open_session", agent="early")
        session_id = re.search(r"\bs_\w+", opened)[0]
        await call("execute", session_id=session_id, source=asked["image"])
        long = await call("execute", session_id=session_id, source=asked["long"])
        await call("read_notebook", path=asked["notebook"], cells=["plot"])
        await call("export_notebook", session_id=session_id)
        await call("export_notebook", session_id=session_id, path=f"exported-{asked['notebook']}")
        offset = int(re.search(r"offset=(\d+)", long)[1])
        execution_id = re.search(r"\[execution (\w+)", long)[1]
        rest = await call("get_execution", execution_id=execution_id, offset=offset)
        await call("stop", session_id=session_id)
    return {
        "revision": began.protocolVersion,
        "tools": [tool.name for tool in tools],
        "answers": answers,
        "rest": rest,
    }


sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))) + "\n")
