"""Asking for checkpoints and undo, as a user does."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.asking import Agent
from tests.kernels.kernel_server import Person
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target


async def turned_on(
    agent: Agent, desk: Desk, path: str = NOTEBOOK
) -> tuple[str, dict[str, Any], Person]:
    """Open a notebook and turn on its kernel's checkpoints; return its id, a session, a tab."""
    opened = await desk.opens(path)
    session = await agent.open(target=notebook_target(path))
    kernel_id = opened["kernel"]["id"]
    told = await agent.ask("PUT", f"kernels/{kernel_id}/checkpoints", {"enabled": True})
    assert (told.status, told.json["enabled"], told.json["available"]) == (200, True, True)
    return kernel_id, session, await desk.sits_at(kernel_id)


async def kept(agent: Agent, kernel_id: str) -> dict[str, Any]:
    """Return what the routes say of a kernel's checkpoints."""
    return dict((await agent.get(f"kernels/{kernel_id}/checkpoints")).json)


async def undone(agent: Agent, execution: dict[str, Any]) -> dict[str, Any]:
    answered = await agent.ask("POST", f"executions/{execution['id']}/undo")
    assert answered.status == 200, answered.body
    return dict(answered.json)


async def refused(agent: Agent, execution: dict[str, Any]) -> str:
    """Ask for an undo that is refused; return why."""
    answered = await agent.ask("POST", f"executions/{execution['id']}/undo")
    assert (answered.status, answered.json["code"]) == (409, "undo_unavailable"), answered.body
    return str(answered.json["message"])


def running_in(group: int) -> list[str]:
    """Return what runs in a group of processes."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = each.read_text().rpartition(")")
            state, _, its_group = rest.split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(name)
    return found
