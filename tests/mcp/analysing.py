"""An agent's analysis, by the official Python SDK: it looks by trial, and changes by execute.

`python -m tests.mcp.analysing URL PATH` works in the notebook at PATH, which has `rows`, and tells
how each call ended in a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

LOOKS = 20
CHANGES = {
    4: "big = [row for row in rows if row > 5]\nprint(len(big), 'rows are big')",
    11: "rows.append(10)\nlen(rows)",
    17: "open('report.txt', 'w').write(str(sum(rows)))",
}
"""What changes something, after how many looks."""


async def analyse(url: str, path: str) -> None:
    target = {"kind": "notebook", "path": path}
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        opened = await client.call_tool("open_session", {"target": target})
        assert opened.structured_content is not None
        session = {"session_id": opened.structured_content["session_id"], "wait": 60}
        for number in range(1, LOOKS + 1):
            look = {"source": f"sum(rows[:{number}])", "trial": True}
            _tell(await client.call_tool("execute", {**session, **look}))
            if number in CHANGES:
                change = {"source": CHANGES[number]}
                _tell(await client.call_tool("execute", {**session, **change}))


def _tell(answered: object) -> None:
    told = getattr(answered, "structured_content", None) or {}
    sys.stdout.write(json.dumps({"status": told.get("status"), "seen": str(answered)[:500]}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(analyse(sys.argv[1], sys.argv[2]))
