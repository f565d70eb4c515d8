"""AutoGen's own client of a Jupyter server, unchanged, with ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from autogen_ext.code_executors.docker_jupyter import DockerJupyterCodeExecutor
from autogen_ext.code_executors.docker_jupyter._jupyter_server import JupyterConnectionInfo
from running import executed

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
