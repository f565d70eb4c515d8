"""Several executions that are asked for at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.asking import Agent, Answered, Send
from tests.server_process import Gate, server_process
from tests.sessions.living_notebook import Desk, entries, notebook_target


async def ask_steps(
    agent: Agent, session: dict[str, Any], *sources: str, key: str | None = None, **asked: Any
) -> Answered:
    steps = [{"source": source} for source in sources]
    headers = {} if key is None else {"Idempotency-Key": key}
    path = f"sessions/{session['id']}/steps"
    return await agent.ask("POST", path, {"steps": steps, **asked}, headers=headers)


def statuses(answered: Answered) -> list[str]:
    return [each["status"] for each in answered.json["executions"]]


async def executions(agent: Agent, session: dict[str, Any]) -> list[dict[str, Any]]:
    found = await agent.get(f"sessions/{session['id']}/executions")
    return list(found.json["executions"])


async def test_steps_run_in_order_each_as_an_execution_of_its_own(agent: Agent) -> None:
    session = await agent.open()
    answered = await ask_steps(agent, session, "x = 1", "x += 1", "print(x)", wait=60)
    assert (answered.status, answered.json["finished"]) == (201, True)
    told = answered.json["executions"]
    assert [(e["seq"], e["status"], e["text"].strip()) for e in told] == [
        (1, "ok", ""),
        (2, "ok", ""),
        (3, "ok", "2"),
    ]
    first = told[0]["id"]
    assert [e["step"] for e in told] == [
        {"first": first, "number": number, "of": 3} for number in (1, 2, 3)
    ]
    kinds = [entry["type"] for entry in await entries(agent, session)]
    assert kinds[2:] == ["accepted"] * 3 + ["dispatched", "finished"] * 3


async def test_what_comes_after_a_step_that_fails_is_cancelled_and_says_why(agent: Agent) -> None:
    session = await agent.open()
    answered = await ask_steps(agent, session, "x = 1", "1 / 0", "x = 2", "x = 3", wait=60)
    assert (answered.status, answered.json["finished"]) == (201, True)
    assert statuses(answered) == ["ok", "error", "cancelled", "cancelled"]
    reasons = {each["reason"] for each in answered.json["executions"][2:]}
    assert reasons == {"It was not run: step 2 ended with error."}
    assert (await agent.run(session, "x", wait=60))["text"].strip() == "1"


async def test_steps_may_go_on_after_one_that_fails(agent: Agent) -> None:
    session = await agent.open()
    answered = await ask_steps(
        agent, session, "x = 1", "1 / 0", "print(x)", wait=60, stop_on_error=False
    )
    assert statuses(answered) == ["ok", "error", "ok"]


async def test_nothing_else_of_the_session_gets_in_between(agent: Agent, tmp_path: Path) -> None:
    session, gate = await agent.open(), Gate(tmp_path, "between")
    await agent.run(session, "order = []", wait=60)
    await agent.run(session, gate.wait, wait=0)
    steps = await ask_steps(agent, session, *["order.append('step')"] * 3, wait=0)
    assert (steps.status, steps.json["finished"]) == (202, False)
    other = await agent.run(session, "order.append('other')", wait=0)
    gate.let_it_on()
    await agent.get(f"executions/{other['id']}", wait=60)
    done = await agent.run(session, "order", wait=60)
    assert done["text"].strip() == "['step', 'step', 'step', 'other']"


WRONG_STEPS: list[tuple[dict[str, Any], str]] = [
    ({}, "steps[2].source"),
    ({"source": 1}, "steps[2].source"),
    ({"source": "1", "timeout": -1}, "steps[2].timeout"),
    ({"source": "1", "timeout": 1e6}, "steps[2].timeout"),
    ({"source": "1", "placement": {"cell": "x"}}, "steps[2].placement"),
    ({"source": "1", "wait": 1}, "steps[2].wait"),
]


@pytest.mark.parametrize("agent_exec_config", [{"max_timeout": 1000}])
async def test_what_is_wrong_with_a_step_names_it_and_nothing_runs(agent: Agent) -> None:
    session = await agent.open()
    path, good = f"sessions/{session['id']}/steps", {"source": "1"}
    for step, field in WRONG_STEPS:
        refused = await agent.ask("POST", path, {"steps": [good, good, step]})
        assert (refused.status, refused.json["code"]) == (400, "invalid_request"), step
        assert refused.json["detail"]["field"] == field
        assert refused.json["message"].startswith(field)
        assert await executions(agent, session) == []


@pytest.mark.parametrize("count", [0, 101])
async def test_there_are_one_to_a_hundred_steps(agent: Agent, count: int) -> None:
    session = await agent.open()
    refused = await ask_steps(agent, session, *["1"] * count)
    assert (refused.status, refused.json["detail"]["field"]) == (400, "steps")


@pytest.mark.parametrize("agent_exec_config", [{"max_queued": 3}])
async def test_the_limit_of_what_waits_counts_all_steps(agent: Agent) -> None:
    session = await agent.open()
    refused = await ask_steps(agent, session, "1", "2", "3", "4")
    assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
    assert await executions(agent, session) == []
    assert statuses(await ask_steps(agent, session, "1", "2", "3", wait=60)) == ["ok"] * 3


async def test_asked_again_with_the_same_key_the_same_executions_come_back(agent: Agent) -> None:
    session = await agent.open()
    first, second = await asyncio.gather(
        ask_steps(agent, session, "x = 0", "x += 1", key="k", wait=60),
        ask_steps(agent, session, "x = 0", "x += 1", key="k", wait=59),
    )
    ids = [each["id"] for each in first.json["executions"]]
    assert [each["id"] for each in second.json["executions"]] == ids
    assert (await agent.run(session, "x", wait=60))["text"].strip() == "1"
    other = await ask_steps(agent, session, "x = 0", key="k")
    assert (other.status, other.json["code"]) == (422, "idempotency_conflict")
    single = await agent.ask(
        "POST",
        f"sessions/{session['id']}/executions",
        {"source": "x = 0"},
        headers={"Idempotency-Key": "k"},
    )
    assert (single.status, single.json["code"]) == (422, "idempotency_conflict")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    closed = await ask_steps(agent, session, "x = 0", "x += 1", key="k", wait=60)
    assert [each["id"] for each in closed.json["executions"]] == ids


async def test_cancelling_a_step_stops_those_behind_it(agent: Agent, tmp_path: Path) -> None:
    session, gate = await agent.open(), Gate(tmp_path, "cancel")
    steps = await ask_steps(agent, session, gate.wait, "1", "2", "3", wait=0)
    third = steps.json["executions"][2]
    await agent.ask("POST", f"executions/{third['id']}/cancel")
    gate.let_it_on()
    last = steps.json["executions"][1]
    await agent.get(f"executions/{last['id']}", wait=60)
    found = await executions(agent, session)
    assert [each["status"] for each in found] == ["ok", "ok", "cancelled", "cancelled"]
    assert found[3]["reason"] == "It was not run: step 3 ended with cancelled."


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "always"}}])
async def test_each_step_asks_for_approval_and_a_rejection_stops_those_behind(
    agent: Agent,
) -> None:
    session = await agent.open()
    steps = await ask_steps(agent, session, "1", "2", "3", wait=0)
    assert statuses(steps) == ["awaiting_approval"] * 3
    first, second, third = steps.json["executions"]
    await agent.ask(
        "POST",
        f"executions/{first['id']}/approve",
        {"source_sha256": first["source_sha256"]},
    )
    await agent.ask("POST", f"executions/{second['id']}/reject", {})
    await agent.get(f"executions/{third['id']}", wait=60)
    await agent.get(f"executions/{first['id']}", wait=60)
    found = await executions(agent, session)
    assert [each["status"] for each in found] == ["ok", "rejected", "cancelled"]


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "first"}}])
async def test_with_first_the_steps_wait_for_what_becomes_of_the_first(agent: Agent) -> None:
    session = await agent.open()
    steps = await ask_steps(agent, session, "1", "2", wait=0)
    assert statuses(steps) == ["awaiting_approval", "queued"]
    first, second = steps.json["executions"]
    await agent.ask(
        "POST", f"executions/{first['id']}/approve", {"source_sha256": first["source_sha256"]}
    )
    assert (await agent.get(f"executions/{second['id']}", wait=60)).json["status"] == "ok"


async def test_each_step_is_a_cell_of_the_notebook_in_order(agent: Agent, desk: Desk) -> None:
    desk.writes("sales.ipynb", "before")
    session = await agent.open(target=notebook_target())
    steps = await ask_steps(agent, session, "a = 1", "b = 2", wait=60)
    cells = (await agent.get("notebooks/sales.ipynb/cells")).json["cells"]
    ids = [each["id"] for each in steps.json["executions"]]
    assert [each["id"] for each in cells][-2:] == ids
    assert [each["source"] for each in cells] == ["before", "a = 1", "b = 2"]


async def test_each_step_has_values_and_a_purpose_of_its_own(agent: Agent) -> None:
    session = await agent.open()
    claim = {"purpose": "to look", "trace_id": "0f" * 16, "tool_call_id": "call_1"}
    steps = [{"source": "x = 1", "values": {"x": "x"}, "claim": claim}, {"source": "x = 2"}]
    path = f"sessions/{session['id']}/steps"
    answered = await agent.ask("POST", path, {"steps": steps, "wait": 60})
    first, second = answered.json["executions"]
    assert (first["values"]["x"]["json"], second["values"]) == (1, None)
    assert (first["claim"], second["claim"]) == (claim, None)


async def test_the_wait_ends_when_a_step_asks_for_input(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    answered = await ask_steps(agent, session, "x = input('?')", "x", wait=60)
    assert (answered.status, statuses(answered)) == (202, ["awaiting_input", "queued"])


def test_steps_of_a_killed_server_do_not_run_again(
    tmp_path: Path,
) -> None:
    gate = Gate(tmp_path, "killed")
    left = tmp_path / "left"
    mark = f"open({str(left)!r}, 'a').write('x')"
    sources = [mark, f"{mark}\n{gate.here}{gate.wait}", mark]
    body = {"steps": [{"source": source} for source in sources], "wait": 0}
    key = {"Idempotency-Key": "all"}
    with server_process(tmp_path) as server:
        path = f"sessions/{server.open()}/steps"
        first = server.ask("POST", path, body, headers=key)
        gate.until_it_is_here()
        server.kill()
    with server_process(tmp_path) as server:
        again = server.ask("POST", path, body, headers=key)
        assert (first.status_code, again.status_code) == (202, 201)
        told = again.json()["executions"]
        assert [each["id"] for each in told] == [each["id"] for each in first.json()["executions"]]
        assert [each["status"] for each in told] == ["ok", "lost", "cancelled"]
    assert left.read_text() == "xx"
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE


async def test_a_tokens_limits_count_each_step(agent: Agent, ask: Send) -> None:
    asked = {"label": "a", "scopes": ["exec:scratch"], "caps": {"executions_per_minute": 3}}
    minted = (await agent.ask("POST", "tokens", asked)).json
    shown = {"Authorization": f"Bearer {minted['secret']}"}

    async def post(path: str, body: Any) -> Answered:
        return await ask("POST", path, headers=shown, body=json.dumps(body))

    session = (await post("sessions", {"agent": {"name": "tester"}})).json
    path = f"sessions/{session['id']}/steps"
    step = {"source": "1"}
    for count, status in ((4, 429), (2, 201), (2, 429), (1, 201)):
        answered = await post(path, {"steps": [step] * count, "wait": 60})
        assert answered.status == status, answered.body
    assert len(await executions(agent, session)) == 3
