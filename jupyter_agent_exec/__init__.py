"""AI agents run code in a person's Jupyter, in the open.

A Jupyter Server extension: agents execute code through authenticated routes, and each execution is
kept as a notebook cell in a history that can be searched, verified and exported.
"""

from __future__ import annotations

import sys
from typing import Any

from ._version import __version__

__all__ = ["__version__"]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    if sys.platform == "win32":
        return [{"module": __name__}]
    from .app import AgentExecApp

    return [{"module": "jupyter_agent_exec", "app": AgentExecApp}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Add nothing, and say so in the server's log; called on Windows only."""
    from .errors import UNSUPPORTED_SYSTEM

    serverapp.log.warning(UNSUPPORTED_SYSTEM)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-agent-exec"}]
