"""A kernel says that it is busy before it heeds interrupts; one that comes between is lost."""

from __future__ import annotations

from typing import Any

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, finished, notebook_target, until_status

LOOP = "while True: pass"


async def started(agent: Agent, session: dict[str, Any]) -> dict[str, Any]:
    return await agent.run(session, LOOP, placement="none", wait=0)


async def test_what_has_just_been_sent_is_interrupted_once_the_kernel_heeds_it(
    agent: Agent, slow_kernel: str
) -> None:
    session = await agent.open(target={"kind": "scratch", "kernel_name": slow_kernel})
    looping = await started(agent, session)
    await until_status(agent, looping, "running")
    await agent.ask("POST", f"executions/{looping['id']}/cancel")
    done = await finished(agent, looping)
    assert (done["status"], done["interrupt_ignored"]) == ("interrupted", False)


async def test_an_agents_loop_does_not_keep_a_persons_kernel(
    agent: Agent, desk: Desk, slow_kernel: str
) -> None:
    kernel_id = (await desk.opens(name=slow_kernel))["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    session = await agent.open(target=notebook_target())
    await person.has_run("kept = 1")
    looping = await started(agent, session)
    await until_status(agent, looping, "running")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await finished(agent, looping))["status"] == "interrupted"
    assert (await person.has_run("kept"))["status"] == "ok"
