"""Where an adapter's code runs: a session that is opened at the first use, for any thread or loop.

Whoever calls may block, or await in a loop that runs, in any order; what is given up while it is
awaited is stopped in the kernel.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from ..client import Agent, AsyncAgentExecClient, AsyncSession, Preloadable, Result, Step
from ..types import FINAL_STATUSES
from .asked import Submission
from .opened import SessionThread, SessionWork
from .outputs import InNewSession

T = TypeVar("T")
Life: TypeAlias = tuple[str, int]
"""The id of a session, and the number of its kernel's life."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionTarget:
    """Where code is to run; by default in a scratch kernel of a server that is started for it."""

    url: str | None = None
    """The Jupyter server; when None, that of ``JUPYTER_AGENT_EXEC_URL``. If that is not set, the
    newest that runs here for a notebook or a kernel, else one of our own."""
    token: str | None = None
    """The credential; ``JUPYTER_AGENT_EXEC_TOKEN``, or that of a server that runs here, when
    None."""
    notebook: str | None = None
    """Contents path of a person's notebook: code runs in its kernel, cells go into it."""
    kernel_id: str | None = None
    """Of a kernel that runs: code runs in it, without a document."""

    @property
    def is_scratch(self) -> bool:
        """Whether the kernel is the session's own."""
        return self.notebook is None and self.kernel_id is None


@dataclass(kw_only=True, slots=True)
class SessionOptions:
    """What the session of an adapter is like; see `AgentExecClient.open_session`."""

    agent: str | Agent
    title: str | None = None
    kernel_name: str | None = None
    """For a scratch kernel only; the server's default when None."""
    folder: Path | None = None
    """Where a scratch kernel starts on a server of our own; the current folder when None. A server
    that is named has `cwd`."""
    cwd: str | None = None
    """Contents path of a scratch kernel's folder on a server that is named."""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    init_source: str | None = None
    preload: Sequence[Preloadable] = ()


class KernelSession:
    """A session of an adapter.

    It is opened when it is first used, and again after `close`. Any thread may use it, whether an
    event loop runs there or not.

    Parameters
    ----------
    where
        The server and the kernel.
    wishes
        What else the session is like.
    """

    def __init__(self, where: SessionTarget, wishes: SessionOptions) -> None:
        self.where = where
        self.wishes = wishes
        self._lock = threading.Lock()
        self._open: SessionThread | None = None
        self._ran_in: Result | None = None
        """What told last in which session and kernel code ran."""
        self._asked: dict[str, Submission] = {}
        """By its key, what `ask_async` has asked for, until somebody waits for its end."""

    def run(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
    ) -> list[Result]:
        """Run sources in order, nothing else of the session between them, and wait for their end.

        Whatever interrupts the waiting, such as Ctrl-C, stops the code too.

        Parameters
        ----------
        sources
            At least one. Each becomes an execution.
        timeout
            Seconds each may run; the session's limit when None.
        stop_on_error
            Cancel what comes after one that does not end as ``ok``.

        Raises
        ------
        AgentExecError
            The server refuses; nothing was run.
        ServerUnreachable
            There is no connection, or no server could be started.
        """
        asked = Submission(list(sources), timeout, stop_on_error)
        place = self._opened()
        future = place.begin(asked.run)
        try:
            results = future.result()
        except BaseException:
            if not future.done():
                place.give_up(asked).result()
            raise
        return self._with_losses_told(results)

    async def run_async(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
        key: str | None = None,
    ) -> list[Result]:
        """Run sources in order, as `run` does; cancelling the task stops the code first.

        Parameters
        ----------
        key
            Of what was asked for by `ask_async` with the same arguments, and runs once.
        """
        asked = None if key is None else self._asked.pop(key, None)
        if asked is None:
            asked = Submission(list(sources), timeout, stop_on_error, key)
        return self._with_losses_told(await self._awaited(asked, asked.run))

    async def ask_async(
        self,
        sources: Iterable[str | Step],
        *,
        timeout: float | None = None,
        stop_on_error: bool = True,
        key: str,
    ) -> Result | None:
        """Have sources accepted, and wait until it is decided whether the first of them may run.

        Once it may, it does; `run_async` with the same key waits for the end, and `take_back_async`
        stops it. Cancelling the task takes all of them back.

        Returns
        -------
        The first one as it stands then; None if people need not approve what this session runs:
        then nothing was asked for.
        """
        asked = Submission(list(sources), timeout, stop_on_error, key)
        first = await self._awaited(asked, asked.decided)
        if first is not None and (first.ok or first.status not in FINAL_STATUSES):
            self._asked[key] = asked
        return first

    async def take_back_async(self, key: str) -> None:
        """Stop what `ask_async` has asked for, unless `run_async` already waits for it."""
        asked = self._asked.pop(key, None)
        if asked is not None:
            await asyncio.shield(asyncio.wrap_future(self._opened().give_up(asked)))

    async def _awaited(self, asked: Submission, deed: SessionWork[T]) -> T:
        place = self._opened()
        running = asyncio.wrap_future(place.begin(deed))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # Who cancels again, such as a loop that ends, does not wait for it; it goes on.
            await asyncio.shield(asyncio.wrap_future(place.give_up(asked)))
            if asked.was_sent:
                with suppress(Exception):  # who cancels has no use for what went wrong meanwhile
                    await running
            else:
                running.cancel()  # the session is opened all the same, for what comes next
            raise

    def open(self) -> None:
        """Have the session open, and its kernel ready, before it is first used."""
        self.do(_nothing)

    async def open_async(self) -> None:
        """Have the session open, as `open` does."""
        await self.do_async(_nothing)

    def do(self, deed: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do something else with the session, such as sending a file, and return what comes of it.

        Parameters
        ----------
        deed
            A function of the session, which runs on this object's own loop.
        """
        return self._opened().begin(lambda _, session: deed(session)).result()

    async def do_async(self, deed: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do something else with the session, as `do` does."""
        return await asyncio.wrap_future(self._opened().begin(lambda _, session: deed(session)))

    def life(self) -> Life | None:
        """Return in which life of its kernel the session is; None if code will find a fresh one."""
        return self._opened().begin(_life).result()

    async def is_dead(self) -> bool:
        """Tell whether the kernel has ended since it was last used; one that never was is not."""
        with self._lock:
            place = self._open
        if place is None or self._ran_in is None:
            return False
        return await asyncio.wrap_future(place.begin(_life)) is None

    def begin_anew(self) -> None:
        """Close the session; the next use opens another, and variables are gone as was wanted."""
        self.do(AsyncSession.close)
        self._ran_in = None

    def close(self) -> None:
        """Close the session, its kernel, and the server if it is our own; twice is no harm."""
        with self._lock:
            place, self._open = self._open, None
            self._ran_in = None
            self._asked.clear()
        if place is not None:
            place.close()

    async def close_async(self) -> None:
        """Close, as `close` does, without holding up the loop."""
        await asyncio.to_thread(self.close)

    def _opened(self) -> SessionThread:
        with self._lock:
            if self._open is None or self._open.is_inherited:
                self._open = SessionThread(self.where, self.wishes)
            return self._open

    def _with_losses_told(self, results: list[Result]) -> list[Result]:
        """Return results, of which the first in another session's place says that it is that."""
        return [self._with_loss_told(each) for each in results]

    def _with_loss_told(self, result: Result) -> Result:
        kernel = result.execution.kernel
        if kernel is None:
            return result
        before, self._ran_in = self._ran_in, result
        if before is None or before.execution.session_id == result.execution.session_id:
            return result
        known = before.execution.kernel
        is_same = known is not None and known.id == kernel.id  # a person's, that went on
        return result if is_same else InNewSession(result.execution)


def life_of(result: Result) -> Life | None:
    """Return in which life of the kernel code ran; None if it did not."""
    kernel = result.execution.kernel
    return None if kernel is None else (result.execution.session_id, kernel.incarnation)


async def _nothing(_: AsyncSession) -> None:
    """Do nothing; for this the session is opened."""


async def _life(client: AsyncAgentExecClient, session: AsyncSession) -> Life | None:
    info = (await client.session(session.id)).info
    is_over = info.status == "closed" or info.kernel is None
    return None if is_over or info.kernel is None else (info.id, info.kernel.incarnation)
