from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_server import RealServer, real_server

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter
from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, jupyter_folders: None) -> Iterator[Path]:
    """The current folder, with one server for all that is started in it."""
    before, made = Path.cwd(), tmp_path_factory.mktemp("work")
    os.chdir(made)
    OWN_SERVERS.acquire(made)
    yield made
    OWN_SERVERS.release(made)
    os.chdir(before)


@pytest.fixture(scope="session")
def interpreter(folder: Path) -> Iterator[IPythonInterpreter]:
    """One with which tests may do what leaves it in order."""
    with IPythonInterpreter(timeout=60, work_dir="images") as made:
        yield made


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, jupyter_folders: None) -> Iterator[RealServer]:
    """A server that somebody runs."""
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running
