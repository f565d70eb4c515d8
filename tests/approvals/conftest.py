"""What the tests of review share."""

from __future__ import annotations

from tests.real_server import gate
from tests.sessions.living_notebook import cells_have_time, desk

__all__ = ["cells_have_time", "desk", "gate"]
