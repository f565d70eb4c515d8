from __future__ import annotations

import pytest
from recorded import closed, new_history, opened


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agent_exec"


@pytest.fixture
def history(folder):
    history = new_history(folder)
    yield history
    history.stop()


@pytest.fixture
def session(history):
    return history.open_session(opened())


@pytest.fixture
def close(session):
    return lambda: session.close(closed())
