"""Events about what happens in sessions, without a server."""

from __future__ import annotations

from typing import Any

from jupyter_agent_exec.sessions.activity import Activity
from jupyter_agent_exec.types import ExecutionId


async def test_output_after_the_end_of_an_execution_does_not_hide_its_final_status() -> None:
    emitted: list[dict[str, Any]] = []
    activity = Activity(emitted.append)
    activity.publish("execution", None, ExecutionId("x_1"), status="running", seq=3)
    activity.publish("execution", None, ExecutionId("x_1"), status="ok", seq=3)
    activity.publish("approvals")
    activity.publish("execution", None, ExecutionId("x_1"))  # late output
    activity.stop()
    assert emitted == [
        {"serial": 1, "action": "approvals"},
        {"serial": 2, "action": "execution", "execution_id": "x_1", "status": "ok", "seq": 3},
    ]
