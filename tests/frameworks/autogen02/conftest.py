from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_server import RealServer, real_server

from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS


@pytest.fixture(scope="session", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder, with one server for all that is started in it."""
    before, made = Path.cwd(), tmp_path_factory.mktemp("work")
    os.chdir(made)
    OWN_SERVERS.acquire(made)
    yield made
    OWN_SERVERS.release(made)
    os.chdir(before)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, jupyter_folders: None) -> Iterator[RealServer]:
    """A server that somebody runs, which records what people do."""
    with real_server(
        tmp_path_factory.mktemp("server"), "--AgentExecApp.record_people=outputs"
    ) as running:
        yield running
