"""Servers: one that a program starts for itself, and one that somebody runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import autogen.coding.jupyter
import pytest
from autogen.coding.jupyter import JupyterCodeExecutor as FrameworkExecutor
from autogen.coding.jupyter import JupyterConnectable, JupyterConnectionInfo
from blocks import text

from jupyter_agent_exec.adapters import autogen02
from jupyter_agent_exec.adapters.autogen02 import JupyterCodeExecutor, LocalJupyterServer
from jupyter_agent_exec.client import ServerUnreachable
from jupyter_agent_exec.errors import Unauthenticated
from tests.real_server import RealServer


def info_of(server: RealServer) -> JupyterConnectionInfo:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    return JupyterConnectionInfo(
        host=parts.hostname, use_https=False, port=parts.port, token=server.token
    )


@pytest.fixture(scope="module")
def log_file(folder: Path) -> Path:
    return folder / "server.log"


@pytest.fixture(scope="module")
def local(log_file: Path) -> Iterator[LocalJupyterServer]:
    with LocalJupyterServer(token="known", log_file=str(log_file)) as server:
        yield server


def test_a_local_server_serves_our_executor_and_the_frameworks_own(
    local: LocalJupyterServer,
) -> None:
    assert isinstance(local, JupyterConnectable)
    assert (local.connection_info.token, local.connection_info.port) == ("known", local.port)
    assert "python3" in local.get_client().list_kernel_specs()["kernelspecs"]
    for make in (JupyterCodeExecutor, FrameworkExecutor):
        with make(local, timeout=30) as executor:
            assert text(executor, "x = 6", "print(x * 7)").split() == ["42"]


def test_each_name_of_the_framework_is_there_so_that_only_the_import_changes() -> None:
    for name in autogen.coding.jupyter.__all__:
        assert name in autogen02.__all__
    assert autogen02.DockerJupyterServer is autogen.coding.jupyter.DockerJupyterServer


def test_a_kernel_that_writes_much_past_its_streams_blocks_nothing(
    local: LocalJupyterServer,
) -> None:
    with FrameworkExecutor(local, timeout=30) as executor:
        assert text(executor, "import os\nos.write(2, b'x' * 300_000)\nprint('on')") == "on"


def test_a_local_servers_log_goes_where_it_was_told(
    local: LocalJupyterServer, log_file: Path
) -> None:
    assert "jupyter_agent_exec" in log_file.read_text()


def test_a_server_that_nobody_keeps_goes_on_as_in_the_documentation() -> None:
    executor = JupyterCodeExecutor(LocalJupyterServer())
    own = FrameworkExecutor(LocalJupyterServer().connection_info)
    gc.collect()
    for each in (executor, own):
        with each:
            assert text(each, "6 * 7") == "42"


def test_a_port_that_is_taken_is_told(local: LocalJupyterServer) -> None:
    with pytest.raises(ServerUnreachable, match=str(local.port)):
        LocalJupyterServer(port=local.port)


@pytest.mark.parametrize("token", ["", None])
def test_a_local_server_without_a_token_is_refused(token: str | None) -> None:
    with pytest.raises(ValueError, match="token"):
        LocalJupyterServer(token=token)  # type: ignore[arg-type]


def test_a_wrong_token_is_told(server: RealServer) -> None:
    info = info_of(server)
    info.token = "wrong"
    with pytest.raises(Unauthenticated):
        JupyterCodeExecutor(info)
