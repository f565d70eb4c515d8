"""Looking into a session's kernel: variables, completion, documentation, packages."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.approvals.person_deciding import set_paused
from tests.asking import Agent
from tests.real_server import Gate
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


async def test_all_is_answered_while_code_runs_and_what_may_run_code_is_recorded(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open()
    running = await agent.run(session, f"quokka = 7\n{gate.source}", wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    before = await entries(agent, session)
    path = f"sessions/{session['id']}"
    assert await names(agent, session) == ["quokka"]
    completed = await agent.ask("POST", f"{path}/complete", {"code": "quok"})
    assert completed.json == {
        "completions": [{"text": "quokka", "type": "instance"}],
        "cursor_start": 0,
        "cursor_end": 4,
        "more": 0,
        "static": False,
    }
    asked = {"code": "len(quokka)", "cursor_pos": 2}
    inspected = (await agent.ask("POST", f"{path}/inspect", asked)).json
    assert inspected["found"]
    assert "Return the number of items" in inspected["text"]
    assert "\x1b" not in inspected["text"]
    found = (await agent.get(f"{path}/packages", match="PyZMQ")).json
    assert [each["import_names"] for each in found["packages"]] == [["zmq"]]
    assert (await agent.get(path)).json["kernel"]["execution_state"] == "busy"
    *earlier, first, second = await entries(agent, session)
    assert earlier == before
    for entry in (first, second):
        assert (entry["type"], entry["by"]["kind"]) == ("kernel_inspected", "person")
    assert (first["kind"], first["cursor_pos"]) == ("complete", 4)
    assert (second["kind"], second["cursor_pos"]) == ("inspect", 2)
    events = (await agent.get(f"{path}/events")).json["events"]
    told = [each["text"] for each in events if each["type"] == "kernel_inspected"]
    assert told == ["quok", "len(quokka)"]
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await finished(agent, running))["text"] == "went on\n"


async def test_what_was_said_wrongly_is_named(agent: Agent) -> None:
    session = await agent.open()
    path = f"sessions/{session['id']}"
    asked: list[tuple[Any, str]] = [
        (await agent.get(f"{path}/variables", limit=0), "limit"),
        (await agent.get(f"{path}/packages", limit=10_001), "limit"),
        (await agent.get(f"{path}/packages", match="x" * 201), "match"),
        (await agent.get(f"{path}/variables", sort="name"), "sort"),
        (await agent.ask("POST", f"{path}/complete", {"code": "a", "cursor_pos": 2}), "cursor_pos"),
        (await agent.ask("POST", f"{path}/inspect", {"code": ""}), "code"),
        (await agent.ask("POST", f"{path}/inspect", {"code": "a", "detail_level": 2}), None),
        (await agent.ask("POST", f"{path}/executions", {"source": "1", "values": {"": "1"}}), None),
    ]
    for answered, field in asked:
        assert (answered.status, answered.json["code"]) == (400, "invalid_request")
        assert field is None or answered.json["detail"]["field"] == field
    missing = await agent.get("sessions/s_01ARZ3NDEKTSV4RRFFQ69G5FAV/variables")
    assert (missing.status, missing.json["code"]) == (404, "session_not_found")
    await agent.ask("POST", f"{path}/close")
    closed = await agent.get(f"{path}/variables")
    assert (closed.status, closed.json["code"]) == (409, "session_closed")


async def test_code_that_no_kernel_can_complete_is_answered_at_once(agent: Agent) -> None:
    path = f"sessions/{(await agent.open())['id']}"
    for code in ("\f", "%%time\n\f", "\0"):  # IPython's completer raises an error at a form feed
        answered = await agent.ask("POST", f"{path}/complete", {"code": code})
        assert (answered.status, answered.json["cursor_end"]) == (200, len(code))
    for code in ("x" * 5_001, "1\n" * 50_001, "1\n" + "x" * 5_001 + "\n"):
        for verb in ("complete", "inspect"):
            asked = {"code": code, "cursor_pos": min(len(code), 10)}
            refused = await agent.ask("POST", f"{path}/{verb}", asked)
            assert (refused.status, refused.json["detail"]["field"]) == (400, "code")


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
