"""All agents paused by one person, and what they must ask for, over HTTP with real kernels."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.approvals.person_deciding import (
    approvals,
    approve,
    asks,
    grant,
    look,
    set_paused,
    set_policy,
    withdraw,
)
from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import entries, finished


async def test_a_pause_holds_what_waits_and_lets_what_runs_go_on(agent: Agent, gate: Gate) -> None:
    session, other = await agent.open(), await agent.open()
    running = await agent.run(session, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    paused = (await set_paused(agent, True))["paused"]
    assert paused["by"]
    waiting = [
        await agent.run(session, "order = 1", wait=0, queue_timeout=1),
        await agent.run(session, "order = 2", wait=0),
    ]
    elsewhere = await agent.run(other, "1", wait=0)
    for execution in (*waiting, elsewhere):
        assert execution["status"] == "queued"
        assert execution["waiting_for"]["who"] == "pause"
        assert execution["waiting_for"]["since"] == paused["at"]
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, running))["status"] == "ok"
    again = (await agent.get(f"executions/{waiting[0]['id']}", wait=1.2)).json
    assert again["status"] == "queued"  # its time in the queue does not run out
    assert (await set_paused(agent, False))["paused"] is None
    for execution in (*waiting, elsewhere):
        assert (await finished(agent, execution))["status"] == "ok"
    last = await agent.run(session, "order")
    assert last["text"] == "2"
    types = [entry["type"] for entry in await entries(agent, session)]
    assert [type for type in types if type.startswith("agents")] == [
        "agents_paused",
        "agents_resumed",
    ]


async def test_a_pause_asked_for_twice_is_one(agent: Agent) -> None:
    session = await agent.open()
    first = await set_paused(agent, True)
    assert (await set_paused(agent, True))["paused"] == first["paused"]
    late = await agent.open()
    await set_paused(agent, False)
    await set_paused(agent, False)
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types == ["opened", "kernel_started", "agents_paused", "agents_resumed"]
    types = [entry["type"] for entry in await entries(agent, late)]
    assert types == ["opened", "kernel_started", "agents_resumed"]


async def test_an_init_source_waits_for_the_end_of_a_pause(
    agent: Agent,
) -> None:
    await set_paused(agent, True)
    session = await agent.open(init_source="x = 1")
    execution = await agent.run(session, "x", wait=0)
    assert execution["waiting_for"]["who"] == "pause"
    await set_paused(agent, False)
    assert (await finished(agent, execution))["text"] == "1"


async def test_what_waits_in_a_pause_can_be_cancelled(agent: Agent) -> None:
    session = await agent.open()
    await set_paused(agent, True)
    execution = await agent.run(session, "1", wait=0)
    await agent.ask("POST", f"executions/{execution['id']}/cancel")
    assert (await finished(agent, execution))["status"] == "cancelled"
    await set_paused(agent, False)
    assert (await agent.run(session, "2"))["status"] == "ok"


async def test_decisions_may_be_made_in_a_pause(agent: Agent) -> None:
    await set_policy(agent, scratch="always")
    session = await agent.open()
    execution = await asks(agent, session, "1")
    await set_paused(agent, True)
    assert (await look(agent, execution))["waiting_for"]["who"] == "approval"
    assert (await approve(agent, execution)).status == 200
    approved = await look(agent, execution)
    assert (approved["status"], approved["waiting_for"]["who"]) == ("queued", "pause")
    await set_paused(agent, False)
    assert (await finished(agent, execution))["status"] == "ok"


@pytest.mark.parametrize("third_ends", ["ok", "cancelled"])
async def test_the_time_in_the_queue_begins_with_the_approval(
    agent: Agent, gate: Gate, third_ends: str
) -> None:
    await set_policy(agent, scratch="always")
    session = await agent.open()
    first = await asks(agent, session, gate.source)
    second = await asks(agent, session, "1", queue_timeout=0.2)
    third = await asks(agent, session, "2")
    await approve(agent, first)
    await asyncio.to_thread(gate.wait_until_it_runs)
    await approve(agent, second)
    looked = (await agent.get(f"executions/{second['id']}", wait=0.5)).json
    assert looked["status"] == "queued"  # one of its session asks
    if third_ends == "ok":
        await approve(agent, third)
    else:
        await agent.ask("POST", f"executions/{third['id']}/cancel")
    assert (await finished(agent, second))["status"] == "timed_out"
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, third))["status"] == third_ends


async def test_everybody_hears_of_it(agent: Agent, jp_serverapp: Any) -> None:
    heard: list[dict[str, Any]] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        heard.append(data)

    schema = "https://schema.jupyter.org/jupyter_agent_exec/activity/v1"
    jp_serverapp.event_logger.add_listener(schema_id=schema, listener=listen)
    await set_policy(agent, scratch="always")
    session = await agent.open()
    execution = await asks(agent, session, "1")

    async def until(**wanted: Any) -> None:
        while not any(wanted.items() <= event.items() for event in heard):
            await asyncio.sleep(0)

    await until(action="execution", execution_id=execution["id"], status="awaiting_approval")
    await until(action="approvals")
    heard.clear()
    await grant(agent, execution)
    await until(action="approvals")
    await until(action="session", session_id=session["id"])
    heard.clear()
    await withdraw(agent, session)
    await until(action="session", session_id=session["id"])
    heard.clear()
    await set_paused(agent, True)
    await until(action="approvals")
    assert all("session_id" in event for event in heard if event["action"] != "approvals")


async def test_a_policy_counts_for_what_comes_and_what_asks_goes_on_asking(agent: Agent) -> None:
    session = await agent.open()
    assert (await agent.run(session, "1"))["approval"] is None
    answered = await set_policy(agent, scratch="always")
    assert answered.json["policy"] == {
        "scratch": "always",
        "notebook": "none",
        "kernel": "none",
        "edits": "apply",
        "forced": [],
    }
    execution = await asks(agent, session, "2")
    await set_policy(agent, scratch="none")
    assert (await look(agent, execution))["status"] == "awaiting_approval"
    behind = await agent.run(session, "3", wait=0)
    assert behind["status"] == "queued"
    await approve(agent, execution)
    assert (await finished(agent, behind))["status"] == "ok"


@pytest.mark.parametrize("agent_exec_config", [{"forced_approval": {"notebook": "always"}}])
async def test_what_is_forced_cannot_be_changed(agent: Agent) -> None:
    policy = (await approvals(agent))["policy"]
    assert (policy["notebook"], policy["forced"]) == ("always", ["notebook"])
    answered = await set_policy(agent, scratch="first", notebook="none")
    assert (answered.status, answered.json["code"]) == (400, "invalid_request")
    assert answered.json["detail"]["field"] == "notebook"
    assert (await approvals(agent))["policy"] == policy  # nothing half done


async def test_a_policy_is_kept_and_in_the_ledger(agent: Agent, history_dir: Path) -> None:
    await set_policy(agent, kernel="first")
    await set_policy(agent, kernel="first")
    kept = json.loads((history_dir / "approval-policy.json").read_bytes())
    assert kept == {"kernel": "first"}
    (ledger,) = await asyncio.to_thread(lambda: list(history_dir.glob("ledger-*.jsonl")))
    told = [json.loads(line)["entry"] for line in ledger.read_text().splitlines()]
    (entry,) = [entry for entry in told if entry["type"] == "policy_set"]
    assert entry["policy"] == {
        "scratch": "none",
        "notebook": "none",
        "kernel": "first",
        "edits": "apply",
    }
    assert entry["by"]["kind"] == "person"


@pytest.mark.parametrize("body", [{"scratch": "sometimes"}, {"scratch": "rules"}, {"minutes": -1}])
async def test_bad_words_change_nothing(agent: Agent, body: dict[str, Any]) -> None:
    before = await approvals(agent)
    answered = await agent.ask("PUT", "approvals/policy", body)
    assert (answered.status, answered.json["code"]) == (400, "invalid_request")
    assert await approvals(agent) == before
