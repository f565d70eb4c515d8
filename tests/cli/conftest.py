from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.command import Cli
from tests.real_server import RealServer, environment, gate, real_server

__all__ = ["gate"]


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def cli(server: RealServer, tmp_path: Path) -> Cli:
    """The command, where a server runs."""
    return Cli(server.environ, tmp_path)


@pytest.fixture
def cli_alone(tmp_path: Path) -> Cli:
    """The command, where none runs."""
    return Cli(environment(tmp_path), tmp_path)


class Recorded(NamedTuple):
    """A command that ran code where no server ran, and so started one, which has ended."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    @property
    def history(self) -> Path:
        """The history of the one session."""
        return self.folder / "data" / "agent_exec"


@pytest.fixture(scope="package")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    source = "import os\nprint(os.getcwd())\nos.getppid()"
    return Recorded(folder, Cli(environment(folder), folder)("run", source))
