"""What an execution changed besides its outputs: variables, and files in its kernel's folder."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, finished, notebook_target


def variables(execution: dict[str, Any]) -> list[tuple[str, str]]:
    return [(told["change"], told["name"]) for told in execution["changes"]["variables"]]


async def test_variables_are_told_at_once_and_from_the_record(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "x = 1\nnames = ['a', 'b']")
    assert variables(done) == [("added", "x"), ("added", "names")]
    told = done["changes"]["variables"][1]
    assert (told["type"], told["length"], told["preview"]) == ("list", 2, "['a', 'b']")
    assert (await agent.get(f"executions/{done['id']}")).json["changes"] == done["changes"]
    changed = await agent.run(session, "x = 2\ndel names")
    assert variables(changed) == [("changed", "x"), ("removed", "names")]
    failed = await agent.run(session, "y = 3\n1 / 0")
    assert (failed["status"], variables(failed)) == ("error", [("added", "y")])
    same = await agent.run(session, "x")
    assert same["changes"] == {"variables": [], "more_variables": 0}


async def test_what_the_init_source_made_is_its_own_change(agent: Agent) -> None:
    session = await agent.open(init_source="seed = 7")
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert variables(listed[0]) == [("added", "seed")]
    assert variables(await agent.run(session, "seed")) == []


@pytest.mark.parametrize(
    "agent_exec_config", [{"record_changes": "all", "approval": {"notebook": "none"}}]
)
async def test_in_a_persons_kernel_it_is_told_apart_what_the_person_did(
    agent: Agent, desk: Desk, until_files: Callable[..., Awaitable[list[str]]]
) -> None:
    opened = await desk.opens("work/sales.ipynb")
    person = await desk.sits_at(opened["kernel"]["id"])
    await person.has_run("sales = [1]\ntheirs = 1")
    session = await agent.open(target=notebook_target("work/sales.ipynb"))
    done = await finished(
        agent, await agent.run(session, "sales.append(2)\nopen('out.csv', 'w').close()")
    )
    assert variables(done) == [("changed", "sales")]
    assert await until_files(done) == ["out.csv"]
    await person.has_run("theirs = 2\nmore = 3")
    again = await finished(agent, await agent.run(session, "mine = theirs"))
    assert variables(again) == [("added", "mine")]


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"notebook": "none"}}])
async def test_in_a_persons_kernel_nothing_is_asked_by_default(agent: Agent, desk: Desk) -> None:
    await desk.opens("work/sales.ipynb")
    session = await agent.open(target=notebook_target("work/sales.ipynb"))
    done = await finished(agent, await agent.run(session, "x = 1"))
    assert (done["status"], done["changes"]) == ("ok", None)


@pytest.fixture
def recorded_types(history_dir: Path) -> Callable[[dict[str, Any]], list[str]]:
    def read(session: dict[str, Any]) -> list[str]:
        path = history_dir / "sessions" / session["id"] / "journal.jsonl"
        return [json.loads(line)["entry"]["type"] for line in path.read_text().splitlines()]

    return read


@pytest.mark.parametrize("agent_exec_config", [{"record_changes": "off"}])
async def test_nothing_is_recorded_where_nobody_wants_it(
    agent: Agent, recorded_types: Callable[[Any], list[str]]
) -> None:
    session = await agent.open()
    done = await agent.run(session, "x = 1\nopen('a.txt', 'w').close()")
    assert done["changes"] is None
    await agent.ask("POST", f"sessions/{session['id']}/close", {})
    assert "files_changed" not in recorded_types(session)
