"""`jupyter agent-exec mcp`: the MCP endpoint for clients that start a process."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import UNAUTHORIZED, HTTPException
from importlib.util import find_spec
from pathlib import Path

from ..client.errors import CannotConnect, NoServerFound, UnexpectedAnswer
from ..client.servers import TOKEN_VARIABLE, Server, named, running
from ..errors import Unauthenticated
from ..own_server.starting import own_server
from . import exit_codes
from .console import Console
from .mcp_http import Refused, Upstream
from .mcp_stdio import Bridge
from .usage import UsageError


def mcp(arguments: Namespace, console: Console) -> int:
    """Serve the client at standard input and output until it is gone."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever else would be printed is none of the protocol's.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with out, _upstream(arguments, console) as upstream:
        console.note(
            f"MCP's client is connected to the Jupyter server at {upstream.server.address}."
        )
        Bridge(upstream, out, console.complain).run(sys.stdin.buffer)
    return exit_codes.OK


@contextmanager
def _upstream(arguments: Namespace, console: Console) -> Iterator[Upstream]:
    found = None if arguments.start else _found(arguments)
    if found is not None:
        yield found
        return
    if find_spec("mcp") is None:
        raise UsageError("MCP is not installed here: pip install 'jupyter-agent-exec[mcp]'.")
    console.note("No Jupyter server is used that runs already; one is started for this client.")
    with own_server(Path.cwd()) as server:
        yield Upstream(server)


def _found(arguments: Namespace) -> Upstream | None:
    """Return the server that is named, or the newest that runs here; None if there is none.

    Raises
    ------
    UsageError, ServerUnreachable, UnexpectedAnswer, Unauthenticated
        A server is named, but cannot be used.
    """
    try:
        server = named(arguments.url, arguments.token)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if server is not None:
        return _checked(server)
    token = arguments.token or os.environ.get(TOKEN_VARIABLE)
    for known in running():
        upstream = Upstream(_with_token(known, token))
        try:
            upstream.probe()
        except (OSError, HTTPException, Refused):
            continue
        return upstream
    if token:
        raise NoServerFound(
            "No Jupyter server that runs here takes this token.", "Name its server with --url."
        )
    return None


def _checked(server: Server) -> Upstream:
    upstream = Upstream(server)
    try:
        upstream.probe()
    except Refused as error:
        if error.status == UNAUTHORIZED:
            raise Unauthenticated(str(error)) from error
        raise UnexpectedAnswer(
            f"What answers at {server.address} is no Jupyter server with jupyter-agent-exec.",
            error.status,
        ) from error
    except (OSError, HTTPException) as error:
        raise CannotConnect(
            f"Cannot connect to the Jupyter server at {server.address}: {error or 'no answer'}. "
            "Does it run, and is this its address?"
        ) from error
    return upstream


def _with_token(server: Server, token: str | None) -> Server:
    if token is None:
        return server
    return Server(url=server.url, token=token, socket_path=server.socket_path)
