"""A real Jupyter Server with the extension, for each test that asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from asking import Agent
from tornado.httpclient import HTTPResponse

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    """Traits of the extension; tests override this."""
    return {}


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], history_dir: Path, agent_exec_config: dict[str, Any]
) -> dict[str, Any]:
    return {
        **jp_server_config,
        "ServerApp": {
            "jpserver_extensions": {"jupyter_agent_exec": True},
            "allow_unauthenticated_access": False,
        },
        "AgentExecApp": {"history_dir": str(history_dir), **agent_exec_config},
    }


@pytest.fixture
def agent(jp_fetch: Callable[..., Awaitable[HTTPResponse]]) -> Agent:
    return Agent(jp_fetch)
