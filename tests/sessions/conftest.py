"""What the tests of sessions share."""

from __future__ import annotations

from tests.real_server import gate
from tests.sessions.living_notebook import desk
from tests.sessions.odd_kernel import odd_kernel
from tests.sessions.slow_kernel import slow_kernel

__all__ = ["desk", "gate", "odd_kernel", "slow_kernel"]
