"""Kernels of servers in this process start from one process that has imported what they need."""

from __future__ import annotations

import os

from tests.asking import Agent


async def test_a_kernel_is_forked(agent: Agent) -> None:
    session = await agent.open()
    execution = await agent.run(session, "import os; os.getppid()")
    assert execution["cell"]["outputs"][0]["data"]["text/plain"] != str(os.getpid())
