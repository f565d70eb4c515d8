"""Undo with an agent token: what its own session ran, and nothing of anybody else."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, mint
from tests.checkpoints.asking import kept, turned_on
from tests.mcp.raw_mcp import RawMcp
from tests.sessions.living_notebook import Desk, entries, notebook_target, until_it_prints

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

RUNS = ("exec:notebook", "edit:notebook")


async def undo(agent: TokenAgent, execution: dict[str, Any]) -> Answered:
    return await agent.ask("POST", f"executions/{execution['id']}/undo")


def code(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["code"]


async def may_undo(agent: Agent, ask: Send) -> TokenAgent:
    """Return an agent with a token that may undo."""
    return TokenAgent(ask, (await mint(agent, *RUNS, "undo", approval="none"))[1])


async def test_an_agent_undoes_what_it_ran_until_a_user_runs_something(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    own, (kernel_id, _, person) = await may_undo(agent, ask), await turned_on(agent, desk)
    await person.has_run("df = 'mine'")
    session = await own.open(target=notebook_target())
    ran = await own.run(session, "df = 'lost'", wait=60)
    done = await undo(own, ran)
    assert (done.status, done.json["taken_back"]) == (200, [ran["id"]]), done.body
    record = (await agent.get(f"executions/{ran['id']}")).json
    assert record["undone_by"].startswith("an agent on behalf of ")
    assert [
        entry["by"]["kind"] for entry in await entries(agent, session) if entry["type"] == "undone"
    ] == ["agent"]
    ran = await own.run(session, "print(df)", wait=60)
    assert ran["text"].startswith("mine\n")
    assert ran["kernel"]["reason"] == "undone"
    await person.has_run("mine = 1")
    refused = await undo(own, ran)
    assert code(refused) == (409, "undo_unavailable")
    assert "a user has run code" in refused.json["message"]
    assert len((await kept(agent, kernel_id))["checkpoints"]) == 1


async def test_an_agent_takes_back_nothing_of_another_session_and_nothing_that_runs(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    own, (kernel_id, persons, _) = await may_undo(agent, ask), await turned_on(agent, desk)
    theirs = await agent.run(persons, "x = 0")
    assert code(await undo(own, theirs)) == (404, "execution_not_found")
    session, other = [await own.open(target=notebook_target()) for _ in range(2)]
    running = await own.run(
        session, "print('up', flush=True); input_ = __import__('time').sleep(60)", wait=0
    )
    await until_it_prints(agent, running)
    refused = await undo(own, running)
    assert code(refused) == (409, "undo_unavailable")
    assert "stop it first" in refused.json["message"]
    assert [
        (each["execution_id"], each["undoable"])
        for each in (await kept(agent, kernel_id))["checkpoints"]
    ] == [(running["id"], True)]
    await own.ask("POST", f"executions/{running['id']}/cancel")
    await agent.get(f"executions/{running['id']}", wait=60)
    await own.run(other, "x = 2", wait=60)
    assert code(await undo(own, running)) == (409, "undo_unavailable")


class TestWithSeveralCheckpoints:
    @pytest.fixture
    def agent_exec_config(self) -> dict[str, Any]:
        return {"checkpoints_per_kernel": 3}

    async def test_what_another_session_ran_since_is_not_taken_back(
        self, agent: Agent, ask: Send, desk: Desk
    ) -> None:
        own, (kernel_id, persons, _) = await may_undo(agent, ask), await turned_on(agent, desk)
        session = await own.open(target=notebook_target())
        first = await own.run(session, "x = 1", wait=60)
        theirs = await agent.run(persons, "y = 2")
        refused = await undo(own, first)
        assert code(refused) == (409, "undo_unavailable")
        assert "another session" in refused.json["message"]
        assert len((await kept(agent, kernel_id))["checkpoints"]) == 2
        assert (await agent.ask("POST", f"executions/{theirs['id']}/undo")).status == 200
        done = await undo(own, first)
        assert (done.status, done.json["taken_back"]) == (200, [first["id"]])


async def test_a_token_without_the_scope_has_neither_route_nor_tool(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    await turned_on(agent, desk)
    secret = (await mint(agent, *RUNS, approval="none"))[1]
    lacks = TokenAgent(ask, secret)
    session = await lacks.open(target=notebook_target())
    refused = await undo(lacks, await lacks.run(session, "x = 1", wait=60))
    assert (refused.status, refused.json["detail"]["scope"]) == (403, "undo")
    assert "undo" not in await RawMcp(ask, secret, modern=True).tools()


async def test_a_pause_holds_an_undo_too(agent: Agent, ask: Send, desk: Desk) -> None:
    own, _ = await may_undo(agent, ask), await turned_on(agent, desk)
    session = await own.open(target=notebook_target())
    ran = await own.run(session, "x = 1", wait=60)
    assert (await agent.ask("PUT", "approvals/pause", {"paused": True})).status < 300
    assert code(await undo(own, ran))[1] == "agents_paused"


async def test_the_tool_undoes_and_says_what_did_not_come_back(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    await turned_on(agent, desk)
    token = (await mint(agent, *RUNS, "undo", approval="none"))[1]
    mcp = RawMcp(ask, token, modern=True)
    assert "undo" in await mcp.tools()
    opened = await mcp.call("open_session", agent="raw", target=notebook_target())
    session_id = opened["structuredContent"]["session_id"]
    ran = await mcp.call("execute", session_id=session_id, source="x = 1")
    execution_id = ran["structuredContent"]["execution_id"]
    done = await mcp.call("undo", execution_id=execution_id)
    text = done["content"][0]["text"]
    assert text.startswith(f"Undone: {execution_id}.")
    assert "Files and databases" in text
    again = await mcp.call("undo", execution_id=execution_id)
    assert again["isError"]
    assert "Set your variables again by running code" in again["content"][0]["text"]
