"""AutoGen 0.2's code executors, which run blocks in an agent session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, TypeAlias, TypeVar

from ... import models
from ...client import Agent, Preloadable
from ...errors import KernelSpecNotFound
from ...text.guide import DATA, about_kernel, about_preloaded
from ..kernel_session import SCRATCH, KernelSession, SessionOptions, Target
from .ipython_results import (
    CodeBlock,
    CodeExtractor,
    ConversableAgent,
    IPythonCodeResult,
    JupyterConnectable,
    JupyterConnectionInfo,
    MarkdownCodeExtractor,
    code_result,
    source_of,
)

Self = TypeVar("Self", bound="KernelCodeExecutor")

_HOW: Final = """\
# Running code in a Jupyter kernel

You can solve tasks with code: you write it, and it is run for you. Put it into a Markdown code \
block with the language, such as:

```python
x = 3
```

- Each block runs as a cell, in order, up to the first that fails. You are told what the blocks \
wrote and showed, and why one failed; what was done before a failure is done.
- Variables, imports and functions stay from one block to the next, and from one message to the \
next. Use them rather than loading or computing things again.
- The value of a block's last expression is shown; print what else you want to see. Print shapes, \
heads and summaries, not whole data.
- Images and HTML that a block shows are saved to files. You are told their paths.
- Code cannot ask for input, and nobody sees windows that it opens. It may run for \
{timeout:g} seconds; do less at a time if that is not enough.
- If you are told that the kernel was restarted, variables are gone and files are still there. Run \
again what you need of your earlier code."""


DEFAULT_SYSTEM_MESSAGE_UPDATE: Final = "\n\n".join([_HOW.format(timeout=60), DATA])
"""Instructions for an agent with any executor. They do not describe its kernel or preloads."""


class UserCapability:
    """Adds instructions to an agent's system message.

    Parameters
    ----------
    system_message_update
        The instructions.
    """

    def __init__(self, system_message_update: str) -> None:
        self.system_message_update = system_message_update

    @classmethod
    def of(cls, session: models.Session, timeout: float) -> UserCapability:
        """Return the instructions for an agent whose code runs in a session.

        Parameters
        ----------
        timeout
            Seconds that a block may run.
        """
        parts = [
            _HOW.format(timeout=timeout),
            "\n".join(["## The kernel", *about_kernel(session), *about_preloaded(session)]),
            DATA,
        ]
        return cls("\n\n".join(parts))

    def add_to_agent(self, agent: ConversableAgent) -> None:
        """Append the instructions to an agent's system message, unless it contains them."""
        before = agent.system_message
        if self.system_message_update not in before:
            agent.update_system_message(f"{before}\n\n{self.system_message_update}".lstrip())


Capability: TypeAlias = UserCapability


class KernelCodeExecutor:
    """A code executor with one agent session. Also a context manager.

    The constructor opens the session and its kernel; `stop` closes them.

    Parameters
    ----------
    target
        The server and the kernel.
    kernel_name
        The kernelspec of a scratch kernel.
    timeout
        Seconds that each block may run; at least 1.
    output_dir
        Folder for images and HTML.
    agent
        The agent's name in the history; ``autogen`` when None.
    preload_modules
        Modules and functions to preload, as for `AgentExecClient.open_session`.
    system_message_update
        Instructions that `user_capability` gives an agent; ours when None.

    Raises
    ------
    ValueError
        A parameter is invalid; nothing was started.
    AgentExecError
        The server refused the request.
    ServerUnreachable
        The server cannot be reached or started.
    """

    DEFAULT_SYSTEM_MESSAGE_UPDATE: ClassVar = DEFAULT_SYSTEM_MESSAGE_UPDATE
    UserCapability = Capability

    def __init__(
        self,
        target: Target,
        *,
        kernel_name: str,
        timeout: float,
        output_dir: Path | str,
        agent: str | Agent | None,
        preload_modules: Sequence[Preloadable],
        system_message_update: str | None = None,
    ) -> None:
        if timeout < 1:
            raise ValueError("Timeout must be greater than or equal to 1.")
        self._output_dir = Path(output_dir)
        if not self._output_dir.is_dir():
            raise ValueError(f"Output directory {output_dir} does not exist.")
        self._timeout = timeout
        self._system_message_update = system_message_update
        self._stopped = False
        self._place = KernelSession(
            target,
            SessionOptions(
                agent=agent or "autogen",
                title="AutoGen",
                kernel_name=kernel_name,
                timeout=timeout,
                preload=list(preload_modules),
            ),
        )
        try:
            self._place.open()
        except BaseException as error:
            self._place.close()
            if isinstance(error, KernelSpecNotFound):
                raise ValueError(self._not_installed(kernel_name)) from error
            raise

    @property
    def code_extractor(self) -> CodeExtractor:
        """The extractor of code blocks from messages."""
        return MarkdownCodeExtractor()

    @property
    def user_capability(self) -> Capability:
        """The capability that instructs an agent how to use this executor."""
        if self._system_message_update is not None:
            return Capability(self._system_message_update)
        return Capability.of(self._opened().do(lambda session: session.info), self._timeout)

    def execute_code_blocks(self, code_blocks: list[CodeBlock]) -> IPythonCodeResult:
        """Run blocks in order, up to the first that fails.

        Each block becomes an execution. An exception that interrupts this call, such as Ctrl-C,
        also stops the code.

        Returns
        -------
        IPythonCodeResult
            `exit_code` is 0 if all blocks succeeded, else 1. `output` has their outputs, and why
            the last block failed. `output_files` lists the saved files.

        Raises
        ------
        RuntimeError
            The executor was stopped.
        AgentExecError
            The server refused the request, and no code ran.
        ServerUnreachable
            The server cannot be reached.
        """
        place = self._opened()
        results = place.run(map(source_of, code_blocks)) if code_blocks else []
        return code_result(results, self._output_dir)

    async def a_execute_code_blocks(self, code_blocks: list[CodeBlock]) -> IPythonCodeResult:
        """Run blocks, as `execute_code_blocks` does; cancelling the task stops the code first."""
        place = self._opened()
        results = await place.run_async(map(source_of, code_blocks)) if code_blocks else []
        return code_result(results, self._output_dir)

    def restart(self) -> None:
        """Open a new agent session, with a fresh scratch kernel.

        A user's kernel is not restarted, and keeps its variables.
        """
        self._opened().begin_anew()

    def stop(self) -> None:
        """Close the session, its scratch kernel, and the server if this executor started it."""
        self._stopped = True
        self._place.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _opened(self) -> KernelSession:
        if self._stopped:
            raise RuntimeError("The executor was stopped: its kernel is gone. Make another one.")
        return self._place

    def _not_installed(self, kernel_name: str) -> str:
        return f"Kernel {kernel_name} is not installed."


class JupyterCodeExecutor(KernelCodeExecutor):
    """A code executor on a Jupyter server with this extension.

    Parameters
    ----------
    jupyter_server
        A `LocalJupyterServer`, another server class of AutoGen's, or a `JupyterConnectionInfo`. If
        None, `target` names the server.
    kernel_name
        The kernelspec of a scratch kernel.
    timeout
        Seconds that each block may run; at least 1.
    output_dir
        Local folder for images and HTML.
    target
        Where blocks run. The default is a scratch kernel.
    agent
        The agent's name in the history; ``autogen`` when None.
    preload_modules
        Modules (``"pandas as pd"``) and functions to preload into the kernel.

    Raises
    ------
    ValueError
        A parameter is invalid; nothing was started.
    """

    def __init__(
        self,
        jupyter_server: JupyterConnectable | JupyterConnectionInfo | None = None,
        kernel_name: str = "python3",
        timeout: float = 60,
        output_dir: Path | str = ".",
        *,
        target: Target = SCRATCH,
        agent: str | Agent | None = None,
        preload_modules: Sequence[Preloadable] = (),
    ) -> None:
        if jupyter_server is not None:
            if target.url is not None or target.token is not None:
                raise ValueError("Name the server by jupyter_server or by target, not by both.")
            url, token = _address(jupyter_server)
            target = replace(target, url=url, token=token)
        super().__init__(
            target,
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


class EmbeddedIPythonCodeExecutor(KernelCodeExecutor):
    """A code executor that needs no running server.

    By default it starts a server, and its kernel runs in the current folder.

    Parameters
    ----------
    timeout
        Seconds that each block may run; at least 1.
    kernel_name
        The kernelspec of a scratch kernel.
    output_dir
        Folder for images and HTML.
    system_message_update
        Instructions that `user_capability` gives an agent; ours when None.
    target
        Where blocks run. The default is a scratch kernel.
    agent
        The agent's name in the history; ``autogen`` when None.
    preload_modules
        Modules (``"pandas as pd"``) and functions to preload into the kernel.

    Raises
    ------
    ValueError
        A parameter is invalid; nothing was started.
    """

    def __init__(
        self,
        timeout: float = 60,
        kernel_name: str = "python3",
        output_dir: Path | str = ".",
        system_message_update: str | None = None,
        *,
        target: Target = SCRATCH,
        agent: str | Agent | None = None,
        preload_modules: Sequence[Preloadable] = (),
    ) -> None:
        super().__init__(
            target,
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
