from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_server import RealServer, real_server


@pytest.fixture(scope="session", autouse=True)
def in_folder(folder: Path) -> None:
    """All tests are in the folder with a server: executors start theirs in the current one."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, jupyter_folders: None) -> Iterator[RealServer]:
    """A server that somebody runs."""
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running
