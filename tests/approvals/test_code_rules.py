"""The mode `rules` on a real server: what runs at once, what asks, and why."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec.executions import session_code_rules
from jupyter_agent_exec.executions.approval_gate import strictest
from jupyter_agent_exec.kernels import inspection
from tests.approvals.person_deciding import (
    approvals,
    approve,
    asks,
    grant,
    look,
    reject,
    set_policy,
)
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import Desk, entries, finished, notebook_target


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "rules", "notebook": "rules"}}


@pytest.fixture(autouse=True)
def kernel_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the kernel's answer as long as it takes: without one, harmless code asks too."""
    monkeypatch.setattr(session_code_rules, "ANSWER_TIMEOUT", 60.0)
    for name in ("CONTROL_TIMEOUT", "TURN_TIMEOUT", "BUSY_TIMEOUT"):
        monkeypatch.setattr(inspection, name, 60.0)


def reasons(execution: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["line"], each["kind"]) for each in execution["approval"]["reasons"]]


async def test_harmless_code_runs_and_other_code_asks_with_the_reason(agent: Agent) -> None:
    session = await agent.open()
    assert session["approval"] == "rules"
    done = await agent.run(session, "total = sum(range(5))\nprint(total)")
    assert (done["status"], done["text"].strip(), done["approval"]) == ("ok", "10", None)
    execution = await asks(agent, session, "import os\n\nos.remove('x.csv')")
    assert reasons(execution) == [(3, "files")]
    assert "Asks because line 3 deletes a file: os.remove." in execution["text"]
    asked = [e for e in await entries(agent, session) if e["type"] == "approval_asked"]
    assert asked[0]["reasons"] == execution["approval"]["reasons"]
    await reject(agent, execution)
    done = await finished(agent, execution)
    assert done["status"] == "rejected"
    assert reasons(done) == [(3, "files")]


async def test_one_approval_lets_nothing_else_through_but_a_grant_does(agent: Agent) -> None:
    session = await agent.open()
    first = await asks(agent, session, "unknown()")
    await approve(agent, first, source="1")
    assert (await finished(agent, first))["status"] == "ok"
    second = await asks(agent, session, "unknown()")
    await grant(agent, session, 5)
    assert (await finished(agent, second))["status"] == "error"


async def test_expressions_for_values_are_code_too(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "x = [1, 2]", values={"rows": "len(x)"})
    assert done["values"]["rows"]["json"] == 2
    execution = await asks(agent, session, "x", values={"rows": "__import__('os').system('ls')"})
    assert {kind for _, kind in reasons(execution)} >= {"dynamic"}


async def test_all_steps_are_read_in_their_order(agent: Agent) -> None:
    session = await agent.open()
    steps = [{"source": "x = 1"}, {"source": "x + 1"}, {"source": "!ls"}]
    answered = await agent.ask(
        "POST", f"sessions/{session['id']}/steps", {"steps": steps, "wait": 0}
    )
    told = answered.json["executions"]
    assert [each["seq"] for each in told] == [1, 2, 3]
    assert reasons(told[2]) == [(1, "shell")]
    assert (await finished(agent, told[1]))["text"] == "2"


async def test_a_persons_variables_are_theirs_and_an_agents_its_own(
    agent: Agent, desk: Desk
) -> None:
    opened = await desk.opens()
    person = await desk.sits_at(opened["kernel"]["id"])
    await person.has_run("prices = [3, 1, 2]\ndef total(values): return sum(values)")
    session = await agent.open(target=notebook_target())
    done = await agent.run(session, "mine = sorted(prices)\nprint(mine)")
    assert (done["status"], done["text"].strip()) == ("ok", "[1, 2, 3]")
    assert (await agent.run(session, "mine = [0]\nmine.append(1)"))["status"] == "ok"
    for source in ("prices = []", "prices.append(4)", "del prices", "prices[0] = 1"):
        execution = await asks(agent, session, source)
        assert reasons(execution) == [(1, "variables")], source
        await reject(agent, execution)
    execution = await asks(agent, session, "total(prices)")
    assert execution["approval"]["reasons"][0]["text"] == (
        "calls `total`, which the rules do not know"
    )


async def test_a_name_that_a_person_bound_to_something_else_is_not_trusted(
    agent: Agent, desk: Desk
) -> None:
    opened = await desk.opens()
    person = await desk.sits_at(opened["kernel"]["id"])
    await person.has_run("import shutil as math\ndef len(x): return x")
    session = await agent.open(target=notebook_target())
    for source in ("math.sqrt(4)", "len([1])"):
        await reject(agent, await asks(agent, session, source))


async def test_users_choose_what_the_rules_let_through(agent: Agent) -> None:
    session = await agent.open()
    await reject(agent, await asks(agent, session, "open('x.txt', 'w').close()"))
    answered = await set_policy(agent, allow=["read", "files"])
    assert answered.json["policy"]["allow"] == ["files", "read"]
    assert (await agent.run(session, "open('x.txt', 'w').close()"))["status"] == "ok"
    refused = await set_policy(agent, allow=["dynamic"])
    assert (refused.status, refused.json["code"]) == (400, "invalid_request")
    assert (await approvals(agent))["policy"]["allow"] == ["files", "read"]


@pytest.mark.parametrize("agent_exec_config", [{"forced_approval": {"scratch": "always"}}])
async def test_a_token_with_rules_asks_always_where_that_is_forced(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, approval="rules"))[1])
    session = await mine.open()
    assert session["approval"] == "always"
    execution = await mine.run(session, "1", wait=0)
    assert execution["status"] == "awaiting_approval"
    assert execution["approval"]["reasons"] == []


@pytest.mark.parametrize("agent_exec_config", [{"forced_approval": {"scratch": "rules"}}])
async def test_forced_rules_can_only_be_made_stricter(agent: Agent, ask: Send) -> None:
    modes = []
    for approval in ("none", "first", "rules", "always"):
        mine = TokenAgent(ask, (await mint(agent, approval=approval))[1])
        modes.append((await mine.open())["approval"])
    assert modes == ["rules", "always", "rules", "always"]
    session = await agent.open()
    await set_policy(agent, allow=["read", "plot", "files"])
    await reject(agent, await asks(agent, session, "open('x.txt', 'w')"))
    await set_policy(agent, allow=[])
    execution = await asks(agent, session, "open('x.txt')")
    assert reasons(execution) == [(1, "read")]
    assert (await look(agent, execution))["status"] == "awaiting_approval"


def test_the_strictest_of_two_modes_asks_whenever_one_of_them_asks() -> None:
    modes = ("none", "first", "rules", "always")
    for first in modes:
        assert strictest(first, first) == first
        assert strictest(first, "none") == first
        assert strictest(first, "always") == "always"
        for second in modes:
            assert strictest(first, second) == strictest(second, first)
    assert strictest("first", "rules") == "always"
