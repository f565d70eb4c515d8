"""`JupyterCodeExecutor`: code on a Jupyter server that somebody runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...client import Agent, Preloadable
from ..kernel_session import SessionTarget
from .executor import KernelCodeExecutor
from .framework import JupyterConnectable, JupyterConnectionInfo


class JupyterCodeExecutor(KernelCodeExecutor):
    """A code executor on a Jupyter server with this extension.

    Parameters
    ----------
    jupyter_server
        A `LocalJupyterServer`, or another of the framework's, or the `JupyterConnectionInfo` of
        one. When None: see `url`.
    kernel_name
        The kernelspec of a scratch kernel.
    timeout
        Seconds each block may run; at least 1.
    output_dir
        Where images and HTML are saved, on this side.
    url, token
        The server, in place of `jupyter_server`. When None, that of ``JUPYTER_AGENT_EXEC_URL``; if
        that is not set, the newest that runs here for a notebook or a kernel, else one that is
        started for this.
    notebook
        Contents path of a person's notebook: blocks become cells there, and run in its kernel.
    kernel_id
        Of a kernel that runs, to run in.
    agent
        Who asks, for the record; ``autogen`` when None.
    preload_modules
        Modules (``"pandas as pd"``) and functions that are loaded in the kernel first.

    Raises
    ------
    ValueError
        A parameter is not what it may be; nothing was started.
    """

    def __init__(
        self,
        jupyter_server: JupyterConnectable | JupyterConnectionInfo | None = None,
        kernel_name: str = "python3",
        timeout: float = 60,
        output_dir: Path | str = ".",
        *,
        url: str | None = None,
        token: str | None = None,
        notebook: str | None = None,
        kernel_id: str | None = None,
        agent: str | Agent | None = None,
        preload_modules: Sequence[Preloadable] = (),
    ) -> None:
        if jupyter_server is not None:
            if url is not None or token is not None:
                raise ValueError("Give either jupyter_server, or url and token: not both.")
            url, token = _address(jupyter_server)
        super().__init__(
            SessionTarget(url=url, token=token, notebook=notebook, kernel_id=kernel_id),
            kernel_name=kernel_name,
            timeout=timeout,
            output_dir=output_dir,
            agent=agent,
            preload_modules=preload_modules,
        )


def _address(jupyter_server: JupyterConnectable | JupyterConnectionInfo) -> tuple[str, str | None]:
    if isinstance(jupyter_server, JupyterConnectable):
        jupyter_server = jupyter_server.connection_info
    if not isinstance(jupyter_server, JupyterConnectionInfo):
        raise ValueError("jupyter_server must be a JupyterConnectable or JupyterConnectionInfo.")
    scheme = "https" if jupyter_server.use_https else "http"
    port = "" if jupyter_server.port is None else f":{jupyter_server.port}"
    return f"{scheme}://{jupyter_server.host}{port}", jupyter_server.token
