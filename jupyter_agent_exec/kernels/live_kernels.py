"""Users' running kernels: adopted by id, shared, never shut down by us.

All sessions that hold a kernel share one connection and one queue until this life of the kernel
ends. The server keeps watching, restarting and buffering the kernel as before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from ..errors import KernelNotFound, KernelUnavailable
from ..tasks import settle, start_apart
from ..text.redaction import Redactor
from ..types import KernelState
from .channels import KernelDeath
from .connection import KernelConnection
from .inspection import REQUESTS
from .kernel import Kernel, KernelLife, settled
from .kernel_queue import KernelQueue
from .outputs import AGENT_TOKENS
from .person_executions import NOTHING, PersonRecording
from .runs import Runs
from .server_kernels import ServerKernels, open_channels

ANSWER_TIMEOUT: Final = 1.0
"""Seconds to wait for the answer of an idle kernel. If the kernel has become busy meanwhile, the
answer may come later."""


CLOSE_TIMEOUT: Final = 5.0
"""Seconds within which all sessions let go of a kernel that is about to be replaced."""


class LiveKernels:
    """Adopts running kernels of the server.

    Parameters
    ----------
    kernels
        The server's kernel manager.
    start_timeout
        Seconds within which a kernel that starts, or is being restarted, must answer.
    people
        Which parts of other people's executions to record.
    redactor
        Replaces secrets in what kernels send.
    """

    def __init__(
        self,
        kernels: ServerKernels,
        *,
        log: logging.Logger,
        start_timeout: float,
        people: PersonRecording = NOTHING,
        redactor: Redactor = AGENT_TOKENS,
    ) -> None:
        self._kernels = kernels
        self._log = log
        self._start_timeout = start_timeout
        self._people = people
        self._redactor = redactor
        self._lives: dict[str, _SharedLife] = {}
        self._runs: dict[str, tuple[object, Runs]] = {}
        """What ran in each kernel, and in which life of it."""
        self.explain: Callable[[str, KernelDeath], Awaitable[KernelDeath]] = _unexplained
        """Returns how a kernel ended, with what is known besides."""
        # Otherwise, the server might count a kernel as idle, and cull it, while it runs a cell.
        kernels.untracked_message_types = list(
            dict.fromkeys([*kernels.untracked_message_types, *REQUESTS])
        )

    async def adopt(self, kernel_id: str) -> LiveKernel:
        """Hold a kernel, which may be busy for a long time. The caller must release it.

        If the kernel ends while it starts, for example because another process took its ports, this
        waits until the server has started it again.

        Raises
        ------
        KernelNotFound
            The server has no kernel with this id.
        KernelUnavailable
            It is dead, does not start in time, or cannot be reached from here.
        """
        kernel = await self._started(kernel_id) or await self._started(kernel_id)
        if kernel is None:
            raise KernelUnavailable("The kernel ended as it started, twice.", kernel_id=kernel_id)
        return kernel

    async def _started(self, kernel_id: str) -> LiveKernel | None:
        """Hold a kernel; None if it ended as it started."""
        manager, was_restarted = await self._come_to_life(kernel_id)
        found = "starting" if was_restarted else _state_of(manager)
        life = self._lives.get(kernel_id)
        if life is None or life.life.is_over:
            connection = KernelConnection(
                open_channels(manager, kernel_id, self._log),
                kernel_id=kernel_id,
                kernel_name=manager.kernel_name,
                found=found,
                people=self._people,
                redactor=self._redactor,
            )
            life = _SharedLife(KernelLife(self._kernels, manager, connection), self)
            self._lives[kernel_id] = life
            self._note_runs(life)
        kernel = LiveKernel(self._kernels, self, life)
        try:
            if await self._answers(kernel, found):
                return kernel
            await kernel.death()
        except BaseException:
            await kernel.let_go()
            raise
        await kernel.let_go()
        return None

    async def stop(self) -> None:
        """Release all kernels, for all sessions that hold them."""
        lives, self._lives = self._lives, {}
        await asyncio.gather(*(life.close() for life in lives.values()))

    async def replace(self, kernel_id: str, death: KernelDeath) -> None:
        """End the life of a kernel whose process another one is about to replace.

        Returns when all sessions have let go of it.
        """
        life = self._lives.pop(kernel_id, None)
        if death.reason != "undone":
            self._runs.pop(kernel_id, None)
        if life is not None:
            life.connection.death = death
            life.connection.lost()
            await asyncio.wait({life.closed}, timeout=CLOSE_TIMEOUT)

    def runs(self, kernel_id: str) -> Runs | None:
        """Return what was seen to run in a kernel since it started; None if nothing was.

        Raises
        ------
        KernelNotFound
        """
        if kernel_id not in self._kernels:
            raise not_running(kernel_id)
        mark, runs = self._runs.get(kernel_id, (None, None))
        life = self._lives.get(kernel_id)
        is_same = mark is self._kernels.get_kernel(kernel_id).ready
        return runs if is_same or (life is not None and life.life.mark is mark) else None

    def _note_runs(self, life: _SharedLife) -> None:
        """Note what runs in a kernel, together with what ran before in the same life."""
        kernel_id = life.connection.kernel_id
        runs = self.runs(kernel_id) or Runs()
        self._runs = {id: each for id, each in self._runs.items() if id in self._kernels}
        self._runs[kernel_id] = (life.life.mark, runs)
        life.connection.runs = runs

    async def leave(self, life: _SharedLife) -> None:
        """Close the connection if no session holds this life of a kernel any more."""
        if life.holders:
            return
        if self._lives.get(life.connection.kernel_id) is life:
            del self._lives[life.connection.kernel_id]
        await life.close()

    async def _come_to_life(self, kernel_id: str) -> tuple[Any, bool]:
        """Wait until a kernel runs; return its manager, and whether this had to wait."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_timeout
        waited = False
        while (left := deadline - loop.time()) > 0:
            if kernel_id not in self._kernels:
                raise not_running(kernel_id)
            manager = self._kernels.get_kernel(kernel_id)
            if not manager.ready.done():
                await settled(manager, left)
            elif await manager.is_alive():
                return manager, waited
            elif not manager.autorestart or manager.shutting_down:
                break
            else:
                await _restarting(manager, left)
            waited = True
        raise KernelUnavailable(
            "The kernel is dead, or does not come back; a person can restart it.",
            kernel_id=kernel_id,
        )

    async def _answers(self, kernel: LiveKernel, found: KernelState) -> bool:
        """Wait for the execution state of a kernel that should answer at once.

        Returns
        -------
        False if it ended as it started.
        """
        connection = kernel.connection
        starts = found == "starting"
        if found != "busy":
            await asyncio.wait(
                {connection.greeted, connection.disconnected},
                timeout=self._start_timeout if starts else ANSWER_TIMEOUT,
                return_when=asyncio.FIRST_COMPLETED,
            )
        is_gone = connection.disconnected.done()
        if starts and is_gone:
            return False
        if is_gone or (starts and not connection.greeted.done()):
            raise KernelUnavailable(
                "The kernel ended, or did not answer, when it was about to be used.",
                kernel_id=kernel.id,
            )
        return True


class LiveKernel(Kernel):
    """A user's kernel, in one life, held by one session."""

    owned = False

    def __init__(self, kernels: ServerKernels, live: LiveKernels, shared: _SharedLife) -> None:
        super().__init__(kernels, shared.life, shared.turns)
        self._live = live
        self._shared = shared
        shared.holders.add(self)

    async def death(self) -> KernelDeath:
        """Wait until this life ends, and return how."""
        return await asyncio.shield(self._shared.ending)

    async def let_go(self) -> None:
        """Release it. The kernel continues unchanged."""
        self._shared.holders.discard(self)
        await self._live.leave(self._shared)


class _SharedLife:
    """The state of a kernel that all its sessions share."""

    def __init__(self, life: KernelLife, live: LiveKernels) -> None:
        self.life = life
        self.connection = life.connection
        self.turns = KernelQueue(self.connection.activity)
        self.connection.on_state = self.turns.kernel_is
        self.connection.disconnected.add_done_callback(lambda _: self.turns.close())
        self.holders: set[LiveKernel] = set()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        life.watch()
        self.ending = start_apart(self._end(live), f"end of {life.connection.kernel_id}")

    async def _end(self, live: LiveKernels) -> KernelDeath:
        """Wait for the end of this life, and return how it ended."""
        return await live.explain(self.connection.kernel_id, await self.life.death())

    async def close(self) -> None:
        """Close the connection to the kernel, and cancel those who wait for its end."""
        self.life.unwatch()
        self.ending.cancel()
        await asyncio.wait({self.ending})
        await self.connection.close()
        settle(self.closed)


async def _unexplained(_: str, death: KernelDeath) -> KernelDeath:
    return death


def not_running(kernel_id: str) -> KernelNotFound:
    """Return the error for a kernel that does not exist, or that the caller may not use."""
    return KernelNotFound(
        f"No kernel with the id {kernel_id!r} runs on this server.", kernel_id=kernel_id
    )


def _state_of(manager: Any) -> KernelState:
    """Return the execution state of a kernel that the server knows."""
    state = getattr(manager, "execution_state", None)
    return state if state in ("busy", "idle") else "starting"


async def _restarting(manager: Any, timeout: float) -> None:
    """Wait until the server's restarter restarts a dead kernel, or stops trying."""
    told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    tell = partial(settle, told)
    manager.add_restart_callback(tell, "restart")
    manager.add_restart_callback(tell, "dead")
    try:
        await asyncio.wait({told}, timeout=timeout)
    finally:
        manager.remove_restart_callback(tell, "restart")
        manager.remove_restart_callback(tell, "dead")
