from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import Run

from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS
from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet


@pytest.fixture(scope="session")
def folder(jupyter_folders: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with one server for all that start there."""
    made = tmp_path_factory.mktemp("work")
    OWN_SERVERS.acquire(made)
    yield made
    OWN_SERVERS.release(made)


@pytest.fixture(scope="module")
def toolset(folder: Path) -> Iterator[PythonInterpreterToolSet]:
    """A tool set that the tests of a file share."""
    made = PythonInterpreterToolSet("python", workdir=str(folder), timeout=60)
    yield made
    asyncio.run(made.cleanup())


@pytest.fixture
def client(request: pytest.FixtureRequest) -> dict[str, str]:
    """What the context of a client that no other test has names."""
    return {"client_id": request.node.name}


@pytest.fixture(scope="module")
def run(toolset: PythonInterpreterToolSet) -> Run:
    """Run code, and wait."""

    def run(code: str, **arguments: Any) -> dict[str, Any]:
        return asyncio.run(toolset.run_python_code(code, **arguments))

    return run
