"""What the tests of notebooks share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.journal.history import History
from tests.journal.recorded import new_history
from tests.notebooks.deciding_bench import Bench
from tests.notebooks.ways import DictWay, code, notebook
from tests.real_server import gate
from tests.sessions.living_notebook import desk

__all__ = ["desk", "gate"]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = new_history(tmp_path / "agent_exec")
    yield history
    history.stop()


@pytest.fixture
def bench(history: History) -> Bench:
    return Bench(history, DictWay(notebook(code("a", "1"))))
