"""What the tests of checkpoints share."""

from __future__ import annotations

from tests.sessions.living_notebook import desk

__all__ = ["desk"]
