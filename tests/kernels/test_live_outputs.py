"""Outputs are read while they come, whatever their coming waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from jupyter_agent_exec.tasks import settle
from tests.kernels.kernel_server import SOON, AgentRun, kernel_server, text

pytestmark = pytest.mark.usefixtures("jp_environ")


class SlowDisk:
    """Takes a text, and is full until it is let put it away."""

    def __init__(self) -> None:
        self.is_at_it = threading.Event()
        self.goes_on = threading.Event()
        self.is_asked_often = threading.Event()
        self._asked = 0
        self.written = 0

    def write(self, piece: str) -> None:
        self.written += len(piece)
        self.is_at_it.set()

    @property
    def is_full(self) -> bool:
        self._asked += self.is_at_it.is_set()
        if self._asked > 50:
            self.is_asked_often.set()
        return self.is_at_it.is_set() and not self.goes_on.is_set()


async def test_the_kernel_waits_for_a_slow_disk_and_nobody_else_does() -> None:
    disk = SlowDisk()
    agent = AgentRun(1, "for _ in range(40): print('a line of text\\n' * 70_000)", sink=disk)
    async with kernel_server() as server:
        connection = (await server.live.adopt(await server.start_kernel())).connection
        connection.start(agent.run)
        try:
            assert await asyncio.to_thread(disk.is_at_it.wait, SOON)
            reading = asyncio.to_thread(connection.requests.outputs, agent.run)
            outputs = await asyncio.wait_for(reading, SOON)
            assert outputs[0]["text"].startswith("a line of text\n")
            seen = asyncio.get_running_loop().create_future()
            channels = connection.channels  # the thread that reads still does what it is told
            channels.call(lambda: connection.on_loop(settle, seen))
            await asyncio.wait_for(seen, SOON)
            assert await asyncio.to_thread(disk.is_asked_often.wait, SOON)
            assert disk.written < 3_000_000
            assert not agent.ended.done()
        finally:
            disk.goes_on.set()
        ended = await asyncio.wait_for(agent.ended, SOON)
    assert ended.omitted.bytes > 0
    assert disk.written == len(text(ended)) + ended.omitted.bytes == 40 * (70_000 * 15 + 1)
