"""Find the server that a command talks to, or start one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from getpass import GetPassWarning, getpass
from pathlib import Path
from typing import Final, TypeVar
from warnings import catch_warnings, simplefilter

from ..client import AgentExecClient, NoServerFound
from ..errors import PassphraseRequired, PassphraseWrong
from ..own_server.launch import own_server
from .console import Console
from .usage import UsageError

T = TypeVar("T")

TRIES: Final = 3
"""How often a passphrase is asked for."""


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


def typed(prompt: str) -> str:
    """Ask on the terminal for what must not be seen.

    Raises
    ------
    UsageError
        There is no terminal on which to type it.
    """
    with catch_warnings():
        simplefilter("error", GetPassWarning)  # it would be read from a pipe, and shown
        try:
            return getpass(prompt)
        except (GetPassWarning, EOFError):
            raise UsageError("A passphrase is typed on a terminal; there is none here.") from None


def decided(client: AgentExecClient, console: Console, decide: Callable[[], T]) -> T:
    """Do what is for people; on a server that wants its passphrase, ask the terminal for it.

    Raises
    ------
    UsageError
        There is no terminal.
    PassphraseWrong
        It was wrong each time.
    """
    try:
        return decide()
    except PassphraseRequired:
        pass
    for tries_left in reversed(range(TRIES)):
        try:
            client.unlock(typed("Passphrase of the server: "))
            break
        except PassphraseWrong as error:
            if not tries_left:
                raise
            console.complain(error.message)
    return decide()
