from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_agent_exec.client import AgentExecClient, Session
from tests.real_server import RealServer, gate, real_server

__all__ = ["gate"]


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="package")
def client(server: RealServer) -> Iterator[AgentExecClient]:
    with AgentExecClient(server.url, server.token) as client:
        yield client


@pytest.fixture
def session(client: AgentExecClient) -> Iterator[Session]:
    with client.open_session("tester") as session:
        yield session
