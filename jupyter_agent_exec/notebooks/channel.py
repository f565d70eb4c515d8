"""The WebSocket of a JupyterLab page, through which agents reach the notebooks it has open."""

from __future__ import annotations

from typing import Final

import msgspec
from tornado import iostream, web
from tornado.websocket import WebSocketClosedError

from ..auth.handler import requires
from ..auth.websocket import AgentExecWebSocket
from .backends.pages import Page
from .backends.tab import OpenedWays

MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""A notebook that a page tells as a whole may be this large, with all its outputs."""


class ChannelHandler(AgentExecWebSocket):
    """A page's channel; for people's pages, never for agents."""

    ways: OpenedWays
    max_message_bytes = MAX_MESSAGE_BYTES
    _page: Page | None = None

    @web.authenticated
    @requires("edit:notebook", answers={})
    async def get(self) -> None:  # type: ignore[override]
        """Open a JupyterLab page's channel, a WebSocket: which notebooks it has open."""
        await self.accept()

    def open(self) -> None:
        """Take the page."""
        self._page = self.ways.join(_Socket(self))

    def on_message(self, message: str | bytes) -> None:
        """Take what the page says; hang up on whoever speaks something else."""
        assert self._page is not None
        try:
            self.ways.receive(self._page, message)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.log.warning("A JupyterLab page sent what is no message: %s", error)
            self.close(1007, "This is no message of a JupyterLab page.")

    def on_close(self) -> None:
        """Forget the page."""
        if self._page is not None:
            self.ways.leave(self._page)


class _Socket:
    """Sends to the page of a handler."""

    def __init__(self, handler: ChannelHandler) -> None:
        self._handler = handler

    async def send(self, message: bytes) -> None:
        """Send a text message."""
        try:
            await self._handler.write_message(message)
        except (WebSocketClosedError, iostream.StreamClosedError) as error:
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        """Close the socket; the page may open another."""
        self._handler.close(1001)
