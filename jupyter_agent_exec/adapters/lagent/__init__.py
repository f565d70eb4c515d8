"""lagent's code interpreters, as actions whose executions are recorded.

Replaces ``lagent.actions.ipython_interpreter``: has the same classes, functions and attributes.
"""

from __future__ import annotations

import builtins
from functools import cache
from typing import Any

from ..requirements import needed

with needed("lagent>=0.2.4,<0.6", "cachetools"):
    from .action_returns import (
        START_CODE,
        escape_ansi,
        extract_code,
        get_multiline_input,
        publish_image_to_local,
    )
    from .interpreters import AsyncIPythonInterpreter, BatchIPythonInterpreter, IPythonInterpreter

TimeoutError = builtins.TimeoutError
"""For code that imports it. Never raised: the `ActionReturn` reports a timeout."""

__all__ = [
    "START_CODE",
    "AsyncIPythonInterpreter",
    "BatchIPythonInterpreter",
    "IPythonInterpreter",
    "TimeoutError",
    "code_interpreter",
    "escape_ansi",
    "extract_code",
    "get_multiline_input",
    "publish_image_to_local",
]


@cache
def _code_interpreter() -> IPythonInterpreter:
    return IPythonInterpreter()


def __getattr__(name: str) -> Any:
    # Made at the first access, because an import must not make folders.
    if name == "code_interpreter":
        return _code_interpreter()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
