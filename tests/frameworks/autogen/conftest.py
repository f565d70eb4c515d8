from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor
from tests.real_server import RealServer, real_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def executor(
    server: RealServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JupyterCodeExecutor]:
    """An executor that is started, for all tests of a file."""
    made = JupyterCodeExecutor(
        timeout=30,
        output_dir=tmp_path_factory.mktemp("files"),
        target=Target(url=server.url, token=server.token),
    )
    asyncio.run(made.start())
    yield made
    asyncio.run(made.stop())


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Where code leaves a file once it runs."""
    return tmp_path / "started"
