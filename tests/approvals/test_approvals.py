"""Executions that ask a person before they run, over HTTP, with real kernels."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_agent_exec.types import is_made_up
from tests.approvals.person_deciding import (
    approvals,
    approve,
    asking_ids,
    asks,
    look,
    reject,
    set_policy,
)
from tests.asking import Agent
from tests.sessions.living_notebook import entries, finished


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "always", "notebook": "first", "kernel": "none"}}


async def test_nothing_runs_before_it_is_approved(agent: Agent) -> None:
    session = await agent.open()
    assert (session["approval"], session["asking"]) == ("always", 0)
    execution = await asks(agent, session, "2 + 2")
    approval = execution["approval"]
    assert approval["status"] == "asked"
    assert approval["kernel_id"] == session["kernel"]["id"]
    assert approval["incarnation"] == 1
    assert execution["waiting_for"]["who"] == "approval"
    assert [entry["type"] for entry in await entries(agent, session)] == [
        "opened",
        "kernel_started",
        "accepted",
        "approval_asked",
    ]
    assert await asking_ids(agent) == [execution["id"]]
    answered = await approve(agent, execution)
    assert answered.status == 200
    assert answered.json["approval"]["status"] == "approved"
    done = await finished(agent, execution)
    assert (done["status"], done["text"]) == ("ok", "4")
    assert done["approval"]["decided_by"]
    assert await asking_ids(agent) == []


async def test_what_is_rejected_tells_the_agent_who_and_why(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "drop()")
    answered = await reject(agent, execution, "Use the sample.")
    assert answered.status == 200
    done = await finished(agent, execution)
    assert done["status"] == "rejected"
    assert done["started_at"] is None
    by = done["approval"]["decided_by"]
    who = "the user" if is_made_up(by) else by
    assert done["reason"] == f"It was not run: {who} rejected it and says: Use the sample."
    assert done["reason"] in done["text"]
    assert done["approval"]["status"] == "rejected"
    assert done["approval"]["reason"] == "Use the sample."
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types[-3:] == ["approval_asked", "rejected", "finished"]


async def test_only_one_of_two_who_decide_at_the_same_instant_counts(agent: Agent) -> None:
    session = await agent.open()
    for _ in range(5):
        execution = await asks(agent, session, "1")
        answered = await asyncio.gather(
            approve(agent, execution), reject(agent, execution, "No."), approve(agent, execution)
        )
        assert sorted(each.status for each in answered) == [200, 409, 409]
        for each in answered:
            if each.status == 409:
                assert each.json["code"] == "already_decided"
                assert each.json["detail"]["decided_by"]
                assert each.json["detail"]["approval"] in ("approved", "rejected")
        done = await finished(agent, execution)
        approved = answered[1].status == 409
        assert done["status"] == ("ok" if approved else "rejected")
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types.count("approved") + types.count("rejected") == 5


async def test_an_edited_source_runs_and_both_are_kept(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "print('all')")
    answered = await approve(agent, execution, source="print('some')")
    assert answered.json["source"] == "print('some')"
    done = await finished(agent, execution)
    assert done["text"].strip() == "some"
    assert done["source"] == "print('some')"
    assert done["approval"]["asked_source"] == "print('all')"


async def test_another_source_than_was_looked_at_is_not_approved(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "1")
    answered = await approve(agent, {**execution, "source": "2"})
    assert (answered.status, answered.json["code"]) == (409, "approval_changed")
    assert answered.json["detail"]["source_sha256"] == execution["source_sha256"]
    assert (await look(agent, execution))["status"] == "awaiting_approval"


async def test_a_kernel_that_was_restarted_is_asked_for_anew(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "1")
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    answered = await approve(agent, execution)
    assert (answered.status, answered.json["code"]) == (409, "approval_changed")
    again = await look(agent, execution)
    assert again["status"] == "awaiting_approval"
    assert again["approval"]["incarnation"] == 2
    assert (await approve(agent, again)).status == 200
    assert (await finished(agent, execution))["status"] == "ok"


async def test_a_kernel_restarted_between_approval_and_turn_is_asked_for_anew(
    agent: Agent,
) -> None:
    session = await agent.open()
    first = await asks(agent, session, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    second = await asks(agent, session, "1")
    assert (await approve(agent, second)).status == 200
    assert (await look(agent, second))["status"] == "queued"
    assert (await approve(agent, first)).status == 200
    assert (await finished(agent, first))["status"] == "kernel_died"
    while (again := await look(agent, second))["status"] != "awaiting_approval":
        assert again["status"] == "queued"
    assert again["approval"]["incarnation"] == 2
    assert again["approval"]["kernel_id"] is None  # none is started just to ask
    assert (await agent.get(f"sessions/{session['id']}")).json["kernel"] is None
    assert (await approve(agent, again)).status == 200
    done = await finished(agent, second)
    assert (done["status"], done["kernel"]["restarted"]) == ("ok", True)
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types.count("approval_asked") == 3


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "first"}}])
async def test_with_first_what_follows_waits_for_one_decision(agent: Agent) -> None:
    session = await agent.open()
    first = await asks(agent, session, "1")
    second = await agent.run(session, "2", wait=0)
    assert (second["status"], second["waiting_for"]["execution_id"]) == ("queued", first["id"])
    assert (await reject(agent, first)).status == 200
    while (second := await look(agent, second))["status"] != "awaiting_approval":
        assert second["status"] == "queued"
    assert (await approve(agent, second)).status == 200
    assert (await finished(agent, second))["status"] == "ok"
    third = await agent.run(session, "3")
    assert (third["status"], third["approval"]) == ("ok", None)
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    await asks(agent, session, "4")


@pytest.mark.parametrize(
    "agent_exec_config", [{"approval": {"scratch": "always"}, "approval_timeout": 1}]
)
async def test_what_nobody_decides_expires(agent: Agent) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "1")
    done = await finished(agent, execution)
    assert done["status"] == "rejected"
    assert done["reason"].startswith("Nobody decided within 1 seconds.")
    assert done["approval"]["status"] == "expired"
    late = await approve(agent, execution)
    assert (late.status, late.json["code"]) == (409, "already_decided")
    assert late.json["detail"]["approval"] == "expired"


@pytest.mark.parametrize("how", ["cancel", "interrupt", "close"])
async def test_what_is_taken_back_while_it_asks_is_withdrawn(agent: Agent, how: str) -> None:
    session = await agent.open()
    execution = await asks(agent, session, "1")
    path = f"executions/{execution['id']}" if how == "cancel" else f"sessions/{session['id']}"
    assert (await agent.ask("POST", f"{path}/{how}")).status == 200
    done = await finished(agent, execution)
    assert (done["status"], done["approval"]["status"]) == ("cancelled", "withdrawn")
    assert await asking_ids(agent) == []


async def test_what_does_not_ask_is_not_decided(agent: Agent) -> None:
    await set_policy(agent, scratch="none")
    session = await agent.open()
    done = await agent.run(session, "1")
    for answered in (await approve(agent, done), await reject(agent, done)):
        assert (answered.status, answered.json["code"]) == (409, "already_decided")
    nowhere = {**done, "id": "x_01JD0000000000000000000000"}
    assert (await approve(agent, nowhere)).status == 404


async def test_a_revision_shows_what_it_is_a_new_version_of(agent: Agent) -> None:
    session = await agent.open()
    first = await asks(agent, session, "rows = load()")
    assert first["approval"]["before"] is None
    await reject(agent, first, "Not all of it.")
    second = await asks(agent, session, "rows = load(10)")
    assert (second["revises"], second["approval"]["before"]) == (first["id"], "rows = load()")
    third = await asks(agent, session, "rows = load(5)", revises=second["id"])
    assert third["approval"]["before"] == "rows = load(10)"


async def test_what_an_agent_says_about_its_code_is_shown_and_recorded(agent: Agent) -> None:
    session = await agent.open()
    claim = {"purpose": "Count the rows.", "trace_id": "0af7" * 8, "tool_call_id": "call_1"}
    asking = await asks(agent, session, "rows = 1", claim=claim)
    (shown,) = (await approvals(agent))["executions"]
    assert shown["claim"] == asking["claim"] == claim
    await reject(agent, asking, "No.")
    accepted = [each for each in await entries(agent, session) if each["type"] == "accepted"]
    assert accepted[-1]["claim"] == claim
    notebook = (await agent.get(f"sessions/{session['id']}/notebook")).json
    assert notebook["cells"][-1]["metadata"]["agent_exec"]["claim"] == claim
    for wrong, field in (
        ({"purpose": ""}, "claim.purpose"),
        ({"trace_id": "1"}, "claim.trace_id"),
        ({"why": "x"}, "claim.why"),
    ):
        request = {"source": "1", "claim": wrong}
        answered = await agent.ask("POST", f"sessions/{session['id']}/executions", request)
        assert (answered.status, answered.json["detail"]["field"]) == (400, field)


async def test_only_an_execution_of_the_same_session_can_be_revised(agent: Agent) -> None:
    session, other = await agent.open(), await agent.open()
    foreign = await asks(agent, other, "1")
    for id in (foreign["id"], "x_01JD0000000000000000000000"):
        answered = await agent.ask(
            "POST", f"sessions/{session['id']}/executions", {"source": "2", "revises": id}
        )
        assert (answered.status, answered.json["code"]) == (400, "invalid_request")
        assert answered.json["detail"]["field"] == "revises"
        assert "name the session that has it" in answered.json["message"]
    assert [entry["type"] for entry in await entries(agent, session)][-1] == "kernel_started"


async def test_an_init_source_asks_and_the_opening_does_not_wait(agent: Agent) -> None:
    session = await agent.open(init_source="greeting = 'hello'")
    (asking,) = (await approvals(agent))["executions"]
    assert (asking["init"], asking["source"]) == (True, "greeting = 'hello'")
    execution = await agent.run(session, "greeting", wait=0)
    assert (await approve(agent, asking)).status == 200
    while (execution := await look(agent, execution))["status"] != "awaiting_approval":
        assert execution["status"] == "queued"
    assert (await approve(agent, execution)).status == 200
    assert (await finished(agent, execution))["text"] == "'hello'"


async def test_asking_the_same_again_by_its_key_does_not_ask_twice(agent: Agent) -> None:
    session = await agent.open()
    path, headers = f"sessions/{session['id']}/executions", {"Idempotency-Key": "k"}
    body = {"source": "1", "wait": 0}
    first = await agent.ask("POST", path, body, headers=headers)
    second = await agent.ask("POST", path, body, headers=headers)
    assert first.json["id"] == second.json["id"]
    assert await asking_ids(agent) == [first.json["id"]]


async def test_one_answer_tells_what_goes_on_and_what_waits(agent: Agent) -> None:
    asking = await agent.open()
    asked = await asks(agent, asking, "asked = 1")
    await set_policy(agent, scratch="none")
    busy = await agent.open()
    for source in ("import time; time.sleep(60)", "behind = 1"):
        await agent.run(busy, source, wait=0)
    told = await approvals(agent)
    assert [(each["id"], each["asking"]) for each in told["sessions"]] == [
        (busy["id"], 0),
        (asking["id"], 1),
    ]
    assert [each["id"] for each in told["executions"]] == [asked["id"]]
    assert [each["source"] for each in told["pending"]] == [
        "import time; time.sleep(60)",
        "behind = 1",
    ]
    assert told["pending"][1]["status"] == "queued"
    assert told["pending"][1]["waiting_for"]["who"] == "agent"
    await agent.ask("POST", f"sessions/{busy['id']}/close")
    told = await approvals(agent)
    assert ([each["id"] for each in told["sessions"]], told["pending"]) == ([asking["id"]], [])
