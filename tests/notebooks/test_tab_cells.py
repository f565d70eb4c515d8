"""Finished cells in tabs, over a real WebSocket: saved, deleted, lost and put again."""

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
from tests.asking import Agent
from tests.notebooks.page import Page, shown
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target

CHANNEL = ("api", "agent-exec", "notebooks", "channel")


class Tab:
    """A notebook that is open in a JupyterLab page of its own."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.name = name
        self.file = desk.root / NOTEBOOK
        self.page: Page
        self.notebook: dict[str, Any] = {}
        self.dirty = False
        self.deleted: list[str] = []
        self.number = 0
        self.event = "read"
        self.in_file: list[str] = []

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
        self.notebook["cells"] = [cell for cell in self.notebook["cells"] if cell["id"] != id]
        self.deleted.append(id)
        self.dirty = True
        await self.announce()

    async def announce(self) -> None:
        file = {"number": self.number, "event": self.event, "executions": self.in_file}
        told = {"panel": self.name, "dirty": self.dirty, "deleted": self.deleted, "file": file}
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


async def becomes(agent: Agent, id: str, status: str) -> dict[str, Any]:
    """Wait until the document of an execution has a status."""
    async with asyncio.timeout(60):
        while True:
            document = (await agent.get(f"executions/{id}")).json["document"]
            if document is not None and document["status"] == status:
                return dict(document)


async def has(tab: Tab, *ids: str) -> None:
    """Wait until a tab has these cells of agents."""
    async with asyncio.timeout(60):
        while [id for id in tab.ids if id.startswith("x_")] != [*ids]:
            await asyncio.sleep(0)


async def test_a_cell_is_unsaved_until_its_tab_is_saved(
    agent: Agent, desk: Desk, open_tab: Any
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("one") as tab:
        done = await agent.run(session, "print(1)")
        document = await becomes(agent, done["id"], "unsaved")
        assert (document["via"], document["cell_id"]) == ("tab", done["id"])
        await agent.ask("POST", f"sessions/{session['id']}/close")
        await tab.save()
        assert await becomes(agent, done["id"], "written") == {**document, "status": "written"}


async def test_what_a_reload_lost_is_put_again_but_not_what_the_user_deleted(
    agent: Agent, desk: Desk, open_tab: Any
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("one") as tab:
        mine = tab.ids[0]
        ran = await agent.run(session, "a = 2", placement={"cell": mine})
        ids = [(await agent.run(session, f"print({n})"))["id"] for n in range(3)]
        for id in (ran["id"], *ids):
            await becomes(agent, id, "unsaved")
        await tab.delete(ids[1])
        gone = await becomes(agent, ids[1], "not_written")
        assert gone["cell_id"] is None
    async with open_tab("two") as tab:
        await has(tab, ids[0], ids[2])
        cells = {cell["id"]: cell for cell in tab.notebook["cells"]}
        assert cells[mine]["source"] == "a = 2"
        assert cells[ids[2]]["outputs"][0]["text"] == "2\n"
        await tab.save()
        for id in (ran["id"], ids[0], ids[2]):
            await becomes(agent, id, "written")
    desk.writes(NOTEBOOK, "a = 1")  # by another program
    async with open_tab("three") as tab:
        await tab.save()
        after = await agent.run(session, "print(3)")
        await has(tab, after["id"])


async def test_what_another_tab_overwrote_is_put_again(
    agent: Agent, desk: Desk, open_tab: Any
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("other") as other, open_tab("used") as tab:
        done = await agent.run(session, "print(1)")
        await becomes(agent, done["id"], "unsaved")
        holder, late = (tab, other) if done["id"] in tab.ids else (other, tab)
        await late.announce()
        await holder.save()
        await becomes(agent, done["id"], "written")
        assert done["id"] not in late.ids
        await late.save()  # the user chooses to overwrite the file
        await has(late, done["id"])
        await becomes(agent, done["id"], "unsaved")
        await late.delete(done["id"])
        await becomes(agent, done["id"], "not_written")
        await late.save()
        assert done["id"] not in late.ids
