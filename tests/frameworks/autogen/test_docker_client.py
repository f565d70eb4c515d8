"""AutoGen's own client of a Jupyter server, unchanged, with ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from autogen_ext.code_executors.docker_jupyter import DockerJupyterCodeExecutor
from autogen_ext.code_executors.docker_jupyter._jupyter_server import JupyterConnectionInfo
from running import executed

from jupyter_agent_exec.client import AsyncAgentExecClient, AsyncSession
from jupyter_agent_exec.models import KernelTarget
from tests.real_server import RealServer

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"


@pytest.fixture
def remote(server: RealServer, tmp_path: Path) -> DockerJupyterCodeExecutor:
    address = urlsplit(server.url)
    assert address.hostname is not None
    info = JupyterConnectionInfo(address.hostname, False, address.port, server.token)
    return DockerJupyterCodeExecutor(info, timeout=30, output_dir=tmp_path)


def test_it_works_as_with_any_jupyter_server(remote: DockerJupyterCodeExecutor) -> None:
    async def all_of_it() -> None:
        async with remote:
            assert (await executed(remote, "x = 41", "print(x + 1)")).output == "\n42\n"
            failed = await executed(remote, "1 / 0", "never = 1")
            assert failed.exit_code == 1
            assert "ZeroDivisionError" in failed.output
            plot = await executed(remote, PLOT)
            assert [file.suffix for file in plot.output_files] == [".png"]
            await remote.restart()
            assert (await executed(remote, "'x' in dir()")).output == "False"

    asyncio.run(all_of_it())


def test_what_it_runs_is_recorded_where_people_are(
    remote: DockerJupyterCodeExecutor, server: RealServer
) -> None:
    async def all_of_it() -> dict[str, Any]:
        async with remote, AsyncAgentExecClient(server.url, server.token) as client:
            await executed(remote, "print('of the remote ' + 'client')")
            while True:
                async for session in client.sessions(target="kernel", status="open"):
                    assert isinstance(session.info.target, KernelTarget)
                    if session.info.target.kernel_id == remote._kernel_id and (
                        told := await what_people_ran(session)
                    ):
                        return told[0]

    async def what_people_ran(session: AsyncSession) -> list[dict[str, Any]]:
        events = (await session.export())["metadata"]["agent_exec"]["events"]
        return [event for event in events if event["type"] == "person_ran"]

    told = asyncio.run(all_of_it())
    assert told["source_text"] == "print('of the remote ' + 'client')"
    assert (told["by"]["username"], told["status"]) == ("autogen", "ok")
