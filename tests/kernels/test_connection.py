"""A connection to a kernel over channels that are not ZMQ's."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from jupyter_agent_exec.kernels.channels import Channel, MessageReceiver
from jupyter_agent_exec.kernels.connection import KernelConnection
from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome, RequestObserver
from jupyter_agent_exec.kernels.messages import Header, Message
from tests.kernels.kernel_server import SOON, AgentRun, text

ANSWERS: dict[str, dict[str, Any]] = {
    "kernel_info_request": {"implementation": "other", "language_info": {"name": "other"}},
    "execute_request": {"status": "ok", "execution_count": 7},
}


class InMemoryChannels:
    """A kernel that prints the code that it is sent, and the channels to it."""

    session = "us"
    key = None

    def __init__(self, receiver: MessageReceiver) -> None:
        self._receiver = receiver
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.loses_idle = False
        """Whether the idle after code does not arrive."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._commands.put(None)
        self._thread.join()

    def call(self, command: Callable[[], None]) -> None:
        self._commands.put(command)

    def open_stdin(self) -> None:
        raise AssertionError("nobody asks for input")

    def send(
        self,
        channel: Channel,
        msg_type: str,
        content: dict[str, Any],
        *,
        msg_id: str,
        subshell_id: str | None = None,
    ) -> None:
        parent = Header(msg_id, msg_type, self.session)

        def answer() -> None:
            self._publish("status", parent, {"execution_state": "busy"})
            if msg_type == "execute_request":
                self._publish("stream", parent, {"name": "stdout", "text": content["code"]})
            reply = Header("reply", msg_type.replace("_request", "_reply"), "kernel")
            self._receiver.shell_message(Message(reply, parent, ANSWERS[msg_type]))
            if msg_type != "execute_request" or not self.loses_idle:
                self._publish("status", parent, {"execution_state": "idle"})

        self._commands.put(answer)

    def end(self) -> None:
        self._commands.put(self._receiver.channels_ended)

    def _publish(self, msg_type: str, parent: Header, content: dict[str, Any]) -> None:
        self._receiver.iopub_message(Message(Header("m", msg_type, "kernel"), parent, content))

    def _work(self) -> None:
        while (command := self._commands.get()) is not None:
            with suppress(MemoryError):
                command()
            self._receiver.all_read()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[KernelConnection, InMemoryChannels]]:
    opened: list[InMemoryChannels] = []

    def open_channels(receiver: MessageReceiver) -> InMemoryChannels:
        opened.append(InMemoryChannels(receiver))
        return opened[0]

    connection = KernelConnection(open_channels, kernel_id="k", kernel_name="other")
    try:
        await asyncio.wait_for(connection.ready(), SOON)
        yield connection, opened[0]
    finally:
        await connection.close()


async def test_it_runs_code_over_any_channels_and_knows_when_they_end() -> None:
    async with connected() as (connection, channels):
        ended = await asyncio.wait_for(AgentRun(1, "hello").go(connection), SOON)
        assert (ended.status, ended.execution_count, text(ended)) == ("ok", 7, "hello")
        assert connection.execution_state == "idle"
        assert not connection.is_host("proof")  # there is no key that a program could know
        channels.end()
        await asyncio.wait_for(connection.disconnected, SOON)


async def test_the_end_of_code_without_its_idle_frees_the_kernel() -> None:
    async with connected() as (connection, channels):
        channels.loses_idle = True
        agent = AgentRun(1, "hello")
        connection.start(agent.run)
        while not agent.run.has_ended:
            await asyncio.sleep(0)
        free = asyncio.create_task(connection.free())
        await asyncio.sleep(0)
        assert not free.done()
        connection.end_incomplete(agent.run)
        await asyncio.wait_for(free, SOON)


class CannotRecord(RequestObserver):
    """Observes a request, and has no memory left to record its end."""

    def __init__(self, agent: AgentRun) -> None:
        self.failed = agent.run.observer.failed  # type: ignore[method-assign]

    def ended(self, outcome: ExecuteOutcome) -> None:
        raise MemoryError


async def test_an_end_that_cannot_be_recorded_is_told_and_the_next_code_runs() -> None:
    async with connected() as (connection, _):
        agent = AgentRun(1, "hello")
        agent.run.observer = CannotRecord(agent)
        with pytest.raises(MemoryError):
            await agent.go(connection)
        assert text(await AgentRun(2, "again").go(connection)) == "again"
