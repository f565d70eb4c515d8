"""Which variables an execution changed, in a kernel that its agent shares with a person."""

from __future__ import annotations

from typing import Any

import pytest

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, finished, notebook_target

pytestmark = pytest.mark.parametrize("agent_exec_config", [{"approval": {"notebook": "none"}}])


def variables(execution: dict[str, Any]) -> list[tuple[str, str]]:
    return [(told["change"], told["name"]) for told in execution["changes"]["variables"]]


async def test_variables_are_told_at_once_and_from_the_record(agent: Agent, desk: Desk) -> None:
    await desk.opens("work/sales.ipynb")
    session = await agent.open(target=notebook_target("work/sales.ipynb"))

    async def ran(source: str, **asked: Any) -> dict[str, Any]:
        done: dict[str, Any] = await finished(agent, await agent.run(session, source, **asked))
        return done

    first = await ran("kept = 1")
    assert first["changes"] is None, "what there was before is not known"
    done = await ran("x = 1\nnames = ['a', 'b']")
    assert variables(done) == [("added", "x"), ("added", "names")]
    told = done["changes"]["variables"][1]
    assert (told["type"], told["length"], told["preview"]) == ("list", 2, "['a', 'b']")
    assert (await agent.get(f"executions/{done['id']}")).json["changes"] == done["changes"]
    assert variables(await ran("x = 2\ndel names")) == [("changed", "x"), ("removed", "names")]
    assert (await ran("x"))["changes"] == {
        "variables": [], "more_variables": 0, "not_compared": 0,
    }  # fmt: skip
    failed = await ran("y = 3\n1 / 0")
    assert (failed["status"], failed["changes"]) == ("error", None)
    assert (await ran("z = 4"))["changes"] is None, "nobody knows which of the two added y"
    done = await ran("x = []", values={"x": "x.append(1)", "w": "(w := 2)"})
    assert sorted(variables(done)) == [("added", "w"), ("changed", "x")]
    done = await ran("7", values={"x": "x.append(1)"})
    assert variables(done) == [("changed", "x")]


async def test_what_the_person_did_is_never_taken_for_the_agents(agent: Agent, desk: Desk) -> None:
    opened = await desk.opens("work/sales.ipynb")
    person = await desk.sits_at(opened["kernel"]["id"])
    session = await agent.open(target=notebook_target("work/sales.ipynb"))
    await finished(agent, await agent.run(session, "mine = 1"))
    await person.has_run("theirs = 2")
    after = await finished(agent, await agent.run(session, "mine = theirs"))
    assert after["changes"] is None
    again = await finished(agent, await agent.run(session, "mine = 3"))
    assert variables(again) == [("changed", "mine")]


async def test_in_a_scratch_kernel_nobody_looks(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "x = 1")
    assert (done["status"], done["changes"]) == ("ok", None)
