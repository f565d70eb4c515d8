"""What Jupyter has no public way for: still needed, and still done."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import web

from jupyter_agent_exec.kernels.workarounds import forget_failed_starts
from tests.asking import Agent
from tests.kernels.living import AgentRun, house, text

LOOK = """
import json, sys
kernel = get_ipython().kernel
print(json.dumps({
    "execute_sleep": kernel._execute_sleep,
    "patched": [name for name in ("flush", "_flush") if name in vars(sys.stdout)],
    "buffers": hasattr(sys.stdout, "_buffers"),
    "waits": "send_multipart" in vars(kernel.iopub_thread.socket),
}))
"""


async def test_a_scratch_kernel_has_what_makes_it_quick(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, LOOK)
    (stream,) = done["cell"]["outputs"]
    found: dict[str, Any] = json.loads(stream["text"])
    patched = ["flush", "_flush"]
    assert found == {"execute_sleep": 0, "patched": patched, "buffers": True, "waits": False}


async def test_a_persons_kernel_is_left_as_it_is_but_for_how_its_socket_waits() -> None:
    async with house() as h:
        kernel = await h.live.adopt(await h.start_kernel())
        found = json.loads(text(await AgentRun(1, LOOK).in_turn(kernel)))
        # If ipykernel no longer sleeps before it answers, its argument is needed no longer.
        assert found.pop("execute_sleep") > 0
        assert found == {"patched": [], "buffers": True, "waits": True}


async def test_a_lone_surrogate_neither_loses_text_nor_keeps_the_kernel_waiting(
    agent: Agent,
) -> None:
    done = await agent.run(await agent.open(), r"print('before', '\udfff', 'after')")
    assert done["cell"]["outputs"][0]["text"] == "before \\udfff after\n"


async def test_a_server_stops_though_a_kernel_did_not_start(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    spec = {"argv": [f"{sys.prefix}/no-such-program"], "display_name": "b", "language": "b"}
    (tmp_path / "broken" / "kernel.json").write_text(json.dumps(spec))
    kernels = AsyncMappingKernelManager(
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(tmp_path)])
    )
    with pytest.raises(FileNotFoundError):
        await kernels.start_kernel(kernel_name="broken")
    with pytest.raises(web.HTTPError):  # else `forget_failed_starts` is needed no longer
        await kernels.shutdown_all()
    forget_failed_starts(kernels)
    await kernels.shutdown_all()
