"""The interpreter that blocks."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from lagent.actions.base_action import BaseAction, tool_api
from lagent.actions.parser import BaseParser, JsonParser
from lagent.schema import ActionReturn

from ...client import ClientError
from ...errors import AgentExecError
from ..kernel_session import SessionTarget
from .asking import arguments, step
from .naming import base_arguments, named_as_its_class
from .results import refused, told
from .starting import folder_code, reset_source, restarted, workplace


@named_as_its_class
class IPythonInterpreter(BaseAction):
    """Runs Python code in a Jupyter kernel that keeps its state; each object has its own.

    Any thread may use it, whether an event loop runs there or not. A context manager that closes
    it at the end.

    Parameters
    ----------
    timeout
        Seconds that code may run.
    user_data_dir
        The kernel goes to the parent folder of this one; ``ENV`` for what ``USER_DATA_DIR`` says.
    work_dir
        Where images are written; it is made.
    description, parser, enable
        As lagent has them.
    url, token, notebook, kernel_id
        Where code runs: `SessionTarget`. In a kernel of its own by default. That of a notebook, or
        one that is named, is a user's: it is not changed for lagent, and not reset.
    agent
        By which name the history knows who asks; ``lagent`` when None.
    """

    __tool_name__ = "jupyter_agent_exec.IPythonInterpreter"

    def __init__(
        self,
        timeout: float = 20,
        user_data_dir: str = "ENV",
        work_dir: str = "./work_dir/tmp_dir",
        description: dict[str, Any] | None = None,
        parser: type[BaseParser] = JsonParser,
        enable: bool = True,
        *,
        url: str | None = None,
        token: str | None = None,
        notebook: str | None = None,
        kernel_id: str | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(**base_arguments(description, parser, enable))
        self.timeout = timeout
        self.user_data_dir = folder_code(user_data_dir)
        self.work_dir = work_dir
        os.makedirs(work_dir, exist_ok=True)
        where = SessionTarget(url=url, token=token, notebook=notebook, kernel_id=kernel_id)
        self._place = workplace(where, agent, self.user_data_dir)

    def __enter__(self) -> IPythonInterpreter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, inputs: str | dict[str, Any], name: str = "run") -> ActionReturn:
        """Run what a model asks for."""
        asked = arguments(self, inputs, name)
        return asked if isinstance(asked, ActionReturn) else self.run(**asked)

    @staticmethod
    def start_kernel() -> tuple[KernelManager, BlockingKernelClient]:
        """Start a kernel that belongs to the caller, and return its manager and a client.

        The interpreter does not use it, and nothing of it is recorded.
        """
        return start_new_kernel()

    def initialize(self) -> None:
        """Have the kernel ready; `run` does so too."""
        self._place.open()

    def reset(self) -> None:
        """Forget all variables; the kernel stays.

        Raises
        ------
        KernelNotOwned
            The kernel is a person's.
        """
        (result,) = self._place.run(
            [reset_source(self._place, self.user_data_dir)], timeout=self.timeout
        )
        if not result.ok:
            self._place.do(restarted)

    @tool_api
    def run(self, command: str, timeout: int | None = None) -> ActionReturn:
        """Run Python code in a Jupyter kernel. Variables, imports and functions stay for the next call. The answer has what was printed, the value of the last expression, and the paths of images; if the code fails, the traceback. Code cannot ask for input.

        Args:
            command (:class:`str`): Python code
            timeout (:class:`Optional[int]`): Seconds that the code may run
        """  # noqa: E501 - lagent reads it, and models do
        try:
            (result,) = self._place.run([step(command, timeout, self.timeout)])
            return told(self.name, command, result, self.work_dir)
        except (AgentExecError, ClientError, OSError) as error:
            return refused(self.name, command, error)

    async def run_async(self, command: str) -> ActionReturn:
        """Run code, as `run` does; cancelling the task stops the code first."""
        try:
            (result,) = await self._place.run_async([step(command, None, self.timeout)])
            return told(self.name, command, result, self.work_dir)
        except (AgentExecError, ClientError, OSError) as error:
            return refused(self.name, command, error)

    def interrupt(self) -> None:
        """Stop what runs."""
        self._place.do(lambda session: session.interrupt())

    def close(self) -> None:
        """End the kernel, if it is the interpreter's own; the next `run` starts another."""
        self._place.close()
