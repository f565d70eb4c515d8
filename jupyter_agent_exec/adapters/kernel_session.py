"""The session in which an adapter's code runs. It opens at its first use.

Any thread or event loop may call it, blocking or awaiting. If a caller stops waiting for its code,
the code is stopped in the kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from uuid import uuid4

from ..client import (
    Agent,
    AgentExecClient,
    ClientError,
    Event,
    Finished,
    Preloadable,
    Result,
    Session,
    StatusChanged,
    Step,
)
from ..client.calls import print_needed_decision
from ..client.servers import Server, named
from ..errors import AgentExecError, AlreadyFinished, SessionClosed
from ..types import FINAL_STATUSES
from .own_servers import OWN_SERVERS
from .result_pieces import ResultInNewSession

T = TypeVar("T")
Life: TypeAlias = tuple[str, int]
"""The id of a session and the incarnation of its kernel, which grows with each restart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where code runs. The default is a scratch kernel on a server that is started for it."""

    url: str | None = None
    """The Jupyter server's URL; ``JUPYTER_AGENT_EXEC_URL`` when None. If neither is set, a notebook
    or a running kernel uses the newest server on this machine, and a scratch kernel a server that
    the adapter starts."""
    token: str | None = field(default=None, repr=False)
    """An agent token, or the server's token; ``JUPYTER_AGENT_EXEC_TOKEN`` when None. If neither is
    set, the token of the server that was found on this machine."""
    notebook: str | None = None
    """Contents path of a user's notebook. Code runs in its kernel and becomes its cells."""
    kernel_id: str | None = None
    """Id of a running kernel. Code runs in it, without a notebook."""

    @property
    def is_scratch(self) -> bool:
        """Whether the session has a kernel of its own."""
        return self.notebook is None and self.kernel_id is None


SCRATCH: Final = Target()
"""A scratch kernel on a server that the environment names, or that is started for it."""


@dataclass(kw_only=True, slots=True)
class SessionOptions:
    """Options of an adapter's session; see `AgentExecClient.open_session`."""

    agent: str | Agent
    title: str | None = None
    kernel_name: str | None = None
    """Kernelspec of a scratch kernel; the server's default when None."""
    folder: Path | None = None
    """Folder of a scratch kernel on a server that the adapter starts; the current folder when None.
    Use `cwd` for any other server."""
    cwd: str | None = None
    """Contents path of a scratch kernel's folder on a server that the adapter did not start."""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    init_source: str | None = None
    preload: Sequence[Preloadable] = ()


class KernelSession:
    """A session of an adapter.

    It opens at its first use, and again at the first use after `close`. Any thread may use it, with
    or without a running event loop.

    Parameters
    ----------
    target
        The server and the kernel.
    options
        Options of the session.
    """

    def __init__(self, target: Target, options: SessionOptions) -> None:
        self.target = target
        self.options = options
        self._lock = threading.Lock()
        self._open: OpenSession | None = None
        self._ran_in: Result | None = None
        """The last result that names the session and the kernel where code ran."""
        self._submissions: dict[str, Submission] = {}
        """Submissions of `ask_async` that `run_async` does not wait for yet, by key."""

    def run(self, sources: Iterable[str | Step]) -> list[Result]:
        """Run sources in order and wait for them. No other code of the session runs in between.

        The sources after one that does not end as ``ok`` are cancelled. An exception that
        interrupts the wait, such as Ctrl-C, also stops the code.

        Parameters
        ----------
        sources
            At least one. Each becomes an execution.

        Raises
        ------
        AgentExecError
            The server refused the request, and no code ran.
        ServerUnreachable
            The server cannot be reached or started.
        """
        asked = Submission(sources)
        place = self._opened()
        future = place.submit(asked)
        try:
            results = future.result()
        except BaseException:
            if not future.done():
                place.give_up(asked).result()
            raise
        return list(map(self._with_loss_told, results))

    async def run_async(
        self, sources: Iterable[str | Step], *, key: str | None = None
    ) -> list[Result]:
        """Run sources in order, as `run` does; cancelling the task stops the code first.

        Parameters
        ----------
        key
            The key of an earlier `ask_async` call with the same arguments. The sources run once.
        """
        asked = None if key is None else self._submissions.pop(key, None)
        if asked is None:
            asked = Submission(sources, key)
        place = self._opened()
        results = await self._awaited(place, asked, place.submit(asked))
        return list(map(self._with_loss_told, results))

    async def ask_async(self, sources: Iterable[str | Step], *, key: str) -> Result | None:
        """Submit sources, and wait until a user has approved or rejected the first one.

        An approved source starts to run. `run_async` with the same key waits for its end, and
        `take_back_async` stops it. Cancelling the task cancels all sources.

        Returns
        -------
        The current result of the first source. None if the session needs no approval; then nothing
        was submitted.
        """
        asked = Submission(sources, key)
        place = self._opened()
        first = await self._awaited(place, asked, place.begin(asked.decided))
        if first is not None and (first.ok or first.status not in FINAL_STATUSES):
            self._submissions[key] = asked
        return first

    async def take_back_async(self, key: str) -> None:
        """Stop the sources of an `ask_async` call, unless `run_async` already waits for them."""
        asked = self._submissions.pop(key, None)
        if asked is not None:
            await asyncio.shield(asyncio.wrap_future(self._opened().give_up(asked)))

    async def _awaited(self, place: OpenSession, asked: Submission, future: Future[T]) -> T:
        running = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # A second cancellation, such as by a loop that ends, skips the wait, not the stop.
            await asyncio.shield(asyncio.wrap_future(place.give_up(asked)))
            if asked.was_sent:
                with suppress(Exception):  # the cancellation is raised instead
                    await running
            else:
                running.cancel()  # the session still opens, for the next call
            raise

    def open(self) -> None:
        """Open the session and start its kernel before the first use."""
        self.do(_nothing)

    async def open_async(self) -> None:
        """Open the session, as `open` does."""
        await self.do_async(_nothing)

    def do(self, work: Callable[[Session], T]) -> T:
        """Do something else with the session, such as sending a file, and return its result.

        Parameters
        ----------
        work
            Called with the session, in another thread. It goes on if the caller stops waiting.
        """
        return self._opened().begin(lambda _, session: work(session)).result()

    async def do_async(self, work: Callable[[Session], T]) -> T:
        """Do something else with the session, as `do` does."""
        return await asyncio.wrap_future(self._opened().begin(lambda _, session: work(session)))

    def life(self) -> Life | None:
        """Return the current life of the kernel; None if the next code gets a fresh kernel."""
        return self._opened().begin(_life).result()

    async def is_dead(self) -> bool:
        """Return whether the kernel has ended since its last use; False for an unused kernel."""
        with self._lock:
            place = self._open
        if place is None or self._ran_in is None:
            return False
        return await asyncio.wrap_future(place.begin(_life)) is None

    def begin_anew(self) -> None:
        """Close the session. The next use opens another, without a note that variables are lost."""
        self.do(Session.close)
        self._ran_in = None

    def close(self) -> None:
        """Close the session, its kernel, and the server if the adapter started it. Idempotent."""
        with self._lock:
            place, self._open = self._open, None
            self._ran_in = None
            self._submissions.clear()
        if place is not None:
            place.close()

    async def close_async(self) -> None:
        """Close, as `close` does, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def _opened(self) -> OpenSession:
        with self._lock:
            if self._open is None or self._open.is_inherited:
                self._open = OpenSession(self.target, self.options)
            return self._open

    def _with_loss_told(self, result: Result) -> Result:
        """Return a result; the first one in a new session as a `ResultInNewSession`."""
        kernel = result.execution.kernel
        if kernel is None:
            return result
        before, self._ran_in = self._ran_in, result
        if before is None or before.execution.session_id == result.execution.session_id:
            return result
        known = before.execution.kernel
        is_same = known is not None and known.id == kernel.id  # a user's kernel that kept running
        return result if is_same else ResultInNewSession(result.execution)


def life_of(result: Result) -> Life | None:
    """Return the life of the kernel in which code ran; None if it did not run."""
    kernel = result.execution.kernel
    return None if kernel is None else (result.execution.session_id, kernel.incarnation)


def _nothing(_: Session) -> None:
    """Do nothing: submitting this opens the session."""


def _life(client: AgentExecClient, session: Session) -> Life | None:
    info = client.session(session.id).info
    is_over = info.status == "closed" or info.kernel is None
    return None if is_over or info.kernel is None else (info.id, info.kernel.incarnation)


SessionWork: TypeAlias = Callable[[AgentExecClient, Session], T]

_CLOSED: Final = "The session was closed by this program while something waited for it."


class OpenSession:
    """A session that its first work opens. Any thread may use it.

    Each work has a thread of its own, which goes on if the caller stops waiting. So no server and
    no session is opened and then forgotten.

    Parameters
    ----------
    target
        The server and the kernel.
    options
        Options of the session.
    """

    def __init__(self, target: Target, options: SessionOptions) -> None:
        self._target = target
        self._options = options
        self._opening = threading.Lock()
        self._beginning = threading.Lock()
        self._closing = False
        self._at_work: list[threading.Thread] = []
        self._last_asked: Submission | None = None
        self._client: AgentExecClient | None = None
        self._session: Session | None = None
        self._own_root = options.folder or Path.cwd()
        self._own_server: Server | None = None
        self._process = os.getpid()
        atexit.register(self.close)  # for a program that forgets to close

    @property
    def is_inherited(self) -> bool:
        """Whether a parent process made this object before a fork."""
        return os.getpid() != self._process

    def begin(self, work: SessionWork[T]) -> Future[T]:
        """Start work with the session. Open the session first if needed.

        Raises
        ------
        SessionClosed
            `close` was called.
        """
        with self._beginning:
            if self._closing:
                raise SessionClosed(_CLOSED)
            return self._start(lambda: self._do(work))

    def submit(self, asked: Submission) -> Future[list[Result]]:
        """Run a submission after those that were submitted before it. Raise as `begin` does."""
        with self._beginning:
            previous, self._last_asked = self._last_asked, asked

        def run(client: AgentExecClient, session: Session) -> list[Result]:
            if previous is not None:
                previous.wait_until_accepted()
            return asked.run(client, session)

        try:
            running = self.begin(run)
        except BaseException:
            asked.sending.set()  # the next one waits for it
            raise
        running.add_done_callback(lambda _: asked.sending.set())  # also if it could not be sent
        return running

    def give_up(self, asked: Submission) -> Future[None]:
        """Stop a submission. Never opens a session, and never raises."""
        asked.give_up()
        with self._beginning:
            if not self._closing:
                return self._start(asked.stop)
        stopped: Future[None] = Future()
        stopped.set_result(None)
        return stopped

    def close(self) -> None:
        """Close the session, and the server if the adapter started it."""
        if self.is_inherited:
            return
        atexit.unregister(self.close)
        with self._beginning:
            self._closing = True
        try:
            with self._opening:
                if self._session is not None:
                    with suppress(ClientError, AgentExecError):
                        self._session.close()
            # These end because the session is closed. Until then they need the connection.
            for thread in self._at_work:
                thread.join()
            if self._client is not None:
                self._client.close()
        finally:
            if self._own_server is not None:
                OWN_SERVERS.release(self._own_root)

    def _start(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread. A program that ends does not wait for a daemon thread."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                value = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)

        thread = threading.Thread(target=work, name="agent-exec-adapter", daemon=True)
        thread.start()
        self._at_work = [*(each for each in self._at_work if each.is_alive()), thread]
        return future

    def _do(self, work: SessionWork[T]) -> T:
        client, session = self._in_session()
        try:
            return work(client, session)
        except SessionClosed:
            # Someone closed the session. It ran none of this work, so a new one may.
            with self._opening:
                if self._session is session:
                    self._session = None
            return work(*self._in_session())

    def _in_session(self) -> tuple[AgentExecClient, Session]:
        with self._opening:
            if self._closing:
                raise SessionClosed(_CLOSED)
            if self._client is None:
                self._client = self._connected()
            if self._session is None:
                self._session = self._new_session(self._client)
            return self._client, self._session

    def _connected(self) -> AgentExecClient:
        target = self._target
        if named(target.url, target.token) is not None or not target.is_scratch:
            return AgentExecClient(target.url, target.token).connect()
        if self._own_server is None:
            self._own_server = OWN_SERVERS.acquire(self._own_root)
        return AgentExecClient(self._own_server.url, self._own_server.token).connect()

    def _new_session(self, client: AgentExecClient) -> Session:
        options = self._options
        return client.open_session(
            options.agent,
            notebook=self._target.notebook,
            kernel_id=self._target.kernel_id,
            kernel_name=options.kernel_name if self._target.is_scratch else None,
            cwd=options.cwd if self._target.is_scratch else None,
            env=options.env if self._target.is_scratch else None,
            title=options.title,
            timeout=options.timeout,
            restart_if_interrupt_ignored=self._target.is_scratch or None,
            init_source=options.init_source,
            preload=options.preload,
        )


class Submission:
    """Sources that are sent to a session once, with one idempotency key.

    Parameters
    ----------
    sources
        Each becomes an execution.
    key
        The idempotency key; a new one when None.
    """

    def __init__(self, sources: Iterable[str | Step], key: str | None = None) -> None:
        self._sources = list(sources)
        self._key = key or uuid4().hex
        self._lock = threading.Lock()
        self._wanted = True
        self._sent: tuple[AgentExecClient, Session] | None = None
        self._waits_for_answer = False
        self.sending = threading.Event()
        """Set when `run` sends the sources, or when it has ended without."""

    def give_up(self) -> None:
        """Mark the sources as no longer wanted. Those that were not sent stay unsent."""
        with self._lock:
            self._wanted = False

    @property
    def was_sent(self) -> bool:
        """Whether the server may have received the sources."""
        return self._sent is not None

    def _is_to_be_sent(self, client: AgentExecClient, session: Session) -> bool:
        """Return whether the sources are wanted. From then on they count as sent."""
        with self._lock:
            if self._wanted:
                self._sent = client, session
            return self._wanted

    def run(self, client: AgentExecClient, session: Session) -> list[Result]:
        """Send the sources and wait until all of them have finished."""
        if not self._is_to_be_sent(client, session):
            return []
        self._waits_for_answer = True
        self.sending.set()
        try:
            results = session.run_steps(self._sources, idempotency_key=self._key)
        except SessionClosed:
            if self._wanted:
                raise
            return []
        finally:
            self._waits_for_answer = False
        return [client.execution(each.id) if each.execution.left_out else each for each in results]

    def decided(self, client: AgentExecClient, session: Session) -> Result | None:
        """Wait for the approval decision about the first source; None if none is needed."""
        if client.session(session.id).info.approval == "none":
            return None
        if not self._is_to_be_sent(client, session):
            return None
        first = self._accepted(session)[0]
        if first.status == "awaiting_approval":
            print_needed_decision(first.execution)
            for event in client.follow(first.id):
                if isinstance(event, Finished) or _is_decided(event):
                    break
        return client.execution(first.id)

    def wait_until_accepted(self) -> None:
        """Return once the server has accepted or refused what `run` sends.

        This sends the sources again, with the same key, because the answer to `run` comes later.
        """
        self.sending.wait()
        if self._waits_for_answer and self._sent is not None:
            with suppress(ClientError, AgentExecError):
                self._accepted(self._sent[1])

    def stop(self) -> None:
        """Cancel unfinished executions, if the server can be reached."""
        if self._sent is None:
            return
        client, session = self._sent
        with suppress(ClientError, AgentExecError):
            # The same key returns the accepted executions and runs nothing again.
            accepted = self._accepted(session)
            # Cancel the last one first, so that no cancellation lets the next one start.
            for each in reversed(accepted):
                with suppress(AlreadyFinished):
                    client.cancel(each.id)

    def _accepted(self, session: Session) -> list[Result]:
        return session.submit_steps(self._sources, idempotency_key=self._key)


def _is_decided(event: Event) -> bool:
    return isinstance(event, StatusChanged) and event.change.status != "awaiting_approval"
