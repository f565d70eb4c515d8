"""A session on a real server, and its files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.files.files_asking import Files, Wire


@pytest.fixture
def files_of(
    ask: Send, agent: Agent, jp_auth_header: dict[str, str]
) -> Callable[..., Awaitable[Files]]:
    """Open a session and return its files."""

    async def files_of(**asked: Any) -> Files:
        return Files(ask, await agent.open(**asked), jp_auth_header)

    return files_of


@pytest.fixture
def wire(
    jp_serverapp: Any, jp_http_port: int, jp_base_url: str, jp_auth_header: dict[str, str]
) -> Iterator[Wire]:
    wire = Wire(jp_http_port, jp_base_url, jp_auth_header)
    yield wire
    wire.close()
