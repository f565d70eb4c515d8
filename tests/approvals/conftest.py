"""What the tests of review share."""

from __future__ import annotations

from tests.real_server import gate
from tests.sessions.living_notebook import desk

__all__ = ["desk", "gate"]
