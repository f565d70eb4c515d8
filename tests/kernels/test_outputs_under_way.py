"""Code has ended, and the kernel still has output of it to send."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jupyter_agent_exec.kernels.live_kernels import LiveKernel
from jupyter_agent_exec.models import Omitted
from tests.kernels.kernel_server import SOON, AgentRun, KernelServer, kernel_server, text
from tests.server_process import Gate

pytestmark = pytest.mark.usefixtures("jp_environ")

HOLDS_BACK = """
import sys, threading
kernel = get_ipython().kernel
held, goes_on = threading.Event(), threading.Event()
def hold():
    held.set()
    goes_on.wait()
def holds_back(size):
    sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0
    kernel.iopub_thread.schedule(hold)
    held.wait()
    print("." * size)
"""
"""Code after which a kernel can answer while its thread for IOPub has not sent the output."""

ASKED = """
answer = kernel.shell_handlers["kernel_info_request"]
def asked_first(*args):
    asked()
    return answer(*args)
kernel.shell_handlers["kernel_info_request"] = asked_first
"""
"""Code after which the kernel calls `asked` when it is asked for something after some code."""

STAYS_BUSY = """
tell = kernel._publish_status
def stays_busy(status, *args, **options):
    if (status, kernel.get_parent()["header"]["msg_type"]) != ("idle", "execute_request"):
        tell(status, *args, **options)
kernel._publish_status = stays_busy
"""
"""Code after which the kernel never says that code has ended on IOPub."""

NEVER_IDLE = """
tell = kernel._publish_status
kernel._publish_status = lambda status, *args, **options: (
    status == "idle" or tell(status, *args, **options)
)
"""
SAYS_NO_STATE = "kernel._publish_status = lambda *args, **options: None"


def tells(gate: Gate) -> str:
    return f"def asked():\n    {gate.here}"


SIZE = 3_000_000


async def in_new_kernel(server: KernelServer, *sources: str, silence: float = SOON) -> LiveKernel:
    kernel = await server.live.adopt(await server.start_kernel())
    kernel.connection.requests.silence_seconds = silence
    kernel.connection.requests.ask_delay = 0.05
    await AgentRun(1, "".join(sources)).in_turn(kernel)
    return kernel


async def test_output_that_comes_long_after_the_reply_is_waited_for() -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server, HOLDS_BACK, ASKED, "asked = goes_on.set")
        ended = await AgentRun(2, f"holds_back({SIZE})").in_turn(kernel)
        assert (ended.status, ended.reason) == ("ok", None)
        assert (ended.omitted.outputs, ended.omitted.unknown) == (0, False)
        notes = [output for output in ended.outputs if output["output_type"] != "stream"]
        assert len(text(ended)) + ended.omitted.bytes == SIZE + 1
        assert len(notes) == 1


async def test_the_output_of_a_kernel_that_does_not_go_idle_is_complete() -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server, "kernel = get_ipython().kernel", STAYS_BUSY)
        ended = await AgentRun(2, "print('on')").in_turn(kernel)
        assert (ended.status, ended.reason, text(ended)) == ("ok", None, "on\n")
        assert ended.outputs_complete


@pytest.mark.parametrize(("source", "is_complete"), [(NEVER_IDLE, True), (SAYS_NO_STATE, False)])
async def test_a_kernel_that_is_never_idle_runs_the_next_code(
    source: str, is_complete: bool
) -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server, "kernel = get_ipython().kernel\n", source, silence=0.2)
        for number in (2, 3):
            ended = await AgentRun(number, "print('on')").in_turn(kernel)
            assert (ended.status, text(ended)) == ("ok", "on\n")
            assert ended.outputs_complete is is_complete


async def test_output_that_is_not_waited_for_any_longer_is_unknown(tmp_path: Path) -> None:
    asked = Gate(tmp_path, "asked")
    async with kernel_server() as server:
        kernel = await in_new_kernel(server, HOLDS_BACK, ASKED, tells(asked))
        run = AgentRun(2, f"holds_back({SIZE})")
        running = run.in_turn(kernel)
        await asyncio.to_thread(asked.until_it_is_here)
        assert not kernel.connection.requests.is_running(run.run)
        kernel.connection.end_incomplete(run.run)
        ended = await running
        assert (ended.status, text(ended), ended.outputs_complete) == ("ok", "", False)
        assert ended.omitted == Omitted(unknown=True)
        assert ended.reason is not None
        assert "not known" in ended.reason


async def test_a_kernel_that_ends_with_output_under_way_leaves_it_unknown(tmp_path: Path) -> None:
    asked = Gate(tmp_path, "asked")
    async with kernel_server(KernelManager={"autorestart": False}) as server:
        kernel = await in_new_kernel(server, HOLDS_BACK, ASKED, tells(asked))
        run = AgentRun(2, f"holds_back({SIZE})")
        running = run.in_turn(kernel)
        await asyncio.to_thread(asked.until_it_is_here)
        await server.kernels.shutdown_kernel(kernel.id, now=True)
        death = await asyncio.wait_for(kernel.death(), SOON)
        kernel.connection.abandon(death.message)  # as a session does
        ended = await running
        assert (ended.status, ended.omitted) == ("ok", Omitted(unknown=True))
        assert not ended.outputs_complete
