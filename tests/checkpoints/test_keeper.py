"""What a keeper does when processes are slow to end, or do not answer."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from jupyter_agent_exec.checkpoints import checkpoint, keeper
from jupyter_agent_exec.checkpoints.keeper import Keeper
from jupyter_agent_exec.errors import KernelUnavailable
from jupyter_agent_exec.kernels.channels import KernelDeath
from tests.asking import Agent
from tests.checkpoints.asking import turned_on, undone
from tests.sessions.living_notebook import Desk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

UNDONE = KernelDeath("undone", "It was undone.")


def keeper_of(desk: Desk, kernel_id: str) -> Keeper:
    [app] = desk.server.extension_manager.extension_apps["jupyter_agent_exec"]
    kept: Keeper = app.services._checkpoints._keepers[kernel_id]
    return kept


async def nothing(_: Sequence[str]) -> None: ...


async def test_an_undo_succeeds_although_the_process_before_is_slow_to_end(
    agent: Agent, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session, person = await turned_on(agent, desk)
    await person.has_run("x = 1")
    ran = await agent.run(session, "x = 2")
    monkeypatch.setattr(keeper, "END_SECONDS", 0.0)
    await undone(agent, ran)
    assert (await person.has_run("assert x == 1"))["status"] == "ok"


async def test_a_copy_that_does_not_go_on_is_ended_and_jupyter_starts_the_kernel_again(
    agent: Agent, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_id, session, _ = await turned_on(agent, desk)
    ran = await agent.run(session, "x = 2")
    kept = keeper_of(desk, kernel_id)
    (copy,) = kept.checkpoints

    async def record(_: Sequence[str]) -> None:
        copy.process.send_signal(signal.SIGSTOP)
        for module, name in ((checkpoint, "READY_SECONDS"), (keeper, "RETURN_SECONDS")):
            monkeypatch.setattr(module, name, 0.1)

    with pytest.raises(KernelUnavailable, match="did not answer"):
        await kept.undo(ran["id"], UNDONE, 2, nothing, record)
    copy.wait()
    assert copy.process.poll() is not None
    assert (await agent.run(session, "'x' in globals()"))["text"].startswith("False")


async def test_a_kernel_counts_as_alive_until_its_checkpoints_have_ended(
    agent: Agent, desk: Desk
) -> None:
    """The next process listens on their ports, and the server does not stand still meanwhile."""
    kernel_id, session, _ = await turned_on(agent, desk)
    await agent.run(session, "x = 1")
    kept = keeper_of(desk, kernel_id)
    manager: Any = kept.manager
    manager.stop_restarter()
    copy = kept.checkpoints.pop()
    kept._ending.append(copy)  # as one with much memory
    os.kill(manager.provisioner.process.pid, signal.SIGKILL)
    manager.provisioner.process.wait(30)
    assert await manager.is_alive()
    copy.end()
    copy.wait()
    assert not await manager.is_alive()


async def test_a_kernel_that_was_undone_lacks_its_exit_code_also_for_the_next_keeper(
    agent: Agent, desk: Desk
) -> None:
    kernel_id, session, _ = await turned_on(agent, desk)
    await undone(agent, await agent.run(session, "x = 1"))
    for is_on in (False, True):
        await agent.ask("PUT", f"kernels/{kernel_id}/checkpoints", {"enabled": is_on})
    await agent.run(session, "x = 2")
    kept = keeper_of(desk, kernel_id)
    assert kept.manager.provisioner.process is kept._process
    assert kept.manager.provisioner.process.lacks_exit_code
