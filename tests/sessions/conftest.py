"""What the tests of sessions share."""

from __future__ import annotations

from living_notebook import desk
from real_server import gate
from slow_kernel import slow_kernel

__all__ = ["desk", "gate", "slow_kernel"]
