"""Sessions that nobody uses any more: they are closed, and say so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import Desk, notebook_target

IDLE = {"session_idle_timeout": 0.2, "kernel_idle_timeout": 0.1}


async def closed(agent: Agent, session: dict[str, Any]) -> dict[str, Any]:
    """Wait until a session is closed; the test's timeout is the bound."""
    while (looked := (await agent.get(f"sessions/{session['id']}")).json)["status"] == "open":
        await asyncio.sleep(0.01)
    return looked


@pytest.mark.parametrize("agent_exec_config", [{**IDLE, "max_sessions": 2}])
async def test_sessions_that_nobody_uses_make_room_for_others(agent: Agent) -> None:
    left = [await agent.open() for _ in range(2)]
    for session in left:
        assert (await closed(agent, session))["close_reason"] == "idle"
    await agent.open()
    refused = await agent.ask("POST", f"sessions/{left[0]['id']}/executions", {"source": "1"})
    assert (refused.status, refused.json["code"]) == (409, "session_closed")
    assert refused.json["detail"]["reason"] == "idle"
    assert "was not used for a long time. Open another" in refused.json["message"]


@pytest.mark.parametrize("agent_exec_config", [IDLE])
async def test_a_session_in_a_persons_notebook_is_closed_and_their_kernel_lives_on(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    session = await agent.open(target=notebook_target())
    assert (await closed(agent, session))["close_reason"] == "idle"
    assert kernel_id in desk.server.kernel_manager


@pytest.mark.parametrize("agent_exec_config", [{**IDLE, "session_idle_timeout": 1}])
async def test_what_runs_keeps_its_session_open(agent: Agent, gate: Gate) -> None:
    busy = await agent.open()
    runs = await agent.run(busy, gate.source, wait=0)
    await closed(agent, await agent.open())
    await closed(agent, await agent.open())
    assert (await agent.get(f"sessions/{busy['id']}")).json["status"] == "open"
    await asyncio.to_thread(gate.wait_until_it_runs)
    await asyncio.to_thread(gate.let_it_go_on)
    done = (await agent.get(f"executions/{runs['id']}", wait=30)).json
    assert (done["status"], done["text"]) == ("ok", "went on\n")
    await closed(agent, busy)


@pytest.mark.parametrize(
    "agent_exec_config", [{"session_idle_timeout": 0.1, "kernel_idle_timeout": 0}]
)
async def test_a_kernel_of_its_own_keeps_a_session_open(agent: Agent, desk: Desk) -> None:
    kept = await agent.open()
    await agent.run(kept, "x = 1")
    await desk.opens()
    await closed(agent, await agent.open(target=notebook_target()))
    await closed(agent, await agent.open(target=notebook_target()))
    assert (await agent.run(kept, "x"))["text"] == "1"


@pytest.mark.parametrize(
    "agent_exec_config",
    [{"session_idle_timeout": 0, "kernel_idle_timeout": 0.05, "max_sessions": 1}],
)
async def test_the_operator_can_have_sessions_stay_and_a_refusal_names_what_to_close(
    agent: Agent,
) -> None:
    session = await agent.open()
    while (await agent.get(f"sessions/{session['id']}")).json["kernel"] is not None:
        await asyncio.sleep(0.01)
    refused = await agent.ask("POST", "sessions", {"agent": {"name": "another"}})
    assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
    assert refused.json["detail"] == {"limit": 1, "sessions": [session["id"]]}
    assert session["id"] in refused.json["message"]
    assert "by itself" not in refused.json["message"]
