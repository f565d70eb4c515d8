"""Looking into a session's kernel: variables and packages."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.approvals.person_deciding import set_paused
from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.kernelspecs import needs_ipykernel_7
from tests.sessions.living_notebook import Desk, at_persons_cell, entries, finished, notebook_target


async def names(agent: Agent, session: dict[str, Any], **query: Any) -> list[str]:
    answered = await agent.get(f"sessions/{session['id']}/variables", **query)
    assert answered.status == 200, answered.body
    return [variable["name"] for variable in answered.json["variables"]]


async def test_variables_are_the_users_own_by_name(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(
        session,
        "import os, json as j\nfrom math import sin\nfrom collections import Counter\n"
        "b = [1, 2]\na = 'text'\n_hidden = 1\ndef f(): pass\nclass C: pass\nc = C()",
    )
    assert await names(agent, session) == ["C", "a", "b", "c", "f"]
    told = (await agent.get(f"sessions/{session['id']}/variables", match="B")).json
    assert told == {
        "variables": [
            {
                **dict.fromkeys(("shape", "dtype", "dtypes", "index")),
                "name": "b",
                "type": "list",
                "length": 2,
                "preview": "[1, 2]",
            }
        ],
        "more": 0,
    }
    assert (await agent.get(f"sessions/{session['id']}/variables", limit=2)).json["more"] == 3


@needs_ipykernel_7
async def test_all_is_answered_while_code_runs_and_nothing_is_recorded(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open()
    running = await agent.run(session, f"quokka = 7\n{gate.source}", wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    before = await entries(agent, session)
    path = f"sessions/{session['id']}"
    assert await names(agent, session) == ["quokka"]
    found = (await agent.get(f"{path}/packages", match="PyZMQ")).json
    assert [each["import_names"] for each in found["packages"]] == [["zmq"]]
    assert (await agent.get(path)).json["kernel"]["execution_state"] == "busy"
    assert await entries(agent, session) == before
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, running))["text"] == "went on\n"


async def test_a_session_without_a_kernel_says_so(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "import os; os._exit(3)")
    refused = await agent.get(f"sessions/{session['id']}/variables")
    assert (refused.status, refused.json["code"]) == (503, "kernel_unavailable")
    await agent.run(session, "quokka = 7")
    assert await names(agent, session) == ["quokka"]


async def test_nothing_is_asked_while_agents_are_paused(agent: Agent) -> None:
    session = await agent.open()
    await set_paused(agent, True)
    refused = await agent.get(f"sessions/{session['id']}/variables")
    assert (refused.status, refused.json["code"]) == (409, "agents_paused")
    assert refused.json["detail"]["waiting_for"]["who"] == "pause"
    await set_paused(agent, False)
    assert await names(agent, session) == []


async def test_in_a_persons_kernel_it_is_said_that_their_code_runs(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    opened = await desk.opens()
    person = await desk.sits_at(opened["kernel"]["id"])
    session = await agent.open(target=notebook_target())
    await person.has_run("theirs = 7")
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    refused = await agent.get(f"sessions/{session['id']}/variables")
    assert (refused.status, refused.json["code"]) == (409, "kernel_busy")
    assert refused.json["detail"]["waiting_for"]["who"] == "person"
    assert "A person's code runs" in refused.json["message"]
    await asyncio.to_thread(gate.let_it_go_on)
    await person.reply(cell)
    assert await names(agent, session) == ["theirs"]
    assert [entry["type"] for entry in await entries(agent, session)] == [
        "opened",
        "kernel_started",
    ]
