"""Connect a command to a server, or start one."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from getpass import GetPassWarning, getpass
from pathlib import Path
from threading import Event, Thread
from types import FrameType, MappingProxyType
from typing import Final, Literal, ParamSpec, TypeVar
from warnings import catch_warnings, simplefilter

from ..client import AgentExecClient, NoServerFound, ServerUnreachable
from ..client.blocking import run
from ..client.connection import BlockingConnection
from ..client.errors import ClientError
from ..client.servers import TOKEN_VARIABLE, Server
from ..errors import AgentExecError, PassphraseRequired, PassphraseWrong
from ..leaves import installed
from . import exit_codes
from .console import Console
from .usage import UsageError

P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS: Final = 0.2
"""How often to ask the server how far it is."""

TRIES: Final = 3
"""How many times to ask the user for a passphrase."""


@contextmanager
def connected(
    arguments: Namespace, console: Console, *, may_start: bool = True
) -> Iterator[AgentExecClient]:
    """Connect to the server named by the user, or to one that runs here.

    If there is none, and no token for one, start a server, which stops at the end of the block.
    SIGTERM ends the block.

    Raises
    ------
    InvalidAddress, ServerUnreachable, UnexpectedAnswer, Unauthenticated
        As for `server_of`.
    """
    start = partial(own_server, Path.cwd()) if may_start else None
    with (
        _ended_by_sigterm(),
        server_of(arguments, console, start) as server,
        AgentExecClient(server.address, server.token) as client,
    ):
        yield client


def server_of(
    arguments: Namespace,
    console: Console,
    start: Callable[[], AbstractContextManager[Server]] | None,
) -> AbstractContextManager[Server]:
    """Return the server named by the user, or one that runs here, or else one that `start` starts.

    None is started if there is a token, which it would not know.

    Raises
    ------
    InvalidAddress, ServerUnreachable, UnexpectedAnswer, Unauthenticated
        The named server cannot be used, or none was found and none may be started.
    """
    connection = BlockingConnection(arguments.url, arguments.token)
    try:
        return nullcontext(run(connection.find()))
    except NoServerFound as error:
        if start is None or arguments.token or os.environ.get(TOKEN_VARIABLE):
            raise
        console.note(f"{error.what} Starting one for the time of this command.")
        return start()
    finally:
        run(connection.close())


def own_server(
    root_dir: Path,
    history_dir: Path | None = None,
    *,
    traits: Mapping[str, str] = MappingProxyType({}),
) -> AbstractContextManager[Server]:
    """Return a server that runs in a block; ServerUnreachable if nothing here can start one."""
    for start in installed("servers"):
        server: AbstractContextManager[Server] = start(root_dir, history_dir, traits=traits)
        return server
    raise ServerUnreachable("A part of the installation is missing, so start a Jupyter server.")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end the block, which closes what it has opened, and then the process."""

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
        sys.exit(exit_codes.TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def showing(
    client: AgentExecClient, console: Console, work: Literal["erasing", "indexing"]
) -> Iterator[None]:
    """Show on a terminal how far the server is with long work that a block waits for."""
    if not console.shows_progress:
        yield
        return
    ended = Event()
    thread = Thread(target=_show, args=(client, console, work, ended), name=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(client: AgentExecClient, console: Console, work: str, ended: Event) -> None:
    """Show a bar for each part of the work, until it has ended."""
    total = done = 0
    with ExitStack() as bar, suppress(AgentExecError, ClientError):
        while not ended.wait(LOOK_SECONDS):
            now = getattr(client.status(), work)
            if now is None:
                continue
            if now.total != total or now.done < done:
                bar.close()
                total, done = now.total, 0
                shown = console.progress(work, " sessions", total, stays=False)
                progress = bar.enter_context(shown)
            progress(now.done - done)
            done = now.done


def typed(prompt: str) -> str:
    """Ask the user for a passphrase on the terminal, without echo.

    Raises
    ------
    UsageError
        There is no terminal.
    """
    with catch_warnings():
        simplefilter("error", GetPassWarning)  # else getpass would read a pipe and echo
        try:
            return getpass(prompt)
        except (GetPassWarning, EOFError):
            raise UsageError("A passphrase is typed on a terminal; there is none here.") from None


def decided(
    client: AgentExecClient,
    console: Console,
    decide: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call `decide` for the user; ask for the passphrase first if the server requires it.

    Raises
    ------
    UsageError
        There is no terminal.
    PassphraseWrong
        The user typed a wrong passphrase `TRIES` times.
    """
    try:
        return decide(*args, **kwargs)
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
    return decide(*args, **kwargs)
