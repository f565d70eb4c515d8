"""Values: expressions that are evaluated after an execution, answered, recorded and exported."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import jupyter_agent_exec.journal
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.approvals.person_deciding import approve, asks
from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import Desk, entries, finished, notebook_target

NOT_EVALUATED = {"status": "error", "ename": "NotEvaluated"}


def because(value: dict[str, Any]) -> str:
    assert {**value, "evalue": None} == {**NOT_EVALUATED, "evalue": None}
    return str(value["evalue"])


async def test_values_are_answered_recorded_and_exported(agent: Agent, history_dir: Path) -> None:
    session = await agent.open()
    done = await agent.run(
        session,
        "x = {'a': [1, None, True, 1.5, 'ü']}\nlarge = ['a' * 50_000]",
        values={"x": "x", "large": "large", "bad": "y"},
    )
    assert done["status"] == "ok"
    assert done["values"] == {
        "x": {"status": "ok", "json": {"a": [1, None, True, 1.5, "ü"]}},
        "large": {"status": "ok", "json": ["a" * 50_000]},
        "bad": {
            "status": "error",
            "ename": "NameError",
            "evalue": "name 'y' is not defined",
        },
    }
    assert (await agent.get(f"executions/{done['id']}")).json["values"] == done["values"]
    page = (await agent.get(f"sessions/{session['id']}/executions", outputs="brief")).json
    assert page["executions"][0]["values"] is None
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    assert exported["cells"][0]["metadata"]["agent_exec"]["values"] == done["values"]
    schema = Path(jupyter_agent_exec.journal.__file__).with_name("metadata.schema.json")
    Draft202012Validator(json.loads(schema.read_text())).validate(exported)
    assert verify_history(history_dir).outcome is Outcome.WHOLE
    assert (await agent.run(session, "x"))["values"] is None


async def test_what_was_asked_for_is_recorded_with_the_acceptance(
    agent: Agent, history_dir: Path
) -> None:
    session = await agent.open()
    await agent.run(session, "1", values={"two": "1 + 1"})
    await agent.run(session, "1")
    with_values, without = (
        entry for entry in await entries(agent, session) if entry["type"] == "accepted"
    )
    assert "values" not in without
    journal = (history_dir / "sessions" / session["id"] / "journal.jsonl").read_text()
    assert '"{\\"two\\":\\"1 + 1\\"}"' in journal
    assert with_values["values"] in journal


async def test_code_that_failed_has_no_values(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "1 / 0", values={"x": "1"})
    assert (done["status"], because(done["values"]["x"])) == ("error", "The code failed before.")
    assert (await agent.get(f"executions/{done['id']}")).json["values"] == done["values"]


async def test_what_never_ran_has_no_values(agent: Agent, gate: Gate) -> None:
    session = await agent.open()
    running = await agent.run(session, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    waiting = await agent.run(session, "1", values={"x": "1"}, wait=0)
    assert waiting["values"] is None
    taken_back = (await agent.ask("POST", f"executions/{waiting['id']}/cancel")).json
    assert taken_back["status"] == "cancelled"
    assert because(taken_back["values"]["x"]) == "It was not run."
    assert (await agent.get(f"executions/{waiting['id']}")).json["values"] == taken_back["values"]
    await asyncio.to_thread(gate.let_it_go_on)
    await finished(agent, running)


async def test_evaluation_counts_in_the_timeout_and_is_interrupted(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(
        session,
        "import threading\nclass Hangs:\n    def __repr__(self): threading.Event().wait()",
        values={"good": "1", "hangs": "Hangs()", "late": "2"},
        timeout=1,
    )
    assert done["status"] == "timed_out"
    assert done["values"]["good"] == {"status": "ok", "json": 1}
    assert done["values"]["hangs"]["ename"] == "KeyboardInterrupt"
    because(done["values"]["late"])
    assert (await agent.run(session, "1", values={"x": "1"}))["values"]["x"]["json"] == 1


async def test_a_kernel_that_dies_over_a_value_is_told(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "import os", values={"x": "os._exit(3)"})
    assert done["status"] == "kernel_died"
    because(done["values"]["x"])


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "first"}}])
async def test_nobody_approves_an_expression_that_they_were_not_shown(agent: Agent) -> None:
    session = await agent.open()
    asked = await asks(agent, session, "x = 1", values={"x": "globals().update(x=2)"})
    await approve(agent, asked)
    done = await finished(agent, asked)
    assert (done["status"], done["text"]) == ("ok", "")
    assert "was not shown the expressions" in because(done["values"]["x"])
    after = await agent.run(session, "print(x)", values={"x": "x"})
    assert (after["text"], after["values"]["x"]["json"]) == ("1\n", 1)


async def test_in_a_persons_kernel_their_variables_stay_as_they_are(
    agent: Agent, desk: Desk
) -> None:
    opened = await desk.opens()
    person = await desk.sits_at(opened["kernel"]["id"])
    session = await agent.open(target=notebook_target())
    await person.has_run("mine = 7\nknown = {*globals(), 'known'}")
    done = await finished(agent, await agent.run(session, "", values={"m": "mine"}, wait=30))
    assert done["values"]["m"] == {"status": "ok", "json": 7}
    reply = await person.reply(
        person.runs("", user_expressions={"new": "{*globals()} - known", "mine": "mine"})
    )
    told = {name: each["data"]["text/plain"] for name, each in reply["user_expressions"].items()}
    assert told == {"new": "set()", "mine": "7"}


async def test_the_same_key_with_other_values_is_another_question(agent: Agent) -> None:
    session = await agent.open()
    path = f"sessions/{session['id']}/executions"
    key = {"Idempotency-Key": "k"}
    first = await agent.ask("POST", path, {"source": "1", "values": {"x": "1"}}, headers=key)
    again = await agent.ask("POST", path, {"source": "1", "values": {"x": "1"}}, headers=key)
    assert again.json["id"] == first.json["id"]
    assert again.json["values"] == first.json["values"]
    other = await agent.ask("POST", path, {"source": "1", "values": {"x": "2"}}, headers=key)
    assert (other.status, other.json["code"]) == (422, "idempotency_conflict")
