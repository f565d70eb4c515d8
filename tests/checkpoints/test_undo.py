"""Undo through the routes: the kernel is as it was before an execution (docs/how-to/undo.md)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.asking import Agent
from tests.sessions.living_notebook import Desk, entries, notebook_target

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


async def turned_on(agent: Agent, desk: Desk) -> tuple[str, dict[str, Any]]:
    """Open a notebook, turn on checkpoints of its kernel; return its id and an agent's session."""
    opened = await desk.opens()
    session = await agent.open(target=notebook_target())
    kernel_id = opened["kernel"]["id"]
    told = await agent.ask("PUT", f"kernels/{kernel_id}/checkpoints", {"enabled": True})
    assert (told.status, told.json["enabled"], told.json["available"]) == (200, True, True)
    return kernel_id, session


async def test_undo_brings_variables_back_and_every_client_goes_on(
    agent: Agent, desk: Desk
) -> None:
    kernel_id, session = await turned_on(agent, desk)
    person = await desk.sits_at(kernel_id)
    await person.has_run("x = 1")
    ran = await agent.run(session, "x = 2")
    assert ran["status"] == "ok"
    listed = (await agent.get(f"kernels/{kernel_id}/checkpoints")).json
    assert [(each["execution_id"], each["undoable"]) for each in listed["checkpoints"]] == [
        (ran["id"], True)
    ], listed
    assert listed["checkpoints"][0]["bytes"] > 0
    undone = await agent.ask("POST", f"executions/{ran['id']}/undo")
    assert undone.status == 200, undone.body
    assert undone.json["taken_back"] == [ran["id"]]
    assert undone.json["kernel"]["id"] == kernel_id
    await person.has_run("assert x == 1")
    after = await agent.run(session, "x")
    assert (after["text"], after["kernel"]["incarnation"], after["kernel"]["reason"]) == (
        "1", 2, "undone",
    )  # fmt: skip
    looked = (await agent.get(f"executions/{ran['id']}")).json
    assert looked["undone_at"]
    assert looked["cell"]["metadata"]["agent_exec"]["undone_by"] == looked["undone_by"]
    kinds = [entry["type"] for entry in await entries(agent, session)]
    assert "undone" in kinds
    again = await agent.ask("POST", f"executions/{ran['id']}/undo")
    assert (again.status, again.json["code"]) == (409, "undo_unavailable")
