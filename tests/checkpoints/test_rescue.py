"""A kernel that dies comes back with the variables of its checkpoint."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from tests.asking import Agent
from tests.checkpoints.asking import kept, turned_on
from tests.sessions.living_notebook import Desk, entries

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


async def test_a_kernel_that_dies_comes_back_with_its_variables(agent: Agent, desk: Desk) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    manager = desk.server.kernel_manager.get_kernel(kernel_id)
    restarts: asyncio.Queue[None] = asyncio.Queue()  # from which tabs learn that no cell runs
    manager.add_restart_callback(lambda: restarts.put_nowait(None), "restart")
    await person.has_run("x = 1")
    crash = "import ctypes; x = 2; ctypes.string_at(0)"
    died = await agent.run(session, crash, wait=60)
    assert died["status"] == "kernel_died"
    assert "its variables are those of" in died["reason"]
    assert "before cell [2]" in died["reason"]
    assert (await person.has_run("assert x == 1"))["status"] == "ok"
    after = await agent.run(session, "x")
    assert after["text"].startswith("1")
    assert (after["kernel"]["incarnation"], after["kernel"]["reason"]) == (2, "rescued")
    kinds = {entry["type"]: entry for entry in await entries(agent, session)}
    assert kinds["kernel_ended"]["reason"] == "rescued"
    assert restarts.qsize() == 1
    await restarts.get()

    # The kernel that took the place can die, too, also when nothing runs.
    manager.provisioner.process.send_signal(signal.SIGKILL)
    await asyncio.wait_for(restarts.get(), 60)
    assert (await person.has_run("assert x == 1"))["status"] == "ok"
    assert (await agent.run(session, "x"))["text"].startswith("1")
    told = await kept(agent, kernel_id)
    assert (len(told["checkpoints"]), told["rescued"]["execution_count"]) == (1, 3)


async def test_a_kernel_that_is_restarted_or_exits_is_not_brought_back(
    agent: Agent, desk: Desk
) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    await person.has_run("x = 1")
    await agent.run(session, "x = 2")
    await desk.ask("POST", f"kernels/{kernel_id}/restart")
    assert (await agent.run(session, "'x' in globals()"))["text"].startswith("False")
    told = await kept(agent, kernel_id)
    assert (len(told["checkpoints"]), told["rescued"]) == (1, None)  # of the new one
    await agent.run(session, "x = 3")
    ended = await agent.run(session, "exit()", wait=60)
    assert ended["status"] in ("ok", "kernel_died")
    assert (await agent.run(session, "'x' in globals()"))["text"].startswith("False")
