"""Undo through the routes: the kernel is as it was before an execution (docs/how-to/undo.md)."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import nbformat
import pytest
from jupyter_client.session import Session

from tests.asking import Agent
from tests.checkpoints.asking import kept, refused, running_in, turned_on, undone
from tests.checkpoints.mutations import LASTING, MUTATIONS, source
from tests.kernels.kernel_server import Person
from tests.sessions.living_notebook import NOTEBOOK, Desk, entries, until_it_prints

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


class Apart:
    """The manager of a kernel, whose clients have a session of their own, as each tab has."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def client(self) -> Any:
        return self._manager.client(session=Session(key=self._manager.session.key))


async def sees(tab: Person, msg_id: str, text: str) -> None:
    """Wait until a tab shows what a cell printed; nothing else may be printed meanwhile."""
    while True:
        message = await tab.client.get_iopub_msg(timeout=30)
        # A print may come as two messages.
        if message["msg_type"] != "stream" or message["content"]["text"].strip() in ("agent", ""):
            continue
        assert (message["content"]["text"], message["parent_header"].get("msg_id")) == (
            text,
            msg_id,
        )
        return


async def test_undo_brings_everything_back_but_files_and_every_client_goes_on(
    agent: Agent, desk: Desk, jp_serverapp: Any
) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    both = LASTING + MUTATIONS
    assert (await person.has_run(source(both, "before")))["status"] == "ok"
    ran = await agent.run(session, source(both, "change"), timeout=60)
    assert ran["status"] == "ok", ran["text"]
    listed = (await kept(agent, kernel_id))["checkpoints"]
    assert [(each["execution_id"], each["undoable"]) for each in listed] == [(ran["id"], True)]
    assert listed[0]["bytes"] > 0
    told = await undone(agent, ran)
    assert (told["taken_back"], told["kernel"]["id"]) == ([ran["id"]], kernel_id)
    assert any("Files" in each for each in told["not_undone"])
    # The tab is connected still. An agent that connects again asks for IPython's banner, whose tip
    # draws a random number.
    assert (await person.has_run(source(both, "is_unchanged")))["status"] == "ok"
    look = await agent.run(session, "found", values={"found": "found"})
    found = look["values"]["found"]["json"]
    names = {each.name for each in MUTATIONS}
    assert {name for name in names if found.get(name) is False} == set()
    assert [found[each.name] for each in LASTING] == [False, False]
    assert (look["kernel"]["incarnation"], look["kernel"]["reason"]) == (2, "undone")

    record = (await agent.get(f"executions/{ran['id']}")).json
    cell = record["cell"]["metadata"]["agent_exec"]
    assert record["undone_at"] == cell["undone_at"]
    assert record["undone_by"] == cell["undone_by"]
    assert "undone" in [entry["type"] for entry in await entries(agent, session)]
    exported = await agent.get(f"sessions/{session['id']}/notebook")
    cells = nbformat.reads(exported.body.decode(), as_version=4).cells
    assert [bool(each.metadata.agent_exec.get("undone_at")) for each in cells] == [True, False]
    assert "no checkpoint" in await refused(agent, ran) or "newer" in await refused(agent, ran)


async def test_the_cell_in_the_notebook_says_that_it_was_undone(agent: Agent, desk: Desk) -> None:
    _, session, _ = await turned_on(agent, desk)
    ran = await agent.run(session, "x = 1")
    await undone(agent, ran)

    def told() -> bool:
        cells = nbformat.read(desk.root / NOTEBOOK, as_version=4).cells
        told = [each.metadata.agent_exec for each in cells]
        return [(each.execution_id, "undone_at" in each) for each in told] == [(ran["id"], True)]

    async with asyncio.timeout(30):
        while not await asyncio.to_thread(told):
            await asyncio.sleep(0.05)


async def test_undo_is_offered_until_the_user_runs_something(agent: Agent, desk: Desk) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    ran = await agent.run(session, "x = 1")
    await person.has_run("y = 2")
    assert "a user has run code" in await refused(agent, ran)
    assert [each["undoable"] for each in (await kept(agent, kernel_id))["checkpoints"]] == [False]
    trial = await agent.run(session, "x = 2", trial=True)
    assert trial["status"] == "ok"
    assert len((await kept(agent, kernel_id))["checkpoints"]) == 1
    assert (await agent.run(session, "x, y"))["text"] == "(1, 2)"
    told = await agent.ask("PUT", f"kernels/{kernel_id}/checkpoints", {"enabled": False})
    assert (told.json["enabled"], told.json["checkpoints"]) == (False, [])
    assert "no checkpoints are kept" in await refused(agent, ran)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cycles", [6, pytest.param(300, marks=pytest.mark.nightly)])
async def test_nothing_hangs_or_is_lost_however_often(
    agent: Agent, desk: Desk, cycles: int
) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    other = Person(Apart(desk.server.kernel_manager.get_kernel(kernel_id)))
    await other.client.wait_for_ready(timeout=60)
    for cycle in range(cycles):
        await person.has_run(f"x = {cycle}")
        is_running = cycle % 3 == 2
        body = "import time\nx = -1\nprint('agent', flush=True)"
        if is_running:
            body += "\ntime.sleep(60)"
        ran = await agent.run(session, body, wait=0 if is_running else 60)
        if is_running:
            await until_it_prints(agent, ran)
            await asyncio.sleep(random.random() * 0.02)
        told = await undone(agent, ran)
        assert told["taken_back"] == [ran["id"]], cycle
        after = (await agent.get(f"executions/{ran['id']}", wait=60)).json
        assert after["status"] == ("interrupted" if is_running else "ok"), cycle
        assert after["text"].startswith("agent"), cycle
        msg_id = person.runs("print('x', x)")
        assert (await person.reply(msg_id))["status"] == "ok", cycle
        await sees(other, msg_id, f"x {cycle}\n")
        assert (await agent.run(session, "x"))["text"].startswith(f"{cycle}"), cycle
    number = await agent.run(session, "import os; len(os.listdir('/proc/self/fd'))")
    assert int(number["text"].splitlines()[0]) < 400
    other.client.stop_channels()
    manager = desk.server.kernel_manager.get_kernel(kernel_id)
    group = manager.provisioner.pgid
    await desk.ask("DELETE", f"kernels/{kernel_id}")
    assert running_in(group) == []
