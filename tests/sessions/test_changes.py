"""What an execution changed besides its outputs: variables, and files in its kernel's folder."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, finished, notebook_target


@pytest.fixture
def until_files(agent: Agent) -> Callable[..., Awaitable[list[str]]]:
    """Wait until the record has files that changed while an execution ran; return their paths."""

    async def wait(execution: dict[str, Any], *, to: int = 1) -> list[str]:
        path = f"sessions/{execution['session_id']}/notebook"
        while True:
            for cell in (await agent.get(path)).json["cells"]:
                changed = cell["metadata"]["agent_exec"].get("files_changed_meanwhile")
                if cell["id"] == execution["id"] and changed and len(changed["files"]) >= to:
                    return [file["path"] for file in changed["files"]]

    return wait


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


async def test_files_are_recorded_that_were_written_overwritten_and_in_folders(
    agent: Agent, jp_root_dir: Path, until_files: Callable[..., Awaitable[list[str]]]
) -> None:
    work = jp_root_dir / "work"
    (work / "deep" / "er").mkdir(parents=True)
    (work / "old.csv").write_text("1,2")
    (work / "kept.csv").write_text("1,2")
    (work / "link.csv").symlink_to(work / "old.csv")
    session = await agent.open(target={"kind": "scratch", "cwd": "work"})
    source = """
import os, time
for path in ("new.txt", "old.csv", "deep/er/ä.txt", ".hidden", "gone.txt"):
    with open(path, "w") as file:
        file.write("123")
os.mkdir("__pycache__")
open("__pycache__/x.pyc", "w").close()
os.remove("gone.txt")
"""
    done = await agent.run(session, source)
    assert await until_files(done, to=3) == ["deep/er/ä.txt", "new.txt", "old.csv"]
    assert variables(done)
    told = (await agent.get(f"executions/{done['id']}")).json
    assert "new.txt" not in str({**told, "source": None, "cell": {**told["cell"], "source": None}})
    again = await agent.run(session, "open('again.txt', 'w').close()")
    assert await until_files(again) == ["again.txt"]


async def test_files_of_a_session_that_is_closed_at_once_are_recorded(
    agent: Agent, until_files: Callable[..., Awaitable[list[str]]]
) -> None:
    session = await agent.open()
    done = await agent.run(session, "open('last.txt', 'w').close()")
    await agent.ask("POST", f"sessions/{session['id']}/close", {})
    assert await until_files(done) == ["last.txt"]


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
