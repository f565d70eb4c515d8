"""What the tests of notebooks share."""

from __future__ import annotations

from living_notebook import desk
from real_server import gate

__all__ = ["desk", "gate"]
