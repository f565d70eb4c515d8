"""Dynamic sessions on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.aca.dynamic_asking import DynamicSession
from tests.asking import Send
from tests.files.files_asking import Wire
from tests.real_server import gate
from tests.sessions.living_notebook import desk

__all__ = ["desk", "gate", "session_of", "wire"]


@pytest.fixture
def session_of(ask: Send, jp_auth_header: dict[str, str]) -> Callable[..., DynamicSession]:
    """Return the session of an identifier, with the server's token or another credential."""

    def session_of(
        identifier: str = "one", headers: dict[str, str] | None = None
    ) -> DynamicSession:
        return DynamicSession(ask, headers or jp_auth_header, identifier)

    return session_of


@pytest.fixture
def wire(
    jp_serverapp: Any, jp_http_port: int, jp_base_url: str, jp_auth_header: dict[str, str]
) -> Iterator[Wire]:
    wire = Wire(jp_http_port, jp_base_url, jp_auth_header)
    yield wire
    wire.close()
