"""JupyterLab pages that each have one notebook open, over a real WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import nbformat
import pytest

from jupyter_agent_exec.notebooks.backends import tab_messages
from jupyter_agent_exec.notebooks.changes import Moved, apply
from tests.notebooks.page import Page, shown
from tests.sessions.living_notebook import NOTEBOOK, Desk

CHANNEL = ("api", "agent-exec", "notebooks", "channel")


class Tab:
    """A notebook that is open in a JupyterLab page of its own."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.name = name
        self.file = desk.root / NOTEBOOK
        self.page: Page
        self.notebook: dict[str, Any] = {}
        self.dirty = False
        self.before: list[Any] = []
        self.deleted: list[str] = []
        self.number = 0
        self.event = "read"
        self.in_file: list[str] = []
        self.reads_again = False
        """Whether it reads its file again as soon as the server has changed it."""

    @property
    def sources(self) -> list[str]:
        return [cell["source"] for cell in self.notebook["cells"]]

    @property
    def ids(self) -> list[str]:
        return [cell["id"] for cell in self.notebook["cells"]]

    async def read(self) -> None:
        self.notebook = dict(nbformat.read(self.file, as_version=4))
        await self._at_file("read")

    async def save(self) -> None:
        nbformat.write(nbformat.from_dict(self.notebook), self.file)
        await self._at_file("saved")

    async def delete(self, id: str) -> None:
        self.before = self.notebook["cells"]
        self.notebook["cells"] = [cell for cell in self.before if cell["id"] != id]
        self.deleted.append(id)
        self.dirty = True
        await self.announce()

    async def undo(self) -> None:
        """Undo the last deletion."""
        self.notebook["cells"] = self.before
        self.deleted.pop()
        await self.announce()

    async def type(self, id: str, source: str) -> None:
        """Write into a cell as the user does."""
        cells = self.notebook["cells"]
        self.notebook["cells"] = [
            {**cell, "source": source} if cell["id"] == id else cell for cell in cells
        ]
        self.dirty = True
        await self.announce()

    async def announce(self) -> None:
        file = {"number": self.number, "event": self.event, "executions": self.in_file}
        told = {"panel": self.name, "dirty": self.dirty, "file": file}
        told |= {"deleted": self.deleted, "deleted_cells": self.deleted}
        await self.page.announce(shown(NOTEBOOK, **told, only_agents=False))

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["op"] == "read":
            return {"status": "ok", "notebook": {**self.notebook, "nbformat_minor": 5}}
        if asked["op"] != "apply":
            return {"status": "moved"}
        request = msgspec.convert(asked, tab_messages.Apply)
        try:
            self.notebook = apply(self.notebook, request.changes, request.expected)
        except Moved:
            return {"status": "moved"}
        self.dirty = True
        return {"status": "ok"}

    async def _at_file(self, event: str) -> None:
        self.number += 1
        self.event, self.dirty, self.deleted = event, False, []
        self.in_file = [
            cell["metadata"]["agent_exec"]["execution_id"]
            for cell in self.notebook["cells"]
            if "agent_exec" in cell["metadata"]
        ]
        await self.announce()


class TabPage(Page):
    """The page of a tab, which announces that the tab is dirty before it answers."""

    tab: Tab

    async def say(self, message: Any) -> None:
        if message["op"] == "answer" and self.tab.dirty:
            await self.tab.announce()
            if self.tab.reads_again:
                await self.tab.read()
        await super().say(message)


@pytest.fixture
def open_tab(desk: Desk, jp_ws_fetch: Callable[..., Any]) -> Callable[[str], Any]:
    @asynccontextmanager
    async def open_tab(name: str) -> AsyncIterator[Tab]:
        tab = Tab(desk, name)
        tab.page = TabPage(await jp_ws_fetch(*CHANNEL), tab.answer)
        tab.page.tab = tab  # type: ignore[attr-defined]
        apps = desk.server.extension_manager.extension_apps["jupyter_agent_exec"]
        backend = next(iter(apps)).services.tabs
        await tab.read()
        async with asyncio.timeout(60):
            while name not in [each.shown.panel for each in backend._all_tabs()]:
                await asyncio.sleep(0)
        yield tab
        await tab.page.leave()

    return open_tab
