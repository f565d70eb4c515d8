"""Programs that start a kernel by Jupyter's own routes: what they run there is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, entries, notebook_target

recorded = pytest.mark.parametrize("agent_exec_config", [{"record_people": "outputs"}])


async def sessions(agent: Agent) -> list[dict[str, Any]]:
    return list((await agent.get("sessions")).json["sessions"])


async def session_of(agent: Agent, kernel_id: str, status: str = "open") -> dict[str, Any]:
    """Wait for the session of a program's kernel; the test's timeout is the bound."""
    while True:
        for session in await sessions(agent):
            if (session["target"], session["status"]) == (target(kernel_id), status):
                return session


def target(kernel_id: str) -> dict[str, Any]:
    return {"kind": "kernel", "kernel_id": kernel_id}


async def what_ran(agent: Agent, session: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Wait until so much of a program's code is recorded."""
    while True:
        exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
        events = exported["metadata"]["agent_exec"]["events"]
        ran = [event for event in events if event["type"] == "person_ran"]
        if len(ran) == count:
            return ran


@recorded
async def test_what_a_program_runs_in_its_kernel_is_recorded_from_the_first(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    program = await desk.sits_at(kernel_id)
    await program.has_run("print('by a ' + 'program')")
    session = await session_of(agent, kernel_id)
    (ran,) = await what_ran(agent, session, 1)
    assert (ran["source_text"], ran["status"]) == ("print('by a ' + 'program')", "ok")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body.decode()
    assert "by a program" in journal
    assert (session["agent"]["name"], session["access"]) == ("Jupyter client", "full")
    assert session["username"]


@recorded
async def test_it_goes_on_after_a_restart_and_ends_with_the_kernel(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    session = await session_of(agent, kernel_id)
    await desk.ask("POST", f"kernels/{kernel_id}/restart")
    started: list[Any] = []
    while len(started) < 2:
        started = [e for e in await entries(agent, session) if e["type"] == "kernel_started"]
    program = await desk.sits_at(kernel_id)
    await program.has_run("'after'")
    (ran,) = await what_ran(agent, session, 1)
    assert ran["source_text"] == "'after'"
    await desk.ask("DELETE", f"kernels/{kernel_id}")
    closed = await session_of(agent, kernel_id, "closed")
    assert closed["close_reason"] == "closed"


@recorded
async def test_kernels_of_notebooks_and_of_agents_are_no_programs(agent: Agent, desk: Desk) -> None:
    await desk.opens()
    scratch = await agent.open()
    notebook = await agent.open(target=notebook_target())
    kernel_id = (await desk.ask("POST", "kernels"))["id"]  # which is told after theirs
    program = await session_of(agent, kernel_id)
    assert {session["id"] for session in await sessions(agent)} == {
        scratch["id"],
        notebook["id"],
        program["id"],
    }


async def test_programs_are_not_recorded_by_default(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    await (await desk.sits_at(kernel_id)).has_run("1")
    assert await sessions(agent) == []


@pytest.mark.parametrize("agent_exec_config", [{"record_people": "source", "max_sessions": 1}])
async def test_a_program_for_which_there_is_no_room_runs_all_the_same(
    agent: Agent, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await agent.open()
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    assert (await (await desk.sits_at(kernel_id)).has_run("1"))["status"] == "ok"
    while f"What is run in kernel {kernel_id} is not recorded" not in caplog.text:
        await asyncio.sleep(0.01)


@recorded
async def test_a_session_that_a_person_closes_is_not_opened_again(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    session = await session_of(agent, kernel_id)
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await (await desk.sits_at(kernel_id)).has_run("1"))["status"] == "ok"
    (left,) = await sessions(agent)
    assert (left["id"], left["status"]) == (session["id"], "closed")
