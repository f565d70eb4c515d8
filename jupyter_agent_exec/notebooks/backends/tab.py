"""Reaches notebooks through the JupyterLab tabs that have them open, without collaboration.

Each JupyterLab page announces its open notebooks over a WebSocket, until the socket closes. A
change goes to one of these tabs, which makes it in its own model. So the user's unsaved edits stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import suppress
from itertools import count
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ...errors import DocumentUnwritable
from ...tasks import Tasks
from ...types import Via
from ..cell_names import is_made_up, with_names
from ..changes import Change, Expected, Moved, Notebook, NotebookHandle, Unreachable, order_of
from . import tab_messages as wire

Send: TypeAlias = Callable[[bytes], Awaitable[None]]

NotInFile: TypeAlias = Callable[[str, Set[str]], Awaitable[Set[str]]]
"""Takes a path and ids. Returns the ids that no cell in the file has; none if it is unreadable."""

BYTES_PER_SECOND: Final = 4_000_000
"""Speed of the slowest supported connection. The timeout of large changes grows accordingly."""


class Tab:
    """A notebook that is open in a page."""

    def __init__(self, page: Page, shown: wire.TabState, used_at: float) -> None:
        self.page = page
        self.shown = shown
        self.used_at = used_at
        self.handle = TabHandle(self, page.not_in_file)
        """The same object while the tab is open."""
        self.has_changes = False
        """Whether it has unsaved changes of agents."""
        self._turn = asyncio.Lock()

    @property
    def is_reachable(self) -> bool:
        """Whether changes go through this tab. False if collaboration shares its model."""
        return not self.shown.collaborative

    async def ask(self, request: wire.ToTab) -> wire.Answer:
        """Send a request after the previous one has ended, so that no change comes during a save.

        Raises
        ------
        Unreachable
        """
        async with self._turn:
            if self.page.tabs.get(self.shown.panel) is not self:
                raise Unreachable(f"{self.shown.path} is no longer open in this tab.")
            answer = await self.page.ask(replace(request, panel=self.shown.panel))
        if answer.status == "failed":
            raise Unreachable(answer.message or "The tab could not make the change.")
        if answer.status == "gone":
            raise Unreachable(f"{self.shown.path} is no longer open in this tab.")
        return answer


class Page:
    """A JupyterLab page, while its socket is open.

    Parameters
    ----------
    send
        Sends a message to the page. Raises ConnectionError if the page is gone.
    hang_up
        Closes the socket. The page may connect again.
    not_in_file
        See `NotInFile`.
    timeout
        Seconds to wait for the page's answer.
    """

    def __init__(
        self,
        send: Send,
        hang_up: Callable[[], None],
        not_in_file: NotInFile,
        *,
        timeout: float,
        log: logging.Logger,
    ) -> None:
        self.tabs: dict[str, Tab] = {}
        self.not_in_file = not_in_file
        self._send = send
        self._hang_up = hang_up
        self._timeout = timeout
        self._log = log
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[wire.Answer | None]] = {}
        self._is_gone = False

    async def ask(self, request: wire.ToTab) -> wire.Answer:
        """Send a request and return the answer.

        Raises
        ------
        Unreachable
            No answer came in time, or the page was closed.
        """
        if self._is_gone:
            raise Unreachable("The page was closed.")
        id = next(self._ids)
        answered: asyncio.Future[wire.Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answered
        try:
            message = wire.encode(replace(request, id=id))
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
        await self._send(message)
        return await answered

    def receive_answer(self, answer: wire.Answer) -> None:
        """Hand an answer to its request. Drop it if no request waits for it."""
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def announce(self, notebooks: Sequence[wire.TabState]) -> None:
        """Replace the list of notebooks that the page has open."""
        now = asyncio.get_running_loop().time()
        before, self.tabs = self.tabs, {}
        if self._is_gone:
            return
        for shown in notebooks:
            used_at = now - shown.unused_seconds
            tab = before.get(shown.panel) or Tab(self, shown, used_at)
            tab.shown, tab.used_at = shown, used_at
            tab.has_changes &= shown.dirty
            self.tabs[shown.panel] = tab

    def leave(self) -> None:
        """Forget all tabs, because the socket was closed."""
        self._is_gone = True
        self.tabs = {}
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_result(None)

    def close(self) -> None:
        """Close the socket."""
        self.leave()
        self._hang_up()


class TabHandle:
    """A notebook, reached through one tab."""

    via: Via = "tab"
    streams = True

    def __init__(self, tab: Tab, not_in_file: NotInFile) -> None:
        self._tab = tab
        self._not_in_file = not_in_file
        self._given: set[str] = set()  # ids that the tab has from us, or from the file

    async def read(self) -> Notebook:
        """Return the notebook in the tab, unsaved edits included."""
        answer = await self._tab.ask(wire.Read())
        if answer.notebook is None:
            raise Unreachable("The tab did not say what is in the notebook.")
        return replace(answer.notebook, cells=await self._named(answer.notebook))

    async def _named(self, notebook: Notebook) -> list[dict[str, Any]]:
        """Return cells with their names, by which the tab knows them from now on."""
        ids = [cell.get("id", "") for cell in notebook.cells]
        new = {id for id in ids if is_made_up(id)} - self._given
        made_up = await self._not_in_file(self._tab.shown.path, new) if new else new
        self._given |= new - made_up
        counting = [
            {**cell, "id": None} if id in made_up else cell
            for id, cell in zip(ids, notebook.cells, strict=True)
        ]
        named = with_names(counting, notebook.nbformat_minor, self._given)
        names = {id: name for id, name in zip(ids, order_of(named), strict=True) if id != name}
        if names:
            await self._tab.ask(wire.Name(names=names))
            self._given.update(names.values())
        return named

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Send changes to the tab, which makes all or none."""
        answer = await self._tab.ask(wire.Apply(changes=list(changes), expected=expected))
        if answer.status == "moved":
            raise Moved
        if answer.status == "read_only":
            path = self._tab.shown.path
            raise DocumentUnwritable(f"{path} is open, but cannot be saved there.", path=path)
        self._tab.has_changes |= self._tab.shown.dirty


ANSWER_TIMEOUT: Final = 5.0
"""Seconds to wait for a page's answer. After that, the page counts as closed."""

KERNEL_TIMEOUT: Final = 10.0
"""Seconds to wait for a kernel that a page starts. After that, the page may wait for the user."""

REMEMBERED: Final = 256
"""How many files to remember that were written directly, not through their tabs."""


class OpenTabs(msgspec.Struct, frozen=True, kw_only=True):
    """The tabs that show one notebook."""

    tabs: int
    unsaved: bool
    collaborative: bool


class TabBackend:
    """Reaches notebooks that JupyterLab tabs have open.

    Parameters
    ----------
    not_in_file
        See `NotInFile`.
    timeout
        Seconds to wait for a page's answer.
    kernel_timeout
        Seconds to wait for a kernel that a page starts.
    """

    def __init__(
        self,
        not_in_file: NotInFile,
        *,
        log: logging.Logger,
        timeout: float = ANSWER_TIMEOUT,
        kernel_timeout: float = KERNEL_TIMEOUT,
    ) -> None:
        self._not_in_file = not_in_file
        self._log = log
        self._timeout = timeout
        self._kernel_timeout = kernel_timeout
        self._pages: list[Page] = []
        self._tasks = Tasks(log)
        self._settling: dict[str, bool] = {}
        self._announced = asyncio.Event()
        self._written: OrderedDict[str, str] = OrderedDict()
        self._stopped = False

    # -- pages -------------------------------------------------------------------------------------

    def connect(self, send: Send, hang_up: Callable[[], None]) -> Page:
        """Add a page whose socket was opened; see `Page`."""
        page = Page(send, hang_up, self._not_in_file, timeout=self._timeout, log=self._log)
        if self._stopped:
            page.close()
        else:
            self._pages.append(page)
        return page

    def receive(self, page: Page, data: str | bytes) -> None:
        """Receive a message of a page.

        Raises
        ------
        msgspec.MsgspecError
            The message is not valid.
        """
        message = wire.decode(data)
        if isinstance(message, wire.Answer):
            page.receive_answer(message)
            return
        page.announce(message.notebooks)
        self._wake()
        for tab in page.tabs.values():
            if self._written.get(_key(tab.shown.path), tab.shown.hash) != tab.shown.hash:
                self._reload([tab])

    def disconnect(self, page: Page) -> None:
        """Forget a page whose socket was closed."""
        page.leave()
        self._wake()
        if page in self._pages:
            self._pages.remove(page)

    # -- documents ---------------------------------------------------------------------------------

    async def find(self, path: str) -> NotebookHandle | None:
        """Return the handle of the tab that was used last; None if no tab shows the notebook.

        A tab with unsaved changes of agents is used until they are saved, even if the user works in
        another tab. If both had unsaved changes, Jupyter would ask the user which ones to discard.
        """
        tabs = self._tabs(path)
        return tabs[0].handle if tabs else None

    def open_notebooks(self) -> dict[str, OpenTabs]:
        """Return the open notebooks by path, collaborative or not."""
        by_path: dict[str, list[Tab]] = {}
        for tab in self._all_tabs():
            by_path.setdefault(_key(tab.shown.path), []).append(tab)
        return {
            path: OpenTabs(
                tabs=len(tabs),
                unsaved=any(tab.shown.dirty for tab in tabs),
                collaborative=any(tab.shown.collaborative for tab in tabs),
            )
            for path, tabs in by_path.items()
        }

    def recent(self) -> list[str]:
        """Return the paths of the open notebooks, the one that was used last first."""
        tabs = sorted(self._all_tabs(), key=lambda tab: tab.used_at, reverse=True)
        return list(dict.fromkeys(_key(tab.shown.path) for tab in tabs))

    async def kernel_started(self, path: str) -> None:
        """Wait while a page starts a kernel for a notebook, for at most `kernel_timeout`."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._until_no_kernel_starts(_key(path)), self._kernel_timeout)

    async def _until_no_kernel_starts(self, key: str) -> None:
        while any(
            tab.shown.kernel_starting and _key(tab.shown.path) == key for tab in self._all_tabs()
        ):
            await self._announced.wait()

    def _wake(self) -> None:
        """Wake up all callers that wait for an announcement."""
        announced, self._announced = self._announced, asyncio.Event()
        announced.set()

    def other_tabs(self, path: str) -> int:
        """Return how many other tabs show a notebook, besides the one in use."""
        return max(0, len(self._tabs(path)) - 1)

    def _tabs(self, path: str) -> list[Tab]:
        """Return the tabs that can reach a notebook, the preferred one first."""
        tabs = [
            tab
            for tab in self._all_tabs()
            if tab.is_reachable and _key(tab.shown.path) == _key(path)
        ]
        return sorted(tabs, key=lambda tab: (tab.has_changes, tab.used_at), reverse=True)

    def _all_tabs(self) -> list[Tab]:
        return [tab for page in self._pages for tab in page.tabs.values()]

    # -- several tabs ------------------------------------------------------------------------------

    def settle(self, path: str) -> None:
        """Bring an agent's changes in one tab to the other tabs, in the background.

        The tab saves if all its unsaved changes are from agents, and the other tabs reload the
        file. If the user has unsaved edits, nothing is saved.
        """
        key = _key(path)
        if key in self._settling:
            self._settling[key] = True  # again, after the current run
        elif not self._stopped and self.other_tabs(path):
            self._settling[key] = False
            self._tasks.start(self._settle(key), f"settle {key}")

    async def _settle(self, key: str) -> None:
        again: bool | None = True
        try:
            while again:
                self._settling[key] = False
                with suppress(Unreachable):
                    await self._share(self._tabs(key))
                again = self._settling[key]
        finally:
            del self._settling[key]

    async def _share(self, tabs: list[Tab]) -> None:
        unsaved = [tab for tab in tabs if tab.shown.dirty]
        if len(unsaved) != 1 or not unsaved[0].shown.only_agents:
            return
        source = unsaved[0]
        answer = await source.ask(wire.Save())
        if answer.status == "ok":
            self._reload([tab for tab in tabs if tab is not source])

    def written(self, path: str, hash: str | None) -> None:
        """Make tabs reload a file that was written directly, also a tab that was opened meanwhile.

        Parameters
        ----------
        path
            The notebook's contents path.
        hash
            The contents manager's hash of the file; None if it has no hashes.
        """
        key = _key(path)
        if hash is None:
            return
        self._written[key] = hash
        self._written.move_to_end(key)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)
        self._reload([tab for tab in self._tabs(key) if tab.shown.hash != hash])

    def _reload(self, tabs: Sequence[Tab]) -> None:
        for tab in tabs:
            if tab.is_reachable and not tab.shown.dirty and not self._stopped:
                self._tasks.start(self._have_reloaded(tab), f"reload {tab.shown.path}")

    async def _have_reloaded(self, tab: Tab) -> None:
        key = _key(tab.shown.path)
        write = self._written.get(key)
        with suppress(Unreachable):
            await tab.ask(wire.Reload())
            if self._written.get(key) == write:
                self._written.pop(key, None)  # the tab has read the current file

    async def stop(self) -> None:
        """Close all sockets."""
        self._stopped = True
        for page in self._pages:
            page.close()
        self._pages.clear()
        self._wake()
        await self._tasks.end(timeout=self._timeout)


def _key(path: str) -> str:
    return path.strip("/")
