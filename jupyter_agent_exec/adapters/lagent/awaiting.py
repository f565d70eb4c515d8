"""The interpreter that awaits, with a kernel for each session id."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from lagent.actions.base_action import BaseAction, tool_api
from lagent.actions.parser import BaseParser, JsonParser
from lagent.schema import ActionReturn

from ...client import ClientError
from ...errors import AgentExecError
from ..kernel_session import SessionTarget
from .asking import arguments, step
from .kernels import Kernels
from .naming import base_arguments, named_as_its_class
from .results import refused, told
from .starting import folder_code, reset_source, restarted, workplace


@named_as_its_class
class AsyncIPythonInterpreter(BaseAction):
    """Runs Python code in Jupyter kernels that keep their state, one for each session id.

    Any event loop may use it. An async context manager that closes it at the end.

    Parameters
    ----------
    max_kernels
        How many there are at the most; a session that would need one more waits until another is
        closed. As many as are asked for when None.
    reuse_kernel, startup_rate, connection_dir
        Taken, as lagent 0.5 has them, and not used: no kernel is given to the next session.
    timeout, user_data_dir, work_dir, description, parser, enable
        As for `IPythonInterpreter`.
    url, token, notebook, kernel_id, agent
        As for `IPythonInterpreter`. In a person's kernel all session ids share its variables.
    """

    __tool_name__ = "jupyter_agent_exec.AsyncIPythonInterpreter"

    def __init__(
        self,
        timeout: float = 20,
        user_data_dir: str = "ENV",
        work_dir: str = "./work_dir/tmp_dir",
        max_kernels: int | None = None,
        reuse_kernel: bool = True,
        startup_rate: int = 32,
        connection_dir: str | None = None,
        *,
        description: dict[str, Any] | None = None,
        parser: type[BaseParser] = JsonParser,
        enable: bool = True,
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
        where = SessionTarget(url=url, token=token, notebook=notebook, kernel_id=kernel_id)
        self._kernels = Kernels(lambda: workplace(where, agent, self.user_data_dir), max_kernels)
        os.makedirs(work_dir, exist_ok=True)

    async def __aenter__(self) -> AsyncIPythonInterpreter:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def __call__(self, inputs: str | dict[str, Any], name: str = "run") -> ActionReturn:
        """Run what a model asks for."""
        asked = arguments(self, inputs, name)
        return asked if isinstance(asked, ActionReturn) else await self.run(**asked)

    async def initialize(self, session_id: str | int | None = None) -> None:
        """Have a session's kernel ready; `run` does so too."""
        place = await self._kernels.of(str(session_id))
        await place.open_async()

    async def reset(self, session_id: str | int | None = None) -> None:
        """Forget all variables of a session; its kernel stays.

        Raises
        ------
        KernelNotOwned
            The kernel is a person's.
        """
        place = self._kernels.known(str(session_id))
        if place is None:
            return
        source = reset_source(place, self.user_data_dir)
        (result,) = await place.run_async([source], timeout=self.timeout)
        if not result.ok:
            await place.do_async(restarted)

    @tool_api
    async def run(
        self,
        command: str,
        timeout: int | None = None,
        session_id: str | int | None = None,
    ) -> ActionReturn:
        """Run Python code in a Jupyter kernel. Variables, imports and functions stay for the next call. The answer has what was printed, the value of the last expression, and the paths of images; if the code fails, the traceback. Code cannot ask for input.

        Args:
            command (:class:`str`): Python code
            timeout (:class:`Optional[int]`): Seconds that the code may run
            session_id (:class:`Optional[str]`): Whose kernel it is
        """  # noqa: E501 - lagent reads it, and models do
        try:
            asked = step(command, timeout, self.timeout)
            place = await self._kernels.of(str(session_id))
            (result,) = await place.run_async([asked])
            return told(self.name, command, result, self.work_dir)
        except (AgentExecError, ClientError, OSError) as error:
            return refused(self.name, command, error)

    async def close_session(self, session_id: str | int | None = None) -> None:
        """End a session's kernel; unknown ids are no harm."""
        await self._kernels.close(str(session_id))

    async def shutdown(self, session_id: str | int | None = None) -> None:
        """End a session's kernel, as `close_session` does."""
        await self.close_session(session_id)

    async def close(self) -> None:
        """End all kernels; the next `run` starts another."""
        await self._kernels.close_all()
