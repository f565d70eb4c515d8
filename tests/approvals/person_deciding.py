"""A person who decides what agents may run."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.asking import Agent, Answered


async def asks(agent: Agent, session: dict[str, Any], source: str, **asked: Any) -> dict[str, Any]:
    """Ask for an execution that has to ask a person; return it."""
    execution = await agent.run(session, source, wait=0, **asked)
    assert execution["status"] == "awaiting_approval", execution
    return execution


async def approve(agent: Agent, execution: dict[str, Any], **said: Any) -> Answered:
    sha256 = hashlib.sha256(execution["source"].encode()).hexdigest()
    return await agent.ask(
        "POST", f"executions/{execution['id']}/approve", {"source_sha256": sha256, **said}
    )


async def reject(agent: Agent, execution: dict[str, Any], reason: str | None = None) -> Answered:
    return await agent.ask("POST", f"executions/{execution['id']}/reject", {"reason": reason})


async def grant(agent: Agent, execution: dict[str, Any], span: str = "hour") -> Answered:
    """Approve an execution, and let its agent run more in the kernel."""
    return await approve(agent, execution, grant=span)


async def withdraw(agent: Agent, session: dict[str, Any]) -> Answered:
    return await agent.ask("DELETE", f"sessions/{session['id']}/grant")


async def set_policy(agent: Agent, **modes: str) -> Answered:
    return await agent.ask("PUT", "approvals/policy", modes)


async def set_paused(agent: Agent, paused: bool) -> dict[str, Any]:
    answered = await agent.ask("PUT", "approvals/pause", {"paused": paused})
    assert answered.status == 200, answered.body
    return dict(answered.json)


async def approvals(agent: Agent) -> dict[str, Any]:
    return dict((await agent.get("approvals")).json)


async def asking_ids(agent: Agent) -> list[str]:
    return [execution["id"] for execution in (await approvals(agent))["executions"]]


async def look(agent: Agent, execution: dict[str, Any]) -> dict[str, Any]:
    return dict((await agent.get(f"executions/{execution['id']}")).json)


async def until(agent: Agent, execution: dict[str, Any], status: str) -> dict[str, Any]:
    """Look until an execution has a status; the test's timeout is the bound."""
    while (looked := await look(agent, execution))["status"] != status:
        pass
    return looked
