"""AutoGen 0.2's code executors (`autogen.coding`), in agent sessions.

The names are the framework's, so that a program switches by changing an import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from .executors import EmbeddedIPythonCodeExecutor, JupyterCodeExecutor, UserCapability
from .ipython_results import (
    CodeExecutor,
    FrameworkFactory,
    IPythonCodeResult,
    JupyterConnectable,
    JupyterConnectionInfo,
)
from .local_server import LocalJupyterServer

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


_framework_create = FrameworkFactory.create


@overload
def create(code_execution_config: Mapping[str, Any]) -> CodeExecutor: ...


@overload
def create(code_execution_config: Literal[False]) -> Literal[False]: ...


def create(
    code_execution_config: Mapping[str, Any] | Literal[False],
) -> CodeExecutor | Literal[False]:
    """Make what a configuration of code execution asks for.

    Parameters
    ----------
    code_execution_config
        Its `executor` is an executor, or a name: ``"ipython-embedded"`` or ``"jupyter-server"``,
        whose parameters stand under that name, or another one that the framework knows. The
        `jupyter_server` of the second may also be a mapping, of what `JupyterConnectionInfo` has.

    Returns
    -------
    CodeExecutor or False
        False for False: no code is to be executed.

    Raises
    ------
    ValueError
        The name is unknown, or a parameter is not what it may be.
    """
    if code_execution_config is False:
        return False
    name = code_execution_config.get("executor")
    if name == "ipython-embedded":
        return EmbeddedIPythonCodeExecutor(**code_execution_config.get(name, {}))
    if name == "jupyter-server":
        options = dict(code_execution_config.get(name, {}))
        server = options.get("jupyter_server")
        if isinstance(server, Mapping):
            options["jupyter_server"] = JupyterConnectionInfo(**server)
        return JupyterCodeExecutor(**options)
    return _framework_create(code_execution_config)


def use_in_agents() -> None:
    """Have the framework's agents make executors as `create` does, in this whole program.

    Then a configuration with a name, such as ``{"executor": "ipython-embedded"}``, may be given to
    an agent as it is. The framework has no registry of executors; this replaces its factory's
    function.
    """
    FrameworkFactory.create = staticmethod(create)


class CodeExecutorFactory:
    """Makes executors, as the framework's class of this name does."""

    create = staticmethod(create)
