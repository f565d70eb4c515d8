"""Find the server that a command talks to, or start one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..client import AgentExecClient, NoServerFound
from ..own_server.starting import own_server
from .console import Console
from .usage import UsageError


@contextmanager
def connected(
    arguments: Namespace, console: Console, *, may_start: bool = True
) -> Iterator[AgentExecClient]:
    """Connect to the server that is named or runs here; else to one that ends with the block.

    Raises
    ------
    UsageError
        What is named is not a server's address.
    ServerUnreachable
        There is none, and none may be, or could be, started.
    """
    try:
        client = AgentExecClient(arguments.url, arguments.token)
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        client.connect()
    except NoServerFound as error:
        if not may_start:
            raise
        console.note(f"{error.what} Starting one for the time of this command.")
    else:
        with closing(client):
            yield client
        return
    with (
        own_server(Path.cwd()) as server,
        AgentExecClient(server.url, server.token) as client,
    ):
        yield client
