"""Outputs are read while they come, whatever their coming waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.kernels.kernel_server import SOON, AgentRun, kernel_server, text

pytestmark = pytest.mark.usefixtures("jp_environ")


class SlowDisk:
    """Takes a text, and puts none of it away until it is let."""

    def __init__(self) -> None:
        self.is_at_it = threading.Event()
        self.goes_on = threading.Event()
        self.written = 0

    def write(self, piece: str) -> None:
        self.written += len(piece)

    def flush(self) -> None:
        self.is_at_it.set()
        self.goes_on.wait()


async def test_nobody_who_reads_outputs_waits_for_the_disk() -> None:
    disk = SlowDisk()
    agent = AgentRun(1, "print('a line of text\\n' * 100_000)", sink=disk)
    async with kernel_server() as server:
        connection = (await server.live.adopt(await server.start_kernel())).connection
        connection.start(agent.run)
        try:
            assert await asyncio.to_thread(disk.is_at_it.wait, SOON)
            reading = asyncio.to_thread(connection.outputs, agent.run)
            outputs = await asyncio.wait_for(reading, SOON)
            assert outputs[0]["text"].startswith("a line of text\n")
        finally:
            disk.goes_on.set()
        ended = await asyncio.wait_for(agent.ended, SOON)
    assert ended.omitted.bytes > 0
    assert disk.written == len(text(ended)) + ended.omitted.bytes
