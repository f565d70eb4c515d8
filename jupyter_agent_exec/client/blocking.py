"""The blocking client, made from the methods of the async client.

`blocking` and `iterating` make each method from the async method, with its parameters, types and
documentation. The coroutines run over a `BlockingConnection`, which never waits for an event loop.
So the blocking client needs neither an event loop nor a thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx2

from .. import models
from .client import AsyncAgentExecClient
from .connection import BlockingConnection
from .session import AsyncSession

A = TypeVar("A", covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[A]):
    """An object with the methods of an async object."""

    _awaiting: A


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for an event loop, and return its value."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    coroutine.close()
    raise TypeError(
        "The blocking client was given something to await, such as an async function as on_input; "
        "use AsyncAgentExecClient for that."
    )


def iterate(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate over an async generator that never waits for an event loop."""
    try:
        while True:
            yield run(items.__anext__())
    except StopAsyncIteration:
        return
    finally:
        run(items.aclose())


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[A], P], T]:
    """Return a blocking form of an async `method`."""

    @wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self._awaiting, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Blocking[A], P], Iterator[T]]:
    """Return an iterating form of an async generator `method`."""

    @wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate(method(self._awaiting, *args, **kwargs))

    return call


def _opening(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, AsyncSession]],
) -> Callable[Concatenate[Blocking[A], P], Session]:
    """Return a blocking form of an async `method` that returns a session."""

    @wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Session:
        return Session(run(method(self._awaiting, *args, **kwargs)))

    return call


def _listing(
    method: Callable[Concatenate[A, P], AsyncGenerator[AsyncSession, None]],
) -> Callable[Concatenate[Blocking[A], P], Iterator[Session]]:
    """Return an iterating form of an async generator `method` that yields sessions."""

    @wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Session]:
        return map(Session, iterate(method(self._awaiting, *args, **kwargs)))

    return call


class Session(Blocking[AsyncSession]):
    """An agent session. As a context manager, it closes the session at the end.

    Parameters
    ----------
    awaiting
        The same session of an async client over a `BlockingConnection`.
    """

    def __init__(self, awaiting: AsyncSession) -> None:
        self._awaiting = awaiting

    @property
    def info(self) -> models.Session:
        """The server's model of the session, from the last request that returned it."""
        return self._awaiting.info

    @property
    def id(self) -> str:
        """The session's id."""
        return self._awaiting.id

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        run(self._awaiting.__aexit__(kind, error, traceback))

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.info.agent.name!r}>"

    run = blocking(AsyncSession.run)
    run_steps = blocking(AsyncSession.run_steps)
    submit_steps = blocking(AsyncSession.submit_steps)
    run_cell = blocking(AsyncSession.run_cell)
    stream = iterating(AsyncSession.stream)
    executions = iterating(AsyncSession.executions)
    cells = blocking(AsyncSession.cells)
    edit = blocking(AsyncSession.edit)
    proposals = blocking(AsyncSession.proposals)
    keep_edits = blocking(AsyncSession.keep_edits)
    reject_edits = blocking(AsyncSession.reject_edits)
    undo_edits = blocking(AsyncSession.undo_edits)
    variables = blocking(AsyncSession.variables)
    packages = blocking(AsyncSession.packages)
    restore = blocking(AsyncSession.restore)
    requirements = blocking(AsyncSession.requirements)
    withdraw_grant = blocking(AsyncSession.withdraw_grant)
    interrupt = blocking(AsyncSession.interrupt)
    restart = blocking(AsyncSession.restart)
    close = blocking(AsyncSession.close)
    guide = blocking(AsyncSession.guide)
    export = blocking(AsyncSession.export)
    journal = blocking(AsyncSession.journal)
    files = iterating(AsyncSession.files)
    upload = blocking(AsyncSession.upload)
    download = blocking(AsyncSession.download)
    file_etag = blocking(AsyncSession.file_etag)
    delete_file = blocking(AsyncSession.delete_file)


class AgentExecClient(Blocking[AsyncAgentExecClient]):
    """Run code in a user's Jupyter, where the user can see it.

    As a context manager, the client closes its connections at the end. Other use is possible too.
    Threads may share a client.

    Parameters
    ----------
    url
        The Jupyter server's base URL, or a URL with ``?token=`` as Jupyter prints it. When None,
        the environment variable ``JUPYTER_AGENT_EXEC_URL``; if it is not set, the newest server on
        this machine that answers.
    token
        An agent token or the server's own token. When None, the one in `url`, else the environment
        variable ``JUPYTER_AGENT_EXEC_TOKEN``, else the token of a server on this machine.
    transport
        The transport that sends requests, such as ``httpx2.HTTPTransport(proxy=…)``.

    Raises
    ------
    InvalidAddress
        `url` is not a valid address of a Jupyter server, or has another token than `token`.

    Examples
    --------
    >>> with AgentExecClient() as client, client.open_session(agent="analyst") as session:
    ...     print(session.run("1 + 1").text)
    2
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        connection = BlockingConnection(url, token, transport)
        self._awaiting = AsyncAgentExecClient.over(connection)

    def __enter__(self) -> AgentExecClient:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> AgentExecClient:
        """Find the server, and return this client. Otherwise, the first request finds it.

        Raises
        ------
        NoServerFound
            No server was given, and no server on this machine answers.
        """
        run(self._awaiting.connect())
        return self

    @property
    def address(self) -> str | None:
        """The address of the server; None until a server was found."""
        return self._awaiting.address

    close = blocking(AsyncAgentExecClient.close)
    status = blocking(AsyncAgentExecClient.status)
    open_session = _opening(AsyncAgentExecClient.open_session)
    session = _opening(AsyncAgentExecClient.session)
    sessions = _listing(AsyncAgentExecClient.sessions)
    execution = blocking(AsyncAgentExecClient.execution)
    wait = blocking(AsyncAgentExecClient.wait)
    follow = iterating(AsyncAgentExecClient.follow)
    cancel = blocking(AsyncAgentExecClient.cancel)
    give_input = blocking(AsyncAgentExecClient.give_input)
    approvals = blocking(AsyncAgentExecClient.approvals)
    proposals = blocking(AsyncAgentExecClient.proposals)
    approve = blocking(AsyncAgentExecClient.approve)
    reject = blocking(AsyncAgentExecClient.reject)
    set_policy = blocking(AsyncAgentExecClient.set_policy)
    unlock = blocking(AsyncAgentExecClient.unlock)
    pause = blocking(AsyncAgentExecClient.pause)
    resume = blocking(AsyncAgentExecClient.resume)
    review = blocking(AsyncAgentExecClient.review)
    erase = blocking(AsyncAgentExecClient.erase)
    retain = blocking(AsyncAgentExecClient.retain)
    accept_break = blocking(AsyncAgentExecClient.accept_break)
    text = blocking(AsyncAgentExecClient.text)
    notebooks = blocking(AsyncAgentExecClient.notebooks)
    cells = blocking(AsyncAgentExecClient.cells)
    search = iterating(AsyncAgentExecClient.search)
    mint_token = blocking(AsyncAgentExecClient.mint_token)
    tokens = blocking(AsyncAgentExecClient.tokens)
    extend_token = blocking(AsyncAgentExecClient.extend_token)
    revoke_token = blocking(AsyncAgentExecClient.revoke_token)
