"""AutoGen 0.2's code executors (`autogen.coding`), in agent sessions.

The names are AutoGen's: to switch, a program changes only an import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from .executors import EmbeddedIPythonCodeExecutor, JupyterCodeExecutor, UserCapability
from .ipython_results import (
    CodeExecutor,
    DockerJupyterServer,
    FrameworkFactory,
    IPythonCodeResult,
    JupyterClient,
    JupyterConnectable,
    JupyterConnectionInfo,
)
from .local_server import LocalJupyterServer

__all__ = [
    "CodeExecutorFactory",
    "DockerJupyterServer",
    "EmbeddedIPythonCodeExecutor",
    "IPythonCodeResult",
    "JupyterClient",
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
    """Make the executor of a code execution configuration.

    Parameters
    ----------
    code_execution_config
        A mapping whose `executor` is an executor or a name: ``"ipython-embedded"``,
        ``"jupyter-server"`` or another name of AutoGen's. The parameters of the first two are under
        the key of that name. `jupyter_server` may also be a mapping with the fields of
        `JupyterConnectionInfo`.

    Returns
    -------
    CodeExecutor or False
        False if `code_execution_config` is False, which switches code execution off.

    Raises
    ------
    ValueError
        The name is unknown, or a parameter is invalid.
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
    """Make AutoGen's agents create executors with `create`, in this whole process.

    Then an agent accepts a configuration with a name, such as ``{"executor": "ipython-embedded"}``.
    AutoGen has no registry of executors, so this replaces the function of its factory.
    """
    FrameworkFactory.create = staticmethod(create)


class CodeExecutorFactory:
    """Makes executors, like AutoGen's class of this name."""

    create = staticmethod(create)
