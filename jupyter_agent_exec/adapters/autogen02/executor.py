"""What both executors are: the framework's protocol, over an agent session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, TypeVar

from ... import models
from ...client import Agent, AsyncSession, Preloadable
from ...errors import KernelSpecNotFound
from ..kernel_session import KernelSession, SessionOptions, SessionTarget
from .framework import CodeBlock, CodeExtractor, IPythonCodeResult, MarkdownCodeExtractor
from .results import code_result, source_of
from .user_capability import DEFAULT_SYSTEM_MESSAGE_UPDATE
from .user_capability import UserCapability as Capability

Self = TypeVar("Self", bound="KernelCodeExecutor")


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
