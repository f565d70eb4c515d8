"""What the tests of notebooks share."""

from __future__ import annotations

from tests.notebooks.tabs import open_tab
from tests.real_server import gate
from tests.sessions.living_notebook import desk

__all__ = ["desk", "gate", "open_tab"]
