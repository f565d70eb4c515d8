from __future__ import annotations

import os
import resource
from contextlib import contextmanager

import pytest

from jupyter_agent_exec.records import AccessDenied
from tests.journal.recorded import AT, BY, TOKENS, new_history, opened, write_history


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
def full_ledger(history, folder, file_size_limit):
    """A history whose ledger cannot be written; journals, which are smaller, can be."""
    (ledger,) = folder.glob("ledger-*.jsonl")
    while ledger.stat().st_size < 20_000:
        history.note(
            AccessDenied(at=AT, by=BY, token_id=TOKENS[0], code="c", method="GET", route="/r")
        )
    return lambda: file_size_limit(ledger.stat().st_size)


@pytest.fixture
def no_access(folder):
    """Return how to deny this process the folder, as a file server does without a ticket."""

    @contextmanager
    def denied():
        user = os.geteuid()
        folder.chmod(0)
        if user == 0:
            os.seteuid(65534)  # root may read everything
        try:
            yield
        finally:
            os.seteuid(user)
            folder.chmod(0o700)

    return denied


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
