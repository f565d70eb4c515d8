"""A user's leave for an agent to run code in one kernel without asking."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from tests.approvals.person_deciding import (
    approve,
    asking_ids,
    asks,
    grant,
    look,
    set_paused,
    set_policy,
    withdraw,
)
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import NOTEBOOK, Desk, entries, finished, notebook_target

RENAMED = {"name": "another name"}


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "always", "notebook": "always", "kernel": "always"}}


async def token_agent(agent: Agent, ask: Send) -> TokenAgent:
    token = (await mint(agent, "exec:notebook:**", "exec:scratch"))[1]
    return TokenAgent(ask, token)


async def session_of(agent: Agent, session: dict[str, Any]) -> dict[str, Any]:
    return dict((await agent.get(f"sessions/{session['id']}")).json)


async def entry_types(agent: Agent, session: dict[str, Any]) -> list[str]:
    return [entry["type"] for entry in await entries(agent, session)]


@pytest.mark.parametrize("then", ["", "pause", "restart", "withdrawn", "expired"])
async def test_who_runs_where_without_asking(
    jp_serverapp: Any, agent: Agent, ask: Send, desk: Desk, then: str
) -> None:
    claude, other = await token_agent(agent, ask), await token_agent(agent, ask)
    desk.writes("there.ipynb")
    there = {"kind": "notebook", "path": "there.ipynb"}
    elsewhere = [(each, await each.open(target=there)) for each in (claude, other)]
    for span, mode in product(("restart", "hour"), ("first", "always")):
        desk.writes(f"{span} {mode}.ipynb")
        here = {"kind": "notebook", "path": f"{span} {mode}.ipynb"}
        await set_policy(agent, notebook=mode)
        mine, again = await claude.open(target=here), await claude.open(target=here, agent=RENAMED)
        others = [(other, await other.open(target=here)), *elsewhere]
        first = await asks(claude, mine, "1")
        assert (await grant(agent, first, span)).status == 200
        assert (await finished(agent, first))["status"] == "ok"
        for session in (mine, again):
            shown = (await session_of(agent, session))["grant"]
            assert (shown["until"] is None) == (span == "restart")
            assert shown["granted_by"]
        if then == "pause":
            await set_paused(agent, True)
            for session in (mine, again):
                waiting = await claude.run(session, "2", wait=0)
                assert (waiting["status"], waiting["waiting_for"]["who"]) == ("queued", "pause")
            await set_paused(agent, False)
        elif then == "restart":
            await desk.ask("POST", f"kernels/{mine['kernel']['id']}/restart")
        elif then == "withdrawn":
            assert (await withdraw(agent, again)).json["grant"] is None
        elif then == "expired":
            (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
            expire(app.services.manager.history.open_session(mine["id"]).gate._rules.grants)
        ends = then in ("restart", "withdrawn") or (then, span) == ("expired", "hour")
        for who, session in ((claude, mine), (claude, again), *others):
            execution = await who.run(session, "3", wait=0)
            if who is claude and session in (mine, again) and not ends:
                done = await finished(agent, execution)
                assert (done["status"], done["approval"]) == ("ok", None)
                assert (await session_of(agent, session))["grant"] is not None
            else:
                while execution["status"] == "queued":  # until the restart is known
                    execution = await look(agent, execution)
                assert execution["status"] == "awaiting_approval", (session["target"], then)
                assert (await session_of(agent, session))["grant"] is None
                await agent.ask("POST", f"executions/{execution['id']}/cancel")


def expire(grants: Any) -> None:
    """Let an hour pass for all grants that it ends."""
    for given in list(grants._lives.values()):
        for agent, each in given.items():
            if each.until is not None:
                given[agent] = replace(each, until=each.until - timedelta(hours=1))


@pytest.mark.parametrize("span", ["restart", "hour"])
async def test_it_is_recorded_and_so_is_its_end(agent: Agent, span: str) -> None:
    session = await agent.open()
    await grant(agent, await asks(agent, session, "1"), span)
    given = (await entries(agent, session))[4:6]
    assert [entry["type"] for entry in given] == ["grant_given", "approved"]
    assert given[0]["kernel_id"] == session["kernel"]["id"]
    assert (given[0]["incarnation"], given[0]["until"] is None) == (1, span == "restart")
    await withdraw(agent, session)
    await withdraw(agent, session)  # there is nothing any more
    assert (await entry_types(agent, session)).count("grant_withdrawn") == 1
    await asks(agent, session, "2")


async def test_it_answers_all_that_the_agent_asks_there(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK)
    claude, other = await token_agent(agent, ask), await token_agent(agent, ask)
    mine, again = (
        await claude.open(target=notebook_target()),
        await claude.open(target=notebook_target()),
    )
    asking = [
        await asks(claude, mine, "1"),
        await asks(claude, mine, "2"),
        await asks(claude, again, "3"),
    ]
    left = await asks(other, await other.open(target=notebook_target()), "4")
    await grant(agent, asking[1], "hour")
    done = [await finished(agent, each) for each in asking]
    assert [(each["status"], each["approval"]["status"]) for each in done] == [
        ("ok", "approved")
    ] * 3
    assert await asking_ids(agent) == [left["id"]]


async def test_an_approval_alone_gives_no_leave_where_each_execution_asks(agent: Agent) -> None:
    session = await agent.open()
    first = await asks(agent, session, "1")
    await approve(agent, first)
    assert (await finished(agent, first))["status"] == "ok"
    assert (await session_of(agent, session))["grant"] is None
    await asks(agent, session, "2")
    assert "grant_given" not in await entry_types(agent, session)


async def test_what_first_gives_is_seen_and_withdrawn_and_holds_in_no_stricter_mode(
    agent: Agent,
) -> None:
    await set_policy(agent, scratch="first")
    session = await agent.open()
    await approve(agent, await asks(agent, session, "1"))
    assert (await session_of(agent, session))["grant"]["until"] is None
    assert (await agent.run(session, "2"))["approval"] is None
    await set_policy(agent, scratch="always")
    assert (await session_of(agent, session))["grant"] is None
    await approve(agent, await asks(agent, session, "3"))
    await set_policy(agent, scratch="first")
    assert (await agent.run(session, "4"))["approval"] is None
    await withdraw(agent, session)
    await asks(agent, session, "5")


async def test_it_may_be_given_before_the_kernel_starts(agent: Agent) -> None:
    session = await agent.open(init_source="x = 1")
    execution = await agent.run(session, "x", wait=0)
    (init,) = (each for each in (await agent.get("approvals")).json["executions"] if each["init"])
    await grant(agent, init, "restart")
    assert (await finished(agent, execution))["text"] == "1"
    assert (await session_of(agent, session))["grant"] is not None
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    assert (await session_of(agent, session))["grant"] is None


async def test_a_closed_session_has_none(agent: Agent) -> None:
    session = await agent.open()
    await grant(agent, await asks(agent, session, "1"), "restart")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await session_of(agent, session))["grant"] is None
    assert (await withdraw(agent, session)).json["code"] == "session_closed"
