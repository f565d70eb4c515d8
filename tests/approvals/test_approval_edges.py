"""Approval where something goes wrong, or two things happen at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.approvals.person_deciding import (
    approve,
    asking_ids,
    asks,
    grant,
    look,
    reject,
    set_paused,
    until,
    withdraw,
)
from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import Desk, entries, finished


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "always", "kernel": "always"}}


async def test_what_was_accepted_under_a_grant_asks_if_that_ended_before_its_turn(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open()
    opening = await asks(agent, session, "0")
    await grant(agent, opening)
    await finished(agent, opening)
    first = await agent.run(session, gate.source, wait=0)
    second = await agent.run(session, "1", wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    assert second["status"] == "queued"
    await withdraw(agent, session)
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, first))["status"] == "ok"
    await until(agent, second, "awaiting_approval")
    await approve(agent, second)
    assert (await finished(agent, second))["status"] == "ok"


async def test_a_pause_comes_before_a_turn_that_is_being_waited_for(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    target = {"kind": "kernel", "kernel_id": kernel_id}
    first, second = await agent.open(target=target), await agent.open(target=target)
    running = await asks(agent, first, gate.source)
    await approve(agent, running)
    await asyncio.to_thread(gate.wait_until_it_runs)
    waiting = await asks(agent, second, "1")
    await approve(agent, waiting)
    assert (await until(agent, waiting, "queued"))["waiting_for"]["who"] == "agent"
    await set_paused(agent, True)
    assert (await look(agent, waiting))["waiting_for"]["who"] == "pause"
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, running))["status"] == "ok"
    looked = (await agent.get(f"executions/{waiting['id']}", wait=0.3)).json
    assert looked["status"] == "queued"
    await set_paused(agent, False)
    assert (await finished(agent, waiting))["status"] == "ok"


async def test_a_kernel_that_the_person_changes_is_asked_for_anew(agent: Agent, desk: Desk) -> None:
    jupyter_session = await desk.opens()
    kernel_id = jupyter_session["kernel"]["id"]
    session = await agent.open(target={"kind": "kernel", "kernel_id": kernel_id})
    execution = await asks(agent, session, "1")
    assert execution["approval"]["kernel_id"] == kernel_id
    await desk.ask("POST", f"kernels/{kernel_id}/restart")
    while (await agent.get(f"sessions/{session['id']}")).json["kernel"] is not None:
        pass
    refused = await approve(agent, execution)
    assert (refused.status, refused.json["code"]) == (409, "approval_changed")
    assert refused.json["detail"]["incarnation"] == 2
    again = await look(agent, execution)
    assert again["approval"]["kernel_id"] is None
    await approve(agent, again)
    assert (await finished(agent, execution))["status"] == "ok"


async def test_an_edited_source_that_asks_anew_is_what_asks(agent: Agent) -> None:
    session = await agent.open()
    first = await asks(agent, session, "import os; os._exit(1)")
    second = await asks(agent, session, "'asked'")
    await approve(agent, second, source="'edited'")
    await approve(agent, first)
    again = await until(agent, second, "awaiting_approval")
    assert again["source"] == "'edited'"
    assert again["approval"]["asked_source"] is None
    stale = await approve(agent, second)
    assert stale.json["code"] == "approval_changed"
    await approve(agent, again)
    done = await finished(agent, second)
    assert done["text"].startswith("'edited'")
    assert done["approval"]["asked_source"] == "'asked'"
    recorded = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"][1]
    assert recorded["approval"] == done["approval"]


async def test_deciding_and_cancelling_at_the_same_instant_end_in_one_way(agent: Agent) -> None:
    session = await agent.open()
    for decide in (approve, reject):
        execution = await asks(agent, session, "1")
        decided, cancelled = await asyncio.gather(
            decide(agent, execution),
            agent.ask("POST", f"executions/{execution['id']}/cancel"),
        )
        done = await finished(agent, execution)
        assert done["status"] in ("ok", "cancelled", "rejected", "interrupted")
        assert {decided.status, cancelled.status} <= {200, 409}
        assert await asking_ids(agent) == []
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types.count("finished") == 2


async def test_the_stream_tells_of_a_decision_at_once(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "1")
    following = asyncio.ensure_future(agent.get(f"executions/{execution['id']}/stream"))
    holding = asyncio.ensure_future(agent.get(f"executions/{execution['id']}", wait=60))
    await reject(agent, execution, "No.")
    events = (await following).body.decode()
    assert events.rstrip().rpartition("event: ")[2].startswith("finished")
    assert '"status":"rejected"' in events
    assert (await holding).json["status"] == "rejected"
