"""How many sessions and executions there may be, and one session for each client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent
from tests.on_disk import record_bytes, recorded_sessions

AGENT = {"name": "tester"}
LOOP = "while True: pass"


async def close(agent: Agent, session: dict[str, Any]) -> None:
    assert (await agent.ask("POST", f"sessions/{session['id']}/close")).status == 200


@pytest.mark.parametrize("agent_exec_config", [{"max_sessions": 2}])
async def test_no_more_sessions_are_opened_than_the_operator_allows(
    agent: Agent, history_dir: Path
) -> None:
    body = {"agent": AGENT}
    answers = await asyncio.gather(*(agent.ask("POST", "sessions", body) for _ in range(4)))
    assert sorted(answered.status for answered in answers) == [201, 201, 429, 429]
    refused = next(answered for answered in answers if answered.status == 429)
    assert refused.json["code"] == "too_many_requests"
    assert refused.json["detail"]["limit"] == 2
    assert len(recorded_sessions(history_dir)) == 2
    await close(agent, next(answered.json for answered in answers if answered.status == 201))
    await agent.open()


@pytest.mark.parametrize("agent_exec_config", [{"max_queued": 2}])
async def test_no_more_executions_wait_than_the_operator_allows(
    agent: Agent, history_dir: Path
) -> None:
    session = await agent.open()
    path = f"sessions/{session['id']}/executions"
    runs, *waiting = [await agent.run(session, LOOP, wait=0) for _ in range(3)]
    before = record_bytes(history_dir)
    refused = await agent.ask("POST", path, {"source": "1"})
    assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
    assert refused.json["detail"] == {"limit": 2}
    assert record_bytes(history_dir) == before
    await agent.ask("POST", f"executions/{waiting[0]['id']}/cancel")
    assert (await agent.ask("POST", path, {"source": "2", "wait": 0})).status == 202
    listed = (await agent.get(path)).json["executions"]
    assert [execution["seq"] for execution in listed] == [1, 2, 3, 4]
    assert listed[0]["id"] == runs["id"]


async def test_a_client_has_one_open_session_at_a_time(agent: Agent, history_dir: Path) -> None:
    body = {"agent": AGENT, "client_id": "c-1"}
    answers = await asyncio.gather(*(agent.ask("POST", "sessions", body) for _ in range(4)))
    assert sorted(answered.status for answered in answers) == [200, 200, 200, 201]
    assert len({answered.json["id"] for answered in answers}) == 1
    assert len({answered.headers["Location"] for answered in answers}) == 1
    first = answers[0].json
    other = await agent.ask("POST", "sessions", {**body, "client_id": "c-2"})
    assert (other.status, other.json["id"] != first["id"]) == (201, True)
    await close(agent, first)
    after = await agent.ask("POST", "sessions", body)
    assert (after.status, after.json["id"] != first["id"]) == (201, True)
    assert len(recorded_sessions(history_dir)) == 3


async def test_a_client_with_an_open_session_cannot_have_one_elsewhere(
    agent: Agent, jp_root_dir: Path, history_dir: Path
) -> None:
    (jp_root_dir / "work").mkdir()
    session = await agent.open(client_id="c-1")
    before = record_bytes(history_dir)
    refused = await agent.ask(
        "POST",
        "sessions",
        {"agent": AGENT, "client_id": "c-1", "target": {"kind": "scratch", "cwd": "work"}},
    )
    assert (refused.status, refused.json["code"]) == (400, "invalid_request")
    assert refused.json["detail"] == {"field": "client_id", "session_id": session["id"]}
    assert record_bytes(history_dir) == before
