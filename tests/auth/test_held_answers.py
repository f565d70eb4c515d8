"""How many answers an agent may have held, and streams open, at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, mint

LOOP = "while True: pass"


@pytest.mark.parametrize("agent_exec_config", [{"max_held_answers": 3, "session_idle_timeout": 0}])
async def test_agents_hold_no_more_answers_than_the_operator_allows(
    agent: Agent, ask: Send
) -> None:
    secrets = [(await mint(agent, "exec:scratch"))[1] for _ in range(4)]
    one, *others = [TokenAgent(ask, secret) for secret in secrets]
    session = await one.open()
    running = await one.run(session, LOOP, wait=0)
    path = f"executions/{running['id']}"
    held = [await hold(one, path, wait=50)]
    for refused in (
        await one.get(path, wait=50),
        await one.get(f"{path}/stream"),
        await one.execute(session, "1", wait=9),
        await one.execute(session, "1"),
        await one.ask("POST", f"sessions/{session['id']}/steps", {"steps": [{"source": "1"}]}),
        await one.ask("POST", f"{path}/input", {"value": "1", "wait": 9}),
    ):
        assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
        assert (refused.headers["Retry-After"], refused.json["detail"]["limit"]) == ("5", 1)
    assert (await one.execute(session, "2", wait=0)).status == 202
    for other in others[:2]:
        mine = await other.open()
        begun = await other.run(mine, LOOP, wait=0)
        held.append(await hold(other, f"executions/{begun['id']}/stream"))
    last = await others[2].execute(await others[2].open(), "1")
    assert (last.status, last.json["detail"]["limit"]) == (429, 3)
    assert (await agent.run(await agent.open(), "6 * 7"))["status"] == "ok"  # people go on
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert [each["source"] for each in listed] == [LOOP, "2"]  # nothing refused was taken
    for open_session in (await agent.get("sessions", status="open")).json["sessions"]:
        await agent.ask("POST", f"sessions/{open_session['id']}/close")
    assert [(await each).status for each in held] == [200, 200, 200]
    assert (await one.execute(await one.open(), "6 * 7")).json["status"] == "ok"  # none is leaked


async def hold(agent: TokenAgent, path: str, **query: int) -> asyncio.Task[Answered]:
    """Ask for something that is held; return once it is, with a token that may have one held."""
    while True:
        task = asyncio.create_task(agent.get(path, **query))
        while not task.done():
            looked = await agent.get(path.removesuffix("/stream"), wait=0.01)
            if looked.status == 429:
                return task
        assert (await task).status == 429  # a look was in its way
