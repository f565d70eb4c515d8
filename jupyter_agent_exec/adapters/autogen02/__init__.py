"""AutoGen 0.2's code executors (`autogen.coding`), in agent sessions.

The names are the framework's, so that a program switches by changing an import.
"""

from __future__ import annotations

from .embedded import EmbeddedIPythonCodeExecutor
from .factory import CodeExecutorFactory, create, use_in_agents
from .framework import IPythonCodeResult, JupyterConnectable, JupyterConnectionInfo
from .jupyter import JupyterCodeExecutor
from .local_server import LocalJupyterServer
from .user_capability import UserCapability

__all__ = [
    "CodeExecutorFactory",
    "EmbeddedIPythonCodeExecutor",
    "IPythonCodeResult",
    "JupyterCodeExecutor",
    "JupyterConnectable",
    "JupyterConnectionInfo",
    "LocalJupyterServer",
    "UserCapability",
    "create",
    "use_in_agents",
]
