"""What the tests of sessions share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from living_notebook import Desk
from real_server import gate
from tornado.httpclient import HTTPResponse

__all__ = ["gate"]


@pytest.fixture
def desk(
    jp_serverapp: Any, jp_fetch: Callable[..., Awaitable[HTTPResponse]], jp_root_dir: Path
) -> Iterator[Desk]:
    desk = Desk(jp_serverapp, jp_fetch, jp_root_dir)
    yield desk
    desk.leaves()
