"""No checkpoint outlives its kernel, however that ends, or its server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.asking import NAMESPACE, Agent
from tests.checkpoints.asking import kept, running_in, turned_on, undone
from tests.real_server import real_server, until
from tests.sessions.living_notebook import Desk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


async def cull(desk: Desk, kernel_id: str) -> None:
    """Have the server cull a kernel that nobody has used for a while."""
    kernels = desk.server.kernel_manager
    kernels.cull_idle_timeout, kernels.cull_connected = 60, True
    kernels.get_kernel(kernel_id).last_activity -= timedelta(hours=1)
    await kernels.cull_kernel_if_idle(kernel_id)


async def restart(desk: Desk, kernel_id: str) -> None:
    await desk.ask("POST", f"kernels/{kernel_id}/restart")


async def shut_down(desk: Desk, kernel_id: str) -> None:
    await desk.ask("DELETE", f"kernels/{kernel_id}")


@pytest.mark.parametrize("agent_exec_config", [{"checkpoints_per_kernel": 3}])
@pytest.mark.parametrize("end", [cull, restart, shut_down])
async def test_all_processes_end_with_the_kernel(
    agent: Agent, desk: Desk, end: Callable[[Desk, str], Awaitable[None]]
) -> None:
    kernel_id, session, _ = await turned_on(agent, desk)
    group = desk.server.kernel_manager.get_kernel(kernel_id).provisioner.pgid
    ran = [await agent.run(session, f"x = {number}") for number in range(3)]
    await undone(agent, ran[-1])
    await agent.run(session, "x = 3")
    assert len((await kept(agent, kernel_id))["checkpoints"]) == 3
    assert len(running_in(group)) == 4
    desk.leaves()
    await end(desk, kernel_id)
    assert running_in(group) == []
    if end is restart:
        told = await kept(agent, kernel_id)
        assert (told["enabled"], told["checkpoints"]) == (True, [])
        return
    assert kernel_id not in desk.server.kernel_manager
    is_ours = f"kernel-{kernel_id[:8]}".__eq__
    while any(is_ours(thread.name) for thread in threading.enumerate()):  # of our connection
        await asyncio.sleep(0.01)


def test_all_processes_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with (
        real_server(tmp_path, is_forked=False) as server,
        httpx2.Client(
            base_url=server.url, headers={"Authorization": f"token {server.token}"}, timeout=60
        ) as http,
    ):

        def ask(method: str, path: str, body: Any = None) -> Any:
            answer = http.request(method, path, json=body)
            answer.raise_for_status()
            return answer.json()

        kernel_id = ask("POST", "api/kernels")["id"]
        target = {"kind": "kernel", "kernel_id": kernel_id}
        session = ask(
            "POST", f"{NAMESPACE}/sessions", {"agent": {"name": "tester"}, "target": target}
        )
        ask("PUT", f"{NAMESPACE}/kernels/{kernel_id}/checkpoints", {"enabled": True})

        def run(source: str) -> Any:
            path = f"{NAMESPACE}/sessions/{session['id']}/executions"
            return ask("POST", path, {"source": source, "wait": 60})

        told = run("import os; print(os.getpgid(0), os.getppid())")
        group, of_server = map(int, told["text"].split())
        ask("POST", f"{NAMESPACE}/executions/{told['id']}/undo")
        run("1")
        assert len(running_in(group)) == 2
        os.kill(of_server, signal.SIGKILL)
        until(lambda: not running_in(group))
