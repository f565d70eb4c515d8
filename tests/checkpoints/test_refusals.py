"""Where a kernel cannot have checkpoints, and what a user reads of that."""

from __future__ import annotations

import sys

import pytest

from tests.asking import Agent
from tests.checkpoints.asking import kept, refused, turned_on, undone
from tests.sessions.living_notebook import Desk, notebook_target

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

REFUSED = {
    "the thread 'mine' of __main__ would be missing": (
        "import threading; event = threading.Event()\ndef waits(): event.wait()\n"
        "thread = threading.Thread(target=waits, name='mine'); thread.start()",
        "event.set(); thread.join()",
    ),
    "an open network connection": (
        "import socket; s = socket.create_connection(('127.0.0.1', {port}))", "s.close()",
    ),
    "listens on port": ("s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()", "s.close()"),
    "has a database or another file locked": (
        "import fcntl; f = open('locked', 'w'); fcntl.lockf(f, fcntl.LOCK_EX)", "f.close()",
    ),
    "processes of multiprocessing": (
        "import multiprocessing, time\n"
        "child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "child.start()",
        "child.kill(); child.join()",
    ),
}  # fmt: skip
"""What a user reads, what causes it, and what ends it."""


async def test_what_a_copy_would_lack_is_named(agent: Agent, desk: Desk, jp_http_port: int) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    for words, (cause, end) in REFUSED.items():
        await person.has_run(cause.replace("{port}", str(jp_http_port)))
        ran = await agent.run(session, "1")
        assert ran["status"] == "ok"
        told = await kept(agent, kernel_id)
        assert told["reason"].startswith("Undo is not available here: "), told
        assert words in told["reason"]
        assert (told["available"], told["checkpoints"]) == (False, [])
        assert "no checkpoint from before" in await refused(agent, ran)
        await person.has_run(end)
    # A pool of threads that has nothing to do gets new ones.
    await person.has_run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(1); pool.submit(int).result()"
    )
    ran = await agent.run(session, "x = 1")
    assert (await kept(agent, kernel_id))["reason"] is None
    await undone(agent, ran)
    answer = await person.has_run("assert pool.submit(int).result(10) == 0 and 'x' not in dir()")
    assert answer["status"] == "ok"


@pytest.mark.parametrize("agent_exec_config", [{"checkpoints_per_kernel": 20}])
async def test_an_older_execution_takes_back_what_came_after_it(agent: Agent, desk: Desk) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    await person.has_run("x = -1")
    ran = [await agent.run(session, f"x = {number}") for number in range(20)]
    ids = [each["id"] for each in ran]
    told = await kept(agent, kernel_id)
    assert (told["reason"], len(told["checkpoints"])) == (None, 20)
    assert (await undone(agent, ran[18]))["taken_back"] == ids[18:]
    assert (await undone(agent, ran[0]))["taken_back"] == ids[:18]
    assert (await person.has_run("assert x == -1"))["status"] == "ok"


@pytest.mark.parametrize("agent_exec_config", [{"checkpoint_memory_share": 0.0}])
async def test_a_checkpoint_is_not_made_without_the_memory_for_it(agent: Agent, desk: Desk) -> None:
    kernel_id, session, _ = await turned_on(agent, desk)
    await agent.run(session, "x = 1")
    assert "of free memory" in (await kept(agent, kernel_id))["reason"]


@pytest.mark.parametrize("agent_exec_config", [{"allow_checkpoints": False}])
async def test_an_administrator_forbids_checkpoints(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    path = f"kernels/{kernel_id}/checkpoints"
    told = await agent.ask("PUT", path, {"enabled": True})
    assert (told.status, told.json["code"]) == (409, "undo_unavailable")
    assert "switched off checkpoints" in told.json["message"]
    assert (await kept(agent, kernel_id))["available"] is False
    session = await agent.open(target=notebook_target())
    ran = await agent.run(session, "x = 1")
    assert "no checkpoints are kept" in await refused(agent, ran)
    assert (await agent.get("kernels/none/checkpoints")).json["code"] == "kernel_not_found"
