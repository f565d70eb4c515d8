"""What other packages have no public way for: still needed, and still done."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.auth import User
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import web

from jupyter_agent_exec.workarounds import (
    forget_failed_starts,
    note_current_user,
)
from tests.asking import Agent, Send
from tests.kernels.kernel_server import AgentRun, kernel_server, text

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


async def test_only_the_socket_of_a_users_kernel_is_changed() -> None:
    async with kernel_server() as server:
        kernel = await server.live.adopt(await server.start_kernel())
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


class PlainHandler(JupyterHandler):
    """Checks the XSRF cookie, as Jupyter does, of a user whom it has found by itself."""

    async def prepare(self) -> None:
        self.current_user = User("ada")
        if self.get_argument("noted", ""):
            note_current_user(self, self.current_user)

    @allow_unauthenticated
    def post(self) -> None:
        self.check_xsrf_cookie()
        self.finish("passed")


async def test_jupyter_checks_the_xsrf_cookie_of_users_that_were_noted(
    jp_serverapp: Any, jp_base_url: str, send: Send
) -> None:
    jp_serverapp.web_app.add_handlers(".*$", [(f"{jp_base_url}plain", PlainHandler)])
    passed = await send("POST", "plain", body="")
    assert passed.status == 200  # else `note_current_user` is needed no longer
    refused = await send("POST", "plain", query={"noted": "yes"}, body="")
    assert refused.status == 403
