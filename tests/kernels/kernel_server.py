"""Real kernels under a real kernel manager, a person who uses them, and an agent that joins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from traitlets.config import Config

from jupyter_agent_exec.kernels.connection import KernelConnection
from jupyter_agent_exec.kernels.execute_request import (
    ExecuteOutcome,
    ExecuteRequest,
    RequestObserver,
)
from jupyter_agent_exec.kernels.kernel_queue import KernelQueue, Turn
from jupyter_agent_exec.kernels.live_kernels import LiveKernel, LiveKernels
from jupyter_agent_exec.kernels.person_executions import NOTHING, PersonRecording
from jupyter_agent_exec.text.model_text import TextSink
from jupyter_agent_exec.types import ExecutionId

LOG = logging.getLogger("tests")
SOON = 30.0
"""Seconds within which all that is waited for has happened, on however slow a machine."""


class Person:
    """Somebody with a notebook on a kernel."""

    def __init__(self, manager: Any) -> None:
        self.client = manager.client()
        self.client.start_channels(shell=True, iopub=True, stdin=False, hb=False, control=True)
        self._replies: dict[str, dict[str, Any]] = {}

    def runs(self, source: str, **asked: Any) -> str:
        """Send a cell as JupyterLab does; return its msg_id."""
        msg_id: str = self.client.execute(source, **{"stop_on_error": True, **asked})
        return msg_id

    async def reply(self, msg_id: str) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while msg_id not in self._replies:
            message = await self.client.get_shell_msg(timeout=SOON)
            self._replies[message["parent_header"]["msg_id"]] = message["content"]
        return self._replies[msg_id]

    async def sees_output(self, msg_id: str) -> None:
        """Wait until a cell has printed something."""
        while True:
            message = await self.client.get_iopub_msg(timeout=SOON)
            if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == msg_id:
                return

    async def has_run(self, source: str) -> dict[str, Any]:
        return await self.reply(self.runs(source))

    async def answer_on_control(self, msg_type: str) -> dict[str, Any]:
        message = self.client.session.msg(msg_type, {})
        self.client.control_channel.send(message)
        answer = await self.client.get_control_msg(timeout=SOON)
        assert answer["parent_header"]["msg_id"] == message["header"]["msg_id"]
        content: dict[str, Any] = answer["content"]
        return content

    async def answer_of_subshell(self, subshell_id: str) -> dict[str, Any]:
        message = self.client.session.msg("kernel_info_request", {})
        message["header"]["subshell_id"] = subshell_id
        self.client.shell_channel.send(message)
        return await self.reply(message["header"]["msg_id"])

    async def has_queued(self) -> None:
        """Wait until all cells that were sent are in the kernel's own queue.

        Before, the kernel may read an agent's request, which comes over another connection, first.
        """
        subshell = await self.answer_on_control("create_subshell_request")
        await self.answer_of_subshell(subshell["subshell_id"])


class KernelServer:
    """A server's kernels, as far as these tests need a server."""

    def __init__(self, people: PersonRecording = NOTHING, **config: Any) -> None:
        self._folder = TemporaryDirectory(prefix="kernels-")  # of connection files
        self.kernels = AsyncMappingKernelManager(
            config=Config(config), connection_dir=self._folder.name
        )
        self.live = LiveKernels(self.kernels, log=LOG, start_timeout=SOON, people=people)
        self._people: list[Person] = []

    async def start_kernel(self, name: str = "python3") -> str:
        kernel_id: str = await self.kernels.start_kernel(kernel_name=name)
        return kernel_id

    async def person(self, kernel_id: str) -> Person:
        """Return a person whose notebook is ready, in a kernel that the server listens to."""
        manager = self.kernels.get_kernel(kernel_id)
        person = Person(manager)
        self._people.append(person)
        await person.client.wait_for_ready(timeout=SOON)
        while manager.execution_state == "starting":  # its own watch may begin later
            await person.reply(person.client.kernel_info())
        return person

    async def close(self) -> None:
        await self.live.stop()
        for person in self._people:
            person.client.stop_channels()
        for kernel_id in list(self.kernels.list_kernel_ids()):
            await self.kernels.shutdown_kernel(kernel_id, now=True)
        self.kernels.context.destroy(linger=0)
        self._folder.cleanup()


@asynccontextmanager
async def kernel_server(**config: Any) -> AsyncIterator[KernelServer]:
    opened = KernelServer(**config)
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def with_person(**config: Any) -> AsyncIterator[tuple[Person, LiveKernel]]:
    """Give a kernel with a person's notebook, that was adopted for an agent."""
    async with kernel_server(**config) as server:
        person = await server.person(kernel_id := await server.start_kernel())
        yield person, await server.live.adopt(kernel_id)


class AgentRun:
    """An agent's code on its way through a kernel."""

    def __init__(
        self,
        number: int,
        source: str,
        *,
        store_history: bool = True,
        sink: TextSink | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[ExecuteOutcome] = loop.create_future()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.sent: asyncio.Future[None] = loop.create_future()
        self.run = ExecuteRequest(
            id=ExecutionId(f"x_{number}"),
            source=source,
            store_history=store_history,
            max_output_bytes=1_000_000,
            sink=sink,
            observer=_Watch(self),
        )

    async def go(self, connection: KernelConnection) -> ExecuteOutcome:
        """Run it now, without asking whose turn it is."""
        connection.start(self.run)
        return await asyncio.wait_for(asyncio.shield(self.ended), SOON)

    def in_turn(
        self, kernel: LiveKernel, turns: KernelQueue | None = None
    ) -> asyncio.Task[ExecuteOutcome]:
        """Run it as a session does; the turn is asked for at once."""
        turns = kernel.turns if turns is None else turns
        turn = turns.ask()

        async def carry() -> ExecuteOutcome:
            try:
                await granted(turn)
                return await self.go(kernel.connection)
            finally:
                turns.leave(turn)

        return asyncio.create_task(carry())


class _Watch(RequestObserver):
    """Settles the futures of a run."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run

    def sent(self) -> None:
        _from_thread(self._run.sent, None)

    def begun(self) -> None:
        _from_thread(self._run.begun, None)

    def ended(self, outcome: ExecuteOutcome) -> None:
        _from_thread(self._run.ended, outcome)

    def failed(self, error: Exception) -> None:
        ended = self._run.ended
        ended.get_loop().call_soon_threadsafe(ended.set_exception, error)


def _from_thread(future: asyncio.Future[Any], result: Any) -> None:
    future.get_loop().call_soon_threadsafe(future.set_result, result)


async def granted(turn: Turn) -> None:
    await asyncio.wait_for(asyncio.shield(turn), SOON)


async def at_foreign_work(kernel: LiveKernel, turns: KernelQueue | None = None) -> None:
    """Wait until it was heard that the kernel is at somebody else's work."""
    told = asyncio.get_running_loop().create_future()
    turns = kernel.turns if turns is None else turns

    def look(_: None = None) -> None:
        if kernel.connection.activity.foreign is not None and not told.done():
            told.set_result(None)

    turns.on_change.add(look)
    look()
    await asyncio.wait_for(told, SOON)
    turns.on_change.remove(look)


def text(ended: ExecuteOutcome) -> str:
    """Return what it printed."""
    return "".join(output["text"] for output in ended.outputs if output.get("name") == "stdout")
