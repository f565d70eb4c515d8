"""Finished cells in tabs, over a real WebSocket: saved, deleted, lost and put again."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.notebooks.backends.tab import CellReport
from jupyter_agent_exec.records import CellWritten
from jupyter_agent_exec.sessions import activity
from tests.asking import Agent
from tests.notebooks.tabs import Tab
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target


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


async def test_a_deletion_that_the_user_undoes_is_undone_in_the_record(
    agent: Agent, desk: Desk, open_tab: Any
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("one") as tab:
        done = await agent.run(session, "print(1)")
        document = await becomes(agent, done["id"], "unsaved")
        for _ in range(2):
            await tab.delete(done["id"])
            gone = await becomes(agent, done["id"], "not_written")
            assert gone["cell_id"] is None
            await tab.undo()
            assert await becomes(agent, done["id"], "unsaved") == document
        url = f"executions/{done['id']}/discard"
        discarded = (await agent.ask("POST", url)).json["document"]
        assert discarded == {**document, "outputs": "discarded"}
        await tab.save()
        assert await becomes(agent, done["id"], "written") == {**discarded, "status": "written"}
        await tab.delete(done["id"])
        await tab.save()
        after = await agent.run(session, "print(2)")
        await has(tab, after["id"])
        await becomes(agent, done["id"], "written")


@pytest.mark.parametrize("by", ["save", "undo"])
async def test_a_tab_that_is_saved_or_undone_while_code_runs_has_its_end_unsaved(
    agent: Agent, desk: Desk, open_tab: Any, by: str
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("one") as tab:
        source = (
            "import os, time\nwhile not os.path.exists('go'):\n    print(1, flush=True)\n"
            "    time.sleep(0.01)"
        )
        begun = await agent.run(session, source, wait=0)
        await has(tab, begun["id"])
        if by == "save":
            await tab.save()
        else:
            await tab.delete(begun["id"])
            await becomes(agent, begun["id"], "not_written")
            await tab.undo()
        (desk.root / "go").touch()
        document = await becomes(agent, begun["id"], "unsaved")
        assert document["cell_id"] == begun["id"]
        last = await agent.run(session, "print(2)")
        await becomes(agent, last["id"], "unsaved")
        assert await becomes(agent, begun["id"], "unsaved") == document
        await tab.save()
        await becomes(agent, begun["id"], "written")


async def test_what_is_saved_as_the_server_stops_is_recorded(
    agent: Agent,
    desk: Desk,
    open_tab: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    apps = desk.server.extension_manager.extension_apps["jupyter_agent_exec"]
    services = next(iter(apps)).services
    stopped: asyncio.Future[asyncio.Task[None]] = asyncio.Future()
    async with open_tab("one") as tab:
        done = await agent.run(session, "print(1)")
        await becomes(agent, done["id"], "unsaved")
        await agent.ask("POST", f"sessions/{session['id']}/close")

        announced = services._tab_edits.announced

        def stop(report: CellReport) -> None:
            announced(report)
            stopped.set_result(asyncio.create_task(services.stop()))

        monkeypatch.setattr(services._tab_edits, "announced", stop)
        await tab.save()
        await (await asyncio.wait_for(stopped, 30))
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
    journal = services.history.folder / "sessions" / session["id"] / "journal.jsonl"
    told = [line.entry for line in lines(journal) if isinstance(line.entry, CellWritten)]
    assert told[-1].document.status == "written"


@pytest.mark.parametrize(("by", "status"), [("save", "written"), ("delete", "not_written")])
async def test_what_becomes_of_a_cell_that_an_earlier_server_left_unsaved_is_recorded(
    agent: Agent, desk: Desk, open_tab: Any, by: str, status: str
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    async with open_tab("one") as tab:
        done = await agent.run(session, "print(1)")
        await becomes(agent, done["id"], "unsaved")
        apps = desk.server.extension_manager.extension_apps["jupyter_agent_exec"]
        next(iter(apps)).services._writer.in_tabs.clear()  # no server knows what one before it did
        await (tab.save() if by == "save" else tab.delete(done["id"]))
        await becomes(agent, done["id"], status)


async def test_a_cell_that_is_written_after_the_end_is_an_event_of_its_execution(
    agent: Agent, desk: Desk, jp_serverapp: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "MERGE_DELAY", 0)
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    ended, written = asyncio.Event(), asyncio.Event()

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("status") == "ok":
            ended.set()
        elif ended.is_set() and data["action"] == "execution":
            written.set()

    jp_serverapp.event_logger.add_listener(schema_id=activity.EVENTS_SCHEMA_ID, listener=listen)
    await agent.run(session, "1")
    await asyncio.wait_for(written.wait(), 30)


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


async def test_what_the_user_deletes_before_it_is_put_again_stays_deleted(
    agent: Agent, desk: Desk, open_tab: Any
) -> None:
    desk.writes(NOTEBOOK, "a = 1")
    session = await agent.open(target=notebook_target())
    apps = desk.server.extension_manager.extension_apps["jupyter_agent_exec"]
    writer = next(iter(apps)).services._writer
    async with open_tab("one"):
        id = (await agent.run(session, "print(1)"))["id"]
        await becomes(agent, id, "unsaved")
    async with AsyncExitStack() as stack:
        async with writer.lock(id):  # nothing is put before the tab has told of the deletion
            tab = await stack.enter_async_context(open_tab("two"))
            await tab.delete(id)
            async with asyncio.timeout(60):
                while writer.in_tabs[id].deleted_in is None:
                    await asyncio.sleep(0)
        await becomes(agent, id, "not_written")
        after = await agent.run(session, "print(2)")
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
