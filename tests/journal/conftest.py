from __future__ import annotations

import resource

import pytest

from tests.journal.recorded import new_history, opened, write_history


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agent_exec"


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A history with each kind of entry in its ledger, to be copied."""
    folder = tmp_path_factory.mktemp("history") / "agent_exec"
    write_history(folder)
    return folder


@pytest.fixture
def history(folder):
    history = new_history(folder)
    yield history
    history.stop()


@pytest.fixture
def session(history):
    return history.open_session(opened())


@pytest.fixture
def file_size_limit():
    """Set how large this process's files may grow, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft if size is None else size, hard))

    yield limit
    limit(None)
