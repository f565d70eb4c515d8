"""One server for all tests that only talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.tools_bench import bench
from tests.real_server import RealServer, gate, real_server
from tests.sessions.living_notebook import cells_have_time, desk

__all__ = ["bench", "cells_have_time", "desk", "gate"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as server:
        yield server
