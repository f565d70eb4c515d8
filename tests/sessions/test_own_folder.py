"""Sessions with a folder that no other has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.asking import Agent

OWN: dict[str, Any] = {"kind": "scratch", "own_folder": True}


async def folder_of(agent: Agent, session: dict[str, Any]) -> Path:
    done = await agent.run(session, "import os; print(os.getcwd(), end='')")
    return Path(done["text"])


async def test_a_folder_is_fresh_its_sessions_own_and_goes_with_it(
    agent: Agent, jp_root_dir: Path
) -> None:
    one, other = await agent.open(target=OWN), await agent.open(target=OWN)
    folders = [await folder_of(agent, session) for session in (one, other)]
    assert folders[0] != folders[1]
    assert not any(folder.is_relative_to(jp_root_dir) for folder in folders)
    await agent.run(one, "open('mine.txt', 'w').write('mine')")
    listed = [(await agent.get(f"sessions/{s['id']}/files")).json["files"] for s in (one, other)]
    assert [[file["path"] for file in files] for files in listed] == [["mine.txt"], []]
    await agent.ask("POST", f"sessions/{one['id']}/close")
    assert [folder.exists() for folder in folders] == [False, True]


async def test_a_folder_outlives_the_sessions_kernel(agent: Agent) -> None:
    session = await agent.open(target=OWN)
    await agent.run(session, "open('mine.txt', 'w').write('mine')")
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    done = await agent.run(session, "print(open('mine.txt').read())")
    assert done["text"].startswith("mine\n")


async def test_a_session_has_a_folder_of_its_own_or_names_one(agent: Agent) -> None:
    asked = {"agent": {"name": "a"}, "target": {**OWN, "cwd": ""}}
    refused = await agent.ask("POST", "sessions", asked)
    assert (refused.status, refused.json["detail"]) == (400, {"field": "target.own_folder"})
