"""lagent's interpreters: blocking, asynchronous, and for batches of sources."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, overload

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from lagent.actions.base_action import BaseAction, tool_api
from lagent.actions.parser import BaseParser, JsonParser
from lagent.schema import ActionReturn

from ...client import ClientError, Session
from ...errors import AgentExecError
from ..kernel_session import SCRATCH, KernelSession, Target
from .action_returns import (
    arguments,
    base_arguments,
    folder_code,
    named_as_its_class,
    refused,
    reset_step,
    step,
    told,
    workplace,
)


@named_as_its_class
class IPythonInterpreter(BaseAction):
    """Runs Python code in a Jupyter kernel that keeps its state. Each object has its own kernel.

    Any thread may use it, with or without a running event loop. It is also a context manager, which
    closes it at the end.

    Parameters
    ----------
    timeout
        Seconds that code may run.
    user_data_dir
        The kernel changes to the parent of this folder; ``ENV`` for the value of ``USER_DATA_DIR``.
    work_dir
        Folder for images. It is made if it is missing.
    description, parser, enable
        As in lagent.
    target
        Where code runs. The default is a scratch kernel. Another kernel belongs to a user: it is
        not set up for lagent, and not reset.
    agent
        The agent's name in the history; ``lagent`` when None.
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
        target: Target = SCRATCH,
        agent: str | None = None,
    ) -> None:
        super().__init__(**base_arguments(description, parser, enable))
        self.timeout = timeout
        self.user_data_dir = folder_code(user_data_dir)
        self.work_dir = work_dir
        os.makedirs(work_dir, exist_ok=True)
        self._place = workplace(target, agent, self.user_data_dir)

    def __enter__(self) -> IPythonInterpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, inputs: str | dict[str, Any], name: str = "run") -> ActionReturn:
        """Run the code that a model wrote."""
        asked = arguments(self, inputs, name)
        return asked if isinstance(asked, ActionReturn) else self.run(**asked)

    @staticmethod
    def start_kernel() -> tuple[KernelManager, BlockingKernelClient]:
        """Start a kernel for the caller, and return its manager and a client.

        The interpreter does not use this kernel, and its executions are not recorded.
        """
        return start_new_kernel()

    def initialize(self) -> None:
        """Start the kernel before the first `run`."""
        self._place.open()

    def reset(self) -> None:
        """Delete all variables. The kernel keeps running.

        Raises
        ------
        KernelNotOwned
            The kernel belongs to a user.
        """
        (result,) = self._place.run([reset_step(self._place, self.user_data_dir, self.timeout)])
        if not result.ok:
            self._place.do(Session.restart)  # it runs `START_CODE` again

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
        """Stop the running code."""
        self._place.do(Session.interrupt)

    def close(self) -> None:
        """Shut down the interpreter's own kernel. The next `run` starts another."""
        self._place.close()


@named_as_its_class
class AsyncIPythonInterpreter(BaseAction):
    """Runs Python code in Jupyter kernels that keep their state, one for each session id.

    Any event loop may use it. It is also an async context manager, which closes it at the end.

    Parameters
    ----------
    max_kernels
        Maximum number of kernels; no limit when None. At the limit, a new session waits until
        another one is closed.
    reuse_kernel, startup_rate, connection_dir
        Accepted for lagent 0.5, but ignored: a kernel is never reused by another session.
    timeout, user_data_dir, work_dir, description, parser, enable
        As for `IPythonInterpreter`.
    target, agent
        As for `IPythonInterpreter`. In a user's kernel, all session ids share its variables.
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
        target: Target = SCRATCH,
        agent: str | None = None,
    ) -> None:
        super().__init__(**base_arguments(description, parser, enable))
        self.timeout = timeout
        self.user_data_dir = folder_code(user_data_dir)
        self.work_dir = work_dir
        self._kernels = Kernels(lambda: workplace(target, agent, self.user_data_dir), max_kernels)
        os.makedirs(work_dir, exist_ok=True)

    async def __aenter__(self) -> AsyncIPythonInterpreter:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __call__(self, inputs: str | dict[str, Any], name: str = "run") -> ActionReturn:
        """Run the code that a model wrote."""
        asked = arguments(self, inputs, name)
        return asked if isinstance(asked, ActionReturn) else await self.run(**asked)

    async def initialize(self, session_id: str | int | None = None) -> None:
        """Start a session's kernel before the first `run`."""
        place = await self._kernels.of(str(session_id))
        await place.open_async()

    async def reset(self, session_id: str | int | None = None) -> None:
        """Delete all variables of a session. Its kernel keeps running.

        Raises
        ------
        KernelNotOwned
            The kernel belongs to a user.
        """
        place = self._kernels.known(str(session_id))
        if place is None:
            return
        (result,) = await place.run_async([reset_step(place, self.user_data_dir, self.timeout)])
        if not result.ok:
            await place.do_async(Session.restart)

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
        """Shut down a session's kernel. Ignores unknown ids."""
        await self._kernels.close(str(session_id))

    async def shutdown(self, session_id: str | int | None = None) -> None:
        """Shut down a session's kernel, as `close_session` does."""
        await self.close_session(session_id)

    async def close(self) -> None:
        """Shut down all kernels. The next `run` starts another."""
        await self._kernels.close_all()


@named_as_its_class
class BatchIPythonInterpreter(BaseAction):
    """Runs sources at the same time, each in the kernel of its index.

    It is also a context manager, which closes it at the end.

    Parameters
    ----------
    python_interpreter
        Arguments of each `IPythonInterpreter`.
    description, parser, enable
        As in lagent.
    """

    __tool_name__ = "jupyter_agent_exec.BatchIPythonInterpreter"

    def __init__(
        self,
        python_interpreter: dict[str, Any],
        description: dict[str, Any] | None = None,
        parser: type[BaseParser] = JsonParser,
        enable: bool = True,
    ) -> None:
        super().__init__(**base_arguments(description, parser, enable))
        self.python_interpreter_init_args = python_interpreter
        self.index2python_interpreter: dict[int, IPythonInterpreter] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> BatchIPythonInterpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def __call__(
        self, commands: str, indexes: int | Sequence[int] | None = None
    ) -> ActionReturn: ...

    @overload
    def __call__(
        self, commands: list[str], indexes: int | Sequence[int] | None = None
    ) -> list[ActionReturn]: ...

    def __call__(
        self, commands: str | list[str], indexes: int | Sequence[int] | None = None
    ) -> ActionReturn | list[ActionReturn]:
        """Run one command, or several at the same time, and return their results.

        Parameters
        ----------
        indexes
            Index of the kernel for each command; 0, 1, 2 and so on when None.

        Raises
        ------
        ValueError
            The number of indexes differs from that of commands, or an index occurs twice.
        """
        sources = [commands] if isinstance(commands, str) else commands
        if indexes is None:
            indexes = range(len(sources))
        elif isinstance(indexes, int):
            indexes = [indexes]
        if not len(sources) == len(indexes) == len(set(indexes)):
            raise ValueError("the size of `indexes` must equal that of `commands`")
        answers = self._run(sources, [self._interpreter(index) for index in indexes])
        return answers[0] if isinstance(commands, str) else answers

    def reset(self) -> None:
        """Shut down all kernels. The next call starts fresh ones."""
        with self._lock:
            interpreters = list(self.index2python_interpreter.values())
            self.index2python_interpreter.clear()
        for each in interpreters:
            each.close()

    def close(self) -> None:
        """Shut down all kernels, as `reset` does."""
        self.reset()

    def _interpreter(self, index: int) -> IPythonInterpreter:
        with self._lock:
            interpreter = self.index2python_interpreter.get(index)
            if interpreter is None:
                interpreter = IPythonInterpreter(**self.python_interpreter_init_args)
                self.index2python_interpreter[index] = interpreter
            return interpreter

    def _run(
        self, sources: list[str], interpreters: list[IPythonInterpreter]
    ) -> list[ActionReturn]:
        if not sources:
            return []

        async def answers() -> list[ActionReturn]:
            running = zip(interpreters, sources, strict=True)
            return await asyncio.gather(*(each.run_async(source) for each, source in running))

        # A loop in another thread: this thread, where Ctrl-C arrives, may already run a loop.
        loop = asyncio.new_event_loop()
        answering = loop.create_task(answers())

        def wait() -> list[ActionReturn]:
            try:
                return loop.run_until_complete(answering)
            finally:
                loop.close()

        with ThreadPoolExecutor(1) as thread:
            try:
                return thread.submit(wait).result()
            except BaseException:
                with suppress(RuntimeError):  # it has ended
                    loop.call_soon_threadsafe(answering.cancel)
                raise


class Kernels:
    """Holds a `KernelSession` for each session id. Any event loop may use it.

    Parameters
    ----------
    make
        Makes a `KernelSession`.
    most
        Maximum number at the same time; None for no limit.

    Raises
    ------
    ValueError
        `most` is below 1.
    """

    def __init__(self, make: Callable[[], KernelSession], most: int | None) -> None:
        if most is not None and most < 1:
            raise ValueError(f"max_kernels: at least 1, not {most}.")
        self._make = make
        self._most = most
        self._lock = threading.Lock()
        self._places: dict[str, KernelSession] = {}
        self._closing = 0
        self._waiting: list[Future[None]] = []

    def known(self, session_id: str) -> KernelSession | None:
        """Return the `KernelSession` of a session id; None if there is none."""
        return self._places.get(session_id)

    async def of(self, session_id: str) -> KernelSession:
        """Return the `KernelSession` of a session id. Wait for room and make it if needed."""
        while True:
            with self._lock:
                place = self._places.get(session_id)
                if place is None and self._has_room():
                    place = self._places[session_id] = self._make()
                if place is not None:
                    return place
                freed: Future[None] = Future()
                self._waiting.append(freed)
            await asyncio.wrap_future(freed)

    async def close(self, session_id: str) -> None:
        """Close the `KernelSession` of a session id, if there is one."""
        with self._lock:
            place = self._places.pop(session_id, None)
            if place is None:
                return
            self._closing += 1
        try:
            await place.close_async()
        finally:
            with self._lock:
                self._closing -= 1
                waiting, self._waiting = self._waiting, []
            for each in waiting:
                # Skip callers that were cancelled.
                if each.set_running_or_notify_cancel():
                    each.set_result(None)

    async def close_all(self) -> None:
        """Close all of them."""
        await asyncio.gather(*(self.close(each) for each in list(self._places)))

    def _has_room(self) -> bool:
        return self._most is None or len(self._places) + self._closing < self._most
