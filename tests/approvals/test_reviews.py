"""What people think of what agents ran: who, when, about which, and that it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.errors import NotFinished
from jupyter_agent_exec.sessions.activity import EVENTS_SCHEMA_ID
from tests.asking import Agent
from tests.real_server import Gate


async def review(agent: Agent, of: dict[str, Any], verdict: str | None, **said: Any) -> Any:
    return await agent.ask("PUT", f"executions/{of['id']}/review", {"verdict": verdict, **said})


@pytest.fixture
def reviewed(history_dir: Path) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Return what a session's journal says of reviews."""

    def read(session: dict[str, Any]) -> list[dict[str, Any]]:
        path = history_dir / "sessions" / session["id"] / "journal.jsonl"
        entries = [json.loads(line)["entry"] for line in path.read_text().splitlines()]
        return [entry for entry in entries if entry["type"] == "reviewed"]

    return read


async def test_an_execution_is_approved_by_a_person_at_a_time(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "1 + 1")
    assert done["review"] is None
    answered = await review(agent, done, "approved", comment="as expected")
    assert answered.status == 200, answered.body
    told = answered.json["review"]
    assert (told["verdict"], told["comment"]) == ("approved", "as expected")
    assert told["by"]
    assert told["at"] > done["finished_at"]
    assert (await agent.get(f"executions/{done['id']}")).json["review"] == told


async def test_the_last_word_counts_and_can_be_taken_back(
    agent: Agent, reviewed: Callable[[Any], Any]
) -> None:
    session = await agent.open()
    done = await agent.run(session, "1 / 0")
    await review(agent, done, "approved")
    flagged = await review(agent, done, "flagged", comment="look again")
    assert flagged.json["review"]["verdict"] == "flagged"
    commented = await review(agent, done, None, comment="a thought")
    assert commented.json["review"]["verdict"] is None
    assert commented.json["review"]["comment"] == "a thought"
    assert (await review(agent, done, None)).json["review"] is None
    assert [entry.get("verdict") for entry in reviewed(session)] == [
        "approved",
        "flagged",
        None,
        None,
    ]
    assert all(entry["by"]["kind"] == "person" for entry in reviewed(session))


async def test_an_agent_is_told_once_what_a_person_wrote(agent: Agent) -> None:
    session = await agent.open()
    first, second = [await agent.run(session, source) for source in ("1", "2")]
    await review(agent, first, "flagged", comment="a draft")
    await review(agent, first, "flagged", comment="Not so: use the median.")
    await review(agent, second, "approved")
    await review(agent, second, None, comment="taken back")
    await review(agent, second, None)
    told = await agent.run(session, "3")
    assert told["comments"] == [
        {
            "execution_id": first["id"],
            "seq": 1,
            "verdict": "flagged",
            "comment": "Not so: use the median.",
            "by": told["comments"][0]["by"],
        }
    ]
    assert "The user wrote about cell 1 (flagged): Not so: use the median." in told["text"]
    assert (await agent.get(f"executions/{told['id']}")).json["comments"] == []
    assert (await agent.run(session, "4"))["comments"] == []


async def test_what_runs_cannot_be_reviewed_yet(
    agent: Agent, gate: Gate, reviewed: Callable[[Any], Any]
) -> None:
    session = await agent.open()
    running = await agent.run(session, gate.source, wait=0)
    refused = await review(agent, running, "approved")
    assert (refused.status, refused.json["code"]) == (409, NotFinished.code)
    assert reviewed(session) == []
    gate.wait_until_it_runs()
    gate.let_it_go_on()


async def test_a_closed_session_is_reviewed_too(
    agent: Agent, reviewed: Callable[[Any], Any]
) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    await agent.ask("POST", f"sessions/{session['id']}/close", {})
    assert (await review(agent, done, "flagged")).json["review"]["verdict"] == "flagged"
    assert [entry["execution_id"] for entry in reviewed(session)] == [done["id"]]
    assert (await agent.get(f"sessions/{session['id']}")).json["unreviewed"] == 0


async def test_sessions_count_what_nobody_has_reviewed(agent: Agent) -> None:
    session = await agent.open()
    done = [await agent.run(session, source) for source in ("1", "2")]

    async def unreviewed() -> int:
        listed = (await agent.get("sessions")).json["sessions"]
        alone = (await agent.get(f"sessions/{session['id']}")).json
        assert listed[0]["unreviewed"] == alone["unreviewed"]
        return int(alone["unreviewed"])

    assert await unreviewed() == 2
    await review(agent, done[0], "approved")
    assert await unreviewed() == 1
    await review(agent, done[1], "approved")
    assert await unreviewed() == 0
    await agent.ask("POST", f"sessions/{session['id']}/close", {})
    assert await unreviewed() == 0


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
async def test_others_are_told_that_something_was_reviewed(
    agent: Agent, jp_serverapp: Any, is_closed: bool
) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    if is_closed:
        await agent.ask("POST", f"sessions/{session['id']}/close", {})
    told: list[dict[str, Any]] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        told.append(data)

    jp_serverapp.event_logger.add_listener(schema_id=EVENTS_SCHEMA_ID, listener=listen)
    await review(agent, done, "approved")
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    app.services.activity.stop()
    await jp_serverapp.event_logger.gather_listeners()
    events = {(event["action"], event.get("execution_id")): event for event in told}
    of_execution = events["execution", done["id"]]
    assert (of_execution["status"], of_execution["seq"]) == ("ok", done["seq"])


NO_SENSE: list[tuple[dict[str, Any], str]] = [
    ({}, "verdict"),
    ({"verdict": "fine"}, "verdict"),
    ({"verdict": "approved", "comment": 3}, "comment"),
    ({"verdict": "approved", "comment": "x" * 10_001}, "comment"),
]


async def test_a_review_that_makes_no_sense_is_refused_with_its_field(
    agent: Agent, reviewed: Callable[[Any], Any]
) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    for body, field in NO_SENSE:
        refused = await agent.ask("PUT", f"executions/{done['id']}/review", body)
        assert (refused.status, refused.json["detail"]["field"]) == (400, field)
        assert reviewed(session) == []


async def test_nothing_that_is_not_there_is_reviewed(agent: Agent) -> None:
    path = "executions/x_01JD0000000000000000000000/review"
    refused = await agent.ask("PUT", path, {"verdict": "approved"})
    assert (refused.status, refused.json["code"]) == (404, "execution_not_found")
