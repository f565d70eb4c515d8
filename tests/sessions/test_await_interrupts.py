"""Code at a top-level `await` heeds interrupts like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent
from tests.gateway.gateways import ENTERPRISE_GATEWAY
from tests.sessions.kernelspecs import install_kernel
from tests.sessions.living_notebook import Desk, finished, notebook_target, until_it_prints

AWAITS = """
import asyncio
print('there', flush=True)
await asyncio.sleep(1000)
"""


@pytest.fixture
def early_kernel(jp_data_dir: Path) -> str:
    """Install a kernel of ipykernel 6, which has no subshells; return its name."""
    if not ENTERPRISE_GATEWAY.exists():
        pytest.skip("there is no ipykernel 6: make .make/enterprise-gateway/done")
    launcher = ("-m", "ipykernel_launcher")
    return install_kernel(jp_data_dir, "early", *launcher, executable=ENTERPRISE_GATEWAY).name


async def check_each_way_to_interrupt(agent: Agent, session: dict[str, Any]) -> None:
    done = await agent.run(session, AWAITS, timeout=0.5, wait=60)
    assert (done["status"], done["interrupt_ignored"]) == ("timed_out", False), done
    for path in ("executions/{}/cancel", "sessions/{}/interrupt"):
        awaits = await agent.run(session, AWAITS, wait=0)
        await until_it_prints(agent, awaits)
        ids = awaits if path.startswith("executions") else session
        await agent.ask("POST", path.format(ids["id"]))
        done = await finished(agent, awaits)
        assert (done["status"], done["interrupt_ignored"]) == ("interrupted", False), path
    after = await agent.run(session, "6 * 7", wait=60)
    assert (after["text"].strip(), after["kernel"]["incarnation"]) == ("42", 1)


async def test_in_a_scratch_kernel(agent: Agent) -> None:
    await check_each_way_to_interrupt(agent, await agent.open())


@pytest.mark.nightly
async def test_in_a_kernel_without_subshells(agent: Agent, early_kernel: str) -> None:
    session = await agent.open(target={"kind": "scratch", "kernel_name": early_kernel})
    await check_each_way_to_interrupt(agent, session)


async def test_in_a_kernel_of_the_users(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    for target in (notebook_target(), {"kind": "kernel", "kernel_id": kernel_id}):
        await check_each_way_to_interrupt(agent, await agent.open(target=target))
