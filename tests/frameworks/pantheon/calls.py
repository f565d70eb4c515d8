"""How tests call the tool set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., dict[str, Any]]
"""Takes code, and what else `run_python_code` takes, and returns its answer."""
