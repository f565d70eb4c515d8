"""The base of WebSockets: who asks is found out as for any route, before the handshake."""

from __future__ import annotations

from typing import Any

from tornado.websocket import WebSocketHandler

from ..errors import InvalidRequest
from .handler import AgentExecHandler

PING_INTERVAL = 20.0
"""Seconds between two pings; a peer that has not answered by the next is gone."""


class AgentExecWebSocket(AgentExecHandler, WebSocketHandler):
    """Base of WebSockets. Refusals before the handshake are those of any route."""

    max_message_bytes: int

    async def accept(self) -> None:
        """Make the handshake; whoever is here may."""
        headers = self.request.headers
        if headers.get("Upgrade", "").lower() != "websocket":
            raise InvalidRequest(
                "This route is a WebSocket: the request needs 'Upgrade: websocket'.",
                field="Upgrade",
            )
        await WebSocketHandler.get(self)

    def get_compression_options(self) -> None:
        """Do without: it costs more time than the way to a browser nearby."""

    @property
    def ping_interval(self) -> float:
        """Seconds between two pings."""
        return PING_INTERVAL

    @property
    def ping_timeout(self) -> float:
        """Seconds within which a ping is answered."""
        return PING_INTERVAL

    @property
    def max_message_size(self) -> int:
        """Bytes of the largest message that is taken."""
        return self.max_message_bytes

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer with the error's own status; after the handshake, close."""
        if self.ws_connection is not None:
            self.close(1011)
        else:
            super().send_error(status_code, **kwargs)
