"""How many kernels an interpreter that awaits has at a time."""

from __future__ import annotations

import asyncio

from jupyter_agent_exec.adapters.kernel_session import KernelSession, SessionOptions, Target
from jupyter_agent_exec.adapters.lagent.interpreters import Kernels


class SlowToEnd(KernelSession):
    def __init__(self) -> None:
        super().__init__(Target(), SessionOptions(agent="tests"))
        self.ends = asyncio.Event()
        self.may_end = asyncio.Event()

    async def close_async(self) -> None:
        self.ends.set()
        await self.may_end.wait()


def test_a_kernel_that_still_ends_leaves_no_room() -> None:
    async def use() -> None:
        kernels = Kernels(SlowToEnd, 1)
        first = await kernels.of("first")
        assert isinstance(first, SlowToEnd)
        ending = asyncio.create_task(kernels.close("first"))
        await first.ends.wait()
        waiting = asyncio.create_task(kernels.of("second"))
        await asyncio.sleep(0)
        assert not waiting.done()
        first.may_end.set()
        await ending
        assert await waiting is not first

    asyncio.run(use())


def test_those_who_ask_for_one_at_once_get_the_same() -> None:
    async def use() -> None:
        kernels = Kernels(SlowToEnd, None)
        one, other = await asyncio.gather(kernels.of("one"), kernels.of("one"))
        assert one is other is kernels.known("one")
        assert kernels.known("another") is None

    asyncio.run(use())
