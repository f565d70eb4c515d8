"""A JupyterLab page as the server sees it: a real WebSocket, with a notebook behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tornado.websocket import WebSocketClientConnection

Answering = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Makes an answer to what is asked; None for none."""


def shown(path: str, **other: Any) -> dict[str, Any]:
    return {
        "panel": f"panel of {path}",
        "path": path,
        "collaborative": False,
        "dirty": False,
        "only_agents": True,
        "unused_seconds": 1.0,
        "kernel_starting": False,
        "hash": None,
        **other,
    }


class Page:
    """Answers what the server asks, until its socket is closed."""

    def __init__(self, socket: WebSocketClientConnection, answering: Answering) -> None:
        self.asked: list[dict[str, Any]] = []
        self._socket = socket
        self._answering = answering
        self._heard = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def announce(self, *notebooks: dict[str, Any]) -> None:
        await self.say({"op": "announce", "notebooks": notebooks})

    async def say(self, message: Any) -> None:
        data = message if isinstance(message, (str, bytes)) else json.dumps(message)
        await self._socket.write_message(data, binary=isinstance(data, bytes))

    async def heard(self, *ops: str) -> None:
        """Wait until the server has asked these, in this order, and nothing else."""
        async with self._heard:
            await asyncio.wait_for(
                self._heard.wait_for(lambda: [each["op"] for each in self.asked] == [*ops]), 10
            )

    async def closed(self) -> int | None:
        """Wait until the socket is closed, and return the code."""
        await asyncio.wait_for(self._reading, 10)
        return self._socket.close_code

    async def leave(self) -> None:
        self._socket.close()
        await self.closed()

    async def _read(self) -> None:
        while (text := await self._socket.read_message()) is not None:
            asked = json.loads(text)
            async with self._heard:
                self.asked.append(asked)
                self._heard.notify_all()
            answer = self._answering(asked)
            if answer is not None:
                await self.say({"op": "answer", "id": asked["id"], **answer})
