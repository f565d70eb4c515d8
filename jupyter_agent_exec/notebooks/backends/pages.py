"""JupyterLab pages that are connected, the notebooks that each has open, and the way through them.

Nothing here knows HTTP: a `Transport` carries the messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, Protocol

from ...errors import DocumentUnwritable
from ...types import Via
from ..changes import Change, Expected, Moved, Notebook, Unreachable
from . import tab_messages as wire

BYTES_PER_SECOND: Final = 4_000_000
"""What a slow page on a slow line still takes; large changes are given more time accordingly."""


class Transport(Protocol):
    """The socket of a page."""

    async def send(self, message: bytes) -> None:
        """Send a message.

        Raises
        ------
        ConnectionError
            If the page is gone.
        """

    def close(self) -> None:
        """Close the socket; the page may come back with another."""


class Tab:
    """A notebook that is open in a page."""

    def __init__(self, page: Page, shown: wire.Shown, used_at: float) -> None:
        self.page = page
        self.shown = shown
        self.used_at = used_at
        self.way = OpenedWay(self)
        """The way through it: the same one for as long as the tab lives."""
        self.has_changes = False
        """Whether anything of agents is in it that its file has not."""
        self._turn = asyncio.Lock()

    @property
    def is_way(self) -> bool:
        """Whether the notebook is to be reached through this tab."""
        return not self.shown.collaborative

    async def ask(self, make: Callable[[int], wire.ToPage]) -> wire.Answer:
        """Ask one thing after the other, so that a save ends before the next change comes.

        Raises
        ------
        Unreachable
        """
        async with self._turn:
            if self.page.tabs.get(self.shown.panel) is not self:
                raise Unreachable(f"{self.shown.path} is no longer open in this tab.")
            answer = await self.page.ask(make)
        if answer.status == "failed":
            raise Unreachable(answer.message or "It went wrong in the tab.")
        if answer.status == "gone":
            raise Unreachable(f"{self.shown.path} is no longer open in this tab.")
        return answer


class Page:
    """A JupyterLab page, for as long as its socket lives."""

    def __init__(self, transport: Transport, timeout: float, log: logging.Logger) -> None:
        self.tabs: dict[str, Tab] = {}
        self._transport = transport
        self._timeout = timeout
        self._log = log
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[wire.Answer | None]] = {}
        self._is_gone = False

    async def ask(self, make: Callable[[int], wire.ToPage]) -> wire.Answer:
        """Ask something and return the answer.

        Raises
        ------
        Unreachable
            If none comes in time, or the page goes meanwhile.
        """
        if self._is_gone:
            raise Unreachable("The page was closed.")
        id = next(self._ids)
        answered: asyncio.Future[wire.Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answered
        try:
            message = wire.encode(make(id))
            limit = self._timeout + len(message) / BYTES_PER_SECOND
            answer = await asyncio.wait_for(self._exchange(message, answered), limit)
        except TimeoutError as error:
            self._log.warning("A JupyterLab page did not answer in time.")
            self.close()
            raise Unreachable("The page did not answer in time.") from error
        except ConnectionError:
            answer = None
        finally:
            del self._waiting[id]
        if answer is None:
            raise Unreachable("The page was closed.")
        return answer

    async def _exchange(
        self, message: bytes, answered: asyncio.Future[wire.Answer | None]
    ) -> wire.Answer | None:
        await self._transport.send(message)
        return await answered

    def take(self, answer: wire.Answer) -> None:
        """Take an answer; one that nobody waits for any more is dropped."""
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def announce(self, notebooks: Sequence[wire.Shown]) -> None:
        """Take what the page has open now."""
        now = asyncio.get_running_loop().time()
        known, self.tabs = self.tabs, {}
        if self._is_gone:
            return
        for shown in notebooks:
            used_at = now - shown.unused_seconds
            tab = known.get(shown.panel) or Tab(self, shown, used_at)
            tab.shown, tab.used_at = shown, used_at
            tab.has_changes &= shown.dirty
            self.tabs[shown.panel] = tab

    def leave(self) -> None:
        """Forget all tabs: the socket is gone."""
        self._is_gone = True
        self.tabs = {}
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_result(None)

    def close(self) -> None:
        """Close the socket."""
        self.leave()
        self._transport.close()


class OpenedWay:
    """The way to a notebook through one tab."""

    via: Via = "tab"
    streams = True

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    async def read(self) -> Notebook:
        """Return the notebook as the tab has it."""
        panel = self._tab.shown.panel
        answer = await self._tab.ask(lambda id: wire.Read(id=id, panel=panel))
        if answer.notebook is None:
            raise Unreachable("The tab did not say what is in the notebook.")
        return answer.notebook

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Have the tab make changes, all or none."""
        panel = self._tab.shown.panel
        answer = await self._tab.ask(
            lambda id: wire.Apply(id=id, panel=panel, changes=list(changes), expected=expected)
        )
        if answer.status == "moved":
            raise Moved
        if answer.status == "read_only":
            path = self._tab.shown.path
            raise DocumentUnwritable(f"{path} is open, but cannot be saved there.", path=path)
        self._tab.has_changes |= self._tab.shown.dirty
