"""A server on which people collaborate, and a page that has a notebook open with others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jupyter_ydoc import YNotebook
from pycrdt import Provider
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_agent_exec.notebooks.backends.rooms import YDOC

PATIENCE = 20


def with_rooms(config: dict[str, Any], root: Path, folder: Path) -> dict[str, Any]:
    """Return a server's configuration with collaboration, which keeps its files in a folder."""
    loaded = config["ServerApp"]["jpserver_extensions"]
    more = {YDOC: True, "jupyter_server_fileid": True}
    return {
        **config,
        "ServerApp": {**config["ServerApp"], "jpserver_extensions": {**loaded, **more}},
        "SQLiteYStore": {"db_path": str(folder / "updates.db")},
        "BaseFileIdManager": {
            "root_dir": str(root),
            "db_path": str(folder / "file_ids.db"),
        },
        "YDocExtension": {"session_store_path": str(folder / "sessions.json")},
    }


class Page:
    """What a browser has of a notebook that is open in it."""

    def __init__(self, connection: WebSocketClientConnection, path: str) -> None:
        self._connection = connection
        self._changed = asyncio.Event()
        self.path = path
        self.document = YNotebook()
        self._subscription = self.document.ydoc.observe(lambda _: self._changed.set())

    async def send(self, message: bytes) -> None:
        await self._connection.write_message(message, binary=True)

    async def recv(self) -> bytes:
        message = await self._connection.read_message()
        assert isinstance(message, bytes | None)
        if message is None:  # closed
            await asyncio.Future()
        assert message is not None
        return message

    def __aiter__(self) -> Page:
        return self

    async def __anext__(self) -> bytes:
        return await self.recv()

    @property
    def cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self.document.ycells.to_py() or []
        return cells

    @property
    def sources(self) -> list[str]:
        return [cell["source"] for cell in self.cells]

    async def sees(self, condition: Callable[[], bool]) -> None:
        """Wait until the page shows something."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def opened(
    jp_fetch: Any, ws_url: str, headers: dict[str, str], path: str
) -> AsyncIterator[Page]:
    """Open a notebook in a page."""
    body = json.dumps({"format": "json", "type": "notebook"})
    response = await jp_fetch("api/collaboration/session", path, method="PUT", body=body)
    found = json.loads(response.body)
    room_id = f"json:notebook:{found['fileId']}"
    url = f"{ws_url}api/collaboration/room/{room_id}?sessionId={found['sessionId']}"
    connection = await websocket_connect(HTTPRequest(url, headers=headers))
    page = Page(connection, room_id)
    try:
        async with Provider(page.document.ydoc, page):
            await page.sees(lambda: len(page.document.ycells) > 0)
            yield page
    finally:
        connection.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody tells."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)
