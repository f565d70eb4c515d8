"""The mode `first`: one question for an agent's credential in one life of one kernel."""

from __future__ import annotations

from typing import Any

import pytest

from tests.approvals.person_deciding import approvals, approve, asks, set_paused, until
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import NOTEBOOK, Desk, finished, notebook_target

SCOPE = "exec:notebook:**"


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"notebook": "first", "kernel": "first"}}


async def token_agent(agent: Agent, ask: Send) -> TokenAgent:
    return TokenAgent(ask, (await mint(agent, SCOPE))[1])


async def close(agent: Agent | TokenAgent, session: dict[str, Any]) -> None:
    await agent.ask("POST", f"sessions/{session['id']}/close")


async def test_twenty_executions_in_five_sessions_of_a_token_are_one_click(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK)
    claude = await token_agent(agent, ask)
    clicks = 0
    for n in range(5):
        session = await claude.open(target=notebook_target(), agent={"name": f"claude {n}"})
        for m in range(4):
            execution = await claude.run(session, f"{n} + {m}", wait=0)
            if execution["status"] == "awaiting_approval":
                clicks += 1
                assert (await approve(agent, execution)).status == 200
            assert (await finished(agent, execution))["status"] == "ok"
        await close(claude, session)  # nobody holds the kernel until the next one opens
    assert clicks == 1


async def test_another_credential_another_kernel_and_a_restart_ask_anew(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK)
    desk.writes("other.ipynb")
    claude, other = await token_agent(agent, ask), await token_agent(agent, ask)
    session = await claude.open(target=notebook_target())
    await approve(agent, await asks(claude, session, "1"))
    await asks(other, await other.open(target=notebook_target()), "2")
    elsewhere = {"kind": "notebook", "path": "other.ipynb"}
    await asks(claude, await claude.open(target=elsewhere), "3")
    await set_paused(agent, True)
    paused = await claude.run(await claude.open(target=notebook_target()), "4", wait=0)
    assert (paused["status"], paused["waiting_for"]["who"]) == ("queued", "pause")
    await set_paused(agent, False)
    assert (await finished(agent, paused))["status"] == "ok"
    await desk.ask("POST", f"kernels/{session['kernel']['id']}/restart")
    await asks(claude, await claude.open(target=notebook_target()), "5")


async def test_a_life_that_began_while_no_session_held_the_kernel_asks_anew(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    target = {"kind": "kernel", "kernel_id": kernel_id}
    first = await agent.open(target=target)
    await approve(agent, await asks(agent, first, "1"))
    await close(agent, first)
    second = await agent.open(target=target, init_source="import math")
    assert (await agent.run(second, "math.tau > 6"))["text"] == "True"  # no question at all
    await close(agent, second)
    await desk.ask("POST", f"kernels/{kernel_id}/restart")
    await asks(agent, await agent.open(target=target), "2")


async def test_without_a_token_the_agent_is_user_and_given_name(agent: Agent, desk: Desk) -> None:
    desk.writes(NOTEBOOK)
    mine = await agent.open(target=notebook_target(), agent={"name": "one"})
    await approve(agent, await asks(agent, mine, "1"))
    again = await agent.open(target=notebook_target(), agent={"name": "one"})
    assert (await agent.run(again, "2"))["approval"] is None
    other = await agent.open(target=notebook_target(), agent={"name": "two"})
    await asks(agent, other, "3")


async def test_one_click_answers_what_several_sessions_of_an_agent_ask_at_once(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK)
    claude = await token_agent(agent, ask)
    asking = [
        await asks(claude, await claude.open(target=notebook_target()), str(n)) for n in range(3)
    ]
    other = await token_agent(agent, ask)
    left = await asks(other, await other.open(target=notebook_target()), "9")
    await approve(agent, asking[1])
    done = [await finished(agent, each) for each in asking]
    assert [each["status"] for each in done] == ["ok"] * 3
    assert {each["approval"]["status"] for each in done} == {"approved"}
    assert [each["id"] for each in (await approvals(agent))["executions"]] == [left["id"]]


async def test_approved_only_once_the_next_execution_asks_again(agent: Agent, desk: Desk) -> None:
    desk.writes(NOTEBOOK)
    session = await agent.open(target=notebook_target())
    one = await asks(agent, session, "1")
    two = await agent.run(session, "2", wait=0)
    both = await approve(agent, one, once=True, grant="hour")
    assert (both.status, both.json["detail"]["field"]) == (400, "once")
    assert (await approve(agent, one, once=True)).status == 200
    assert (await finished(agent, one))["status"] == "ok"
    await until(agent, two, "awaiting_approval")
    assert (await agent.get(f"sessions/{session['id']}")).json["grant"] is None
    assert (await approve(agent, two)).status == 200
    assert (await finished(agent, two))["status"] == "ok"
    assert (await agent.run(session, "3"))["approval"] is None
