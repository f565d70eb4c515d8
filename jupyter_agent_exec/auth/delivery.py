"""How a piece of an answer gets to a client that may read slowly, or not at all."""

from __future__ import annotations

import asyncio

from tornado import web
from tornado.http1connection import HTTP1Connection
from tornado.log import app_log


async def deliver(handler: web.RequestHandler, piece: bytes, timeout: float) -> None:
    """Send a piece of an answer, and return when the connection has taken all of it.

    Raises
    ------
    tornado.iostream.StreamClosedError
        The client went away, or has not taken it within `timeout` seconds; its connection is then
        closed.
    """
    handler.write(piece)
    taken = handler.flush()
    if not taken.done():
        await asyncio.wait({taken}, timeout=timeout)
    if not taken.done():
        app_log.info("%s is not read any more; its connection is closed", handler.request.path)
        assert isinstance(handler.request.connection, HTTP1Connection)
        handler.request.connection.stream.close()
    await taken
