"""Executions over the real routes, in a real kernel."""

from __future__ import annotations

import json

from tests.asking import Agent


async def test_the_first_execution_is_answered_with_its_cell(agent: Agent) -> None:
    session = await agent.open(title="first")
    assert session["status"] == "open"
    assert session["kernel"]["execution_state"] == "idle"
    done = await agent.run(session, "print('hello')\n1 + 1")
    assert done["status"] == "ok"
    assert done["execution_count"] == 1
    assert [output["output_type"] for output in done["cell"]["outputs"]] == [
        "stream",
        "execute_result",
    ]
    again = (await agent.get(f"executions/{done['id']}")).json
    assert again["cell"] == done["cell"]
    assert again["status"] == "ok"


async def test_how_long_it_ran_is_recorded_beside_the_wall_times(agent: Agent) -> None:
    session = await agent.open(title="duration")
    done = await agent.run(session, "sum(range(100_000))")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body
    entries = [json.loads(line)["entry"] for line in journal.splitlines()]
    (finished,) = [entry for entry in entries if entry["type"] == "finished"]
    assert 0 < finished["duration"] == done["duration"]
    await agent.ask("POST", f"sessions/{session['id']}/close", body={})
    assert (await agent.get(f"executions/{done['id']}")).json["duration"] == done["duration"]
