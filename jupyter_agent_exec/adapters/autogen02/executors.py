"""What both executors are: the framework's protocol, over an agent session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, TypeAlias, TypeVar

from ... import models
from ...client import Agent, AsyncSession, Preloadable
from ...errors import KernelSpecNotFound
from ...guide import DATA, about_kernel, about_preloaded
from ...models import Session
from ..kernel_session import KernelSession, SessionOptions, SessionTarget
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
"""What an agent is told of any executor: without its kernel, and what is preloaded there."""


class UserCapability:
    """What `add_to_agent` tells an agent.

    Parameters
    ----------
    system_message_update
        The text.
    """

    def __init__(self, system_message_update: str) -> None:
        self.system_message_update = system_message_update

    @classmethod
    def of(cls, session: Session, timeout: float) -> UserCapability:
        """Return what an agent should know whose code runs in a session, so many seconds."""
        parts = [
            _HOW.format(timeout=timeout),
            "\n".join(["## The kernel", *about_kernel(session), *about_preloaded(session)]),
            DATA,
        ]
        return cls("\n\n".join(parts))

    def add_to_agent(self, agent: ConversableAgent) -> None:
        """Append the text to an agent's system message, unless it is in there already."""
        before = agent.system_message
        if self.system_message_update not in before:
            agent.update_system_message(f"{before}\n\n{self.system_message_update}".lstrip())


Capability: TypeAlias = UserCapability


class KernelCodeExecutor:
    """A code executor with one agent session.

    It is opened here, with its kernel, and closed by `stop`. A context manager.

    Parameters
    ----------
    where
        The server and the kernel.
    kernel_name
        The kernelspec of a scratch kernel.
    timeout
        Seconds each block may run; at least 1.
    output_dir
        Where images and HTML are saved.
    agent
        Who asks, for the record; ``autogen`` when None.
    preload_modules
        What is loaded in the kernel first, as `AgentExecClient.open_session` takes it.
    system_message_update
        What `user_capability` tells an agent; a text of ours when None.

    Raises
    ------
    ValueError
        A parameter is not what it may be; nothing was started.
    AgentExecError
        The server refuses.
    ServerUnreachable
        There is no connection, or no server could be started.
    """

    DEFAULT_SYSTEM_MESSAGE_UPDATE: ClassVar = DEFAULT_SYSTEM_MESSAGE_UPDATE
    UserCapability = Capability

    def __init__(
        self,
        where: SessionTarget,
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
            where,
            SessionOptions(
                agent=agent or "autogen",
                title="AutoGen",
                kernel_name=kernel_name,
                timeout=timeout,
                preload=list(preload_modules),
            ),
        )
        try:
            self._place.do(_info)
        except BaseException as error:
            self._place.close()
            if isinstance(error, KernelSpecNotFound):
                raise ValueError(self._not_installed(kernel_name)) from error
            raise

    @property
    def code_extractor(self) -> CodeExtractor:
        """What finds the code blocks in a message."""
        return MarkdownCodeExtractor()

    @property
    def user_capability(self) -> Capability:
        """What tells an agent how to work with this executor."""
        if self._system_message_update is not None:
            return Capability(self._system_message_update)
        return Capability.of(self._opened().do(_info), self._timeout)

    def execute_code_blocks(self, code_blocks: list[CodeBlock]) -> IPythonCodeResult:
        """Run blocks in order, up to the first that does not run to its end.

        Each becomes an execution. Ctrl-C, and whatever else interrupts this, stops the code.

        Returns
        -------
        IPythonCodeResult
            `exit_code` is 0 if all ran to their ends, else 1; `output` has what they wrote and
            showed, and why the last one did not; `output_files` has the files that were saved.

        Raises
        ------
        RuntimeError
            The executor was stopped.
        AgentExecError
            The server refuses; nothing was run.
        ServerUnreachable
            There is no connection.
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
        """Begin a new agent session; in a scratch kernel, with a fresh kernel.

        A person's kernel is theirs, and keeps its variables.
        """
        self._opened().begin_anew()

    def stop(self) -> None:
        """Close the session, its scratch kernel, and a server that was started for it."""
        self._stopped = True
        self._place.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _opened(self) -> KernelSession:
        if self._stopped:
            raise RuntimeError("The executor was stopped: its kernel is gone. Make another one.")
        return self._place

    def _not_installed(self, kernel_name: str) -> str:
        return f"Kernel {kernel_name} is not installed."


async def _info(session: AsyncSession) -> models.Session:
    return session.info


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
