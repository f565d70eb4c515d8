"""The service's process: made from what the hub tells in the environment."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
from pathlib import Path
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from tornado.log import access_log, enable_pretty_logging
from tornado.web import Application, RequestHandler

from ..auth.credentials import without_tokens
from ..mcp.endpoint import MAX_BODY_BYTES
from ..mcp.sign_in import SignIn, fetch_document
from .forwarding import McpHandler
from .grants import Grants
from .handlers import ROUTES
from .user_servers import ACCESS_SECONDS, UserServers


def serve(hub_url: str, database: Path, client_documents: bool) -> None:
    """Serve until SIGTERM or SIGINT.

    Parameters
    ----------
    hub_url
        Address at which this process reaches the hub's proxy, with the hub's base URL.
    database
        File with what people have granted.
    client_documents
        Whether to fetch the metadata documents of MCP clients.
    """
    enable_pretty_logging()
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(_serve(hub_url, database, client_documents))


async def _serve(hub_url: str, database: Path, client_documents: bool) -> None:
    hub = HubOAuth.instance(cache_max_age=int(ACCESS_SECONDS))
    servers = UserServers(
        hub_url,
        hub.api_url,
        hub.api_token,
        lambda held: bool(hub.check_scopes(hub.access_scopes, {"scopes": held})),
    )
    grants = Grants(database)
    services = {
        "grants": grants,
        "servers": servers,
        "sign_in": SignIn(grants, fetch_document if client_documents else None),
        "hub": hub,
    }
    routes = [("mcp(?:/(?P<server_name>[^/]+))?/?", McpHandler), *ROUTES]
    prefix = re.escape(hub.base_url)
    application = Application(
        [
            (prefix + path, handler, services if handler.__module__.startswith(__package__) else {})
            for path, handler in routes
        ],
        cookie_secret=secrets.token_bytes(32),
        xsrf_cookies=True,
        log_function=_log,
    )
    server = HTTPServer(application, xheaders=True, max_buffer_size=4 * MAX_BODY_BYTES)
    address = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    server.listen(address.port or 80, address.hostname or "127.0.0.1")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await stopping.wait()
    server.stop()
    await servers.stop()
    await server.close_all_connections()
    await grants.stop()


def _log(handler: RequestHandler) -> None:
    """Log a request without its query, which may have codes, and without tokens."""
    request, status = handler.request, handler.get_status()
    path, milliseconds = without_tokens(request.path), 1000 * request.request_time()
    access_log.info("%d %s %s %.0f ms", status, request.method, path, milliseconds)
