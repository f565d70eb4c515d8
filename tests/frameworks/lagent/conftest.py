from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter
from tests.real_server import RealServer, real_server


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
