"""`EmbeddedIPythonCodeExecutor`: code in a kernel that is there for this executor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...client import Agent, Preloadable
from ..kernel_session import SessionTarget
from .executor import KernelCodeExecutor


class EmbeddedIPythonCodeExecutor(KernelCodeExecutor):
    """A code executor that needs nothing but itself.

    By default its kernel runs, in the current folder, on a server that is started for it.

    Parameters
    ----------
    timeout
        Seconds each block may run; at least 1.
    kernel_name
        The kernelspec of a scratch kernel.
    output_dir
        Where images and HTML are saved.
    system_message_update
        What `user_capability` tells an agent; a text of ours when None.
    url, token
        A Jupyter server with this extension on which to run instead.
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
        timeout: float = 60,
        kernel_name: str = "python3",
        output_dir: Path | str = ".",
        system_message_update: str | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        notebook: str | None = None,
        kernel_id: str | None = None,
        agent: str | Agent | None = None,
        preload_modules: Sequence[Preloadable] = (),
    ) -> None:
        super().__init__(
            SessionTarget(url=url, token=token, notebook=notebook, kernel_id=kernel_id),
            kernel_name=kernel_name,
            timeout=timeout,
            output_dir=output_dir,
            agent=agent,
            preload_modules=preload_modules,
            system_message_update=system_message_update,
        )
        self.timeout = timeout
        self.kernel_name = kernel_name
        self.output_dir = str(output_dir)

    def _not_installed(self, kernel_name: str) -> str:
        return (
            f"Kernel {kernel_name} is not installed. Please first install it with "
            f"`python -m ipykernel install --user --name {kernel_name}`."
        )
