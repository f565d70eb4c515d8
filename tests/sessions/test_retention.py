"""What the operator's rules let go is removed by the server itself, when no code runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.sessions import session_history
from tests.asking import Agent
from tests.real_server import Gate, gate

__all__ = ["gate"]


@pytest.fixture
def agent_exec_config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(session_history, "SETTLE_INTERVAL", 0.05)
    monkeypatch.setattr(session_history, "RETENTION_INTERVAL", 0.05)
    return {"retention": [{"days": 0}]}


async def ended(agent: Agent) -> str:
    session = await agent.open()
    await agent.run(session, "1 + 1")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    return str(session["id"])


async def test_a_session_is_removed_when_nothing_runs(
    agent: Agent, gate: Gate, history_dir: Path
) -> None:
    busy = await agent.open()
    running = await agent.run(busy, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    goes = await ended(agent)
    told = await agent.ask("POST", "retention", {"dry_run": True})
    assert [each["session_id"] for each in told.json["sessions"]] == [goes]
    for _ in range(5):  # the rules are looked at many times meanwhile
        assert (await agent.get(f"sessions/{goes}")).status == 200
        await agent.run(await agent.open(), "1")
    await asyncio.to_thread(gate.let_it_go_on)
    await agent.get(f"executions/{running['id']}", wait=60)
    async with asyncio.timeout(30):
        while (await agent.get(f"sessions/{goes}")).status != 404:
            pass
    now = await agent.ask("POST", "retention")
    assert (now.json["sessions"], now.json["rules"]) == ([], ["retention: days 0"])
    assert verify_history(history_dir, patience=5).outcome is Outcome.WHOLE
