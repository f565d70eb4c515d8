"""The kernels of one session, one after the other: each is an incarnation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ..errors import AgentExecError
from ..kernels.channels import KernelDeath
from ..kernels.kernel import Kernel, KernelSource
from ..models import SessionKernel
from ..records import SERVER, By, KernelEnded, KernelStarted, timestamp
from ..tasks import Tasks, first_of, start_apart
from ..types import RestartReason
from .recorder import Recorder


class Incarnations:
    """Gives a session its kernel, and a new kernel when that one has ended.

    Parameters
    ----------
    born
        Called with each new kernel before the session runs anything else in it.
    died
        Called after a kernel has ended by itself, or somebody else has ended it.
    """

    def __init__(
        self,
        kernels: KernelSource,
        *,
        recorder: Recorder,
        born: Callable[[Kernel], Awaitable[None]],
        died: Callable[[Kernel, KernelDeath], Awaitable[None]],
    ) -> None:
        self.kernels = kernels
        self._recorder = recorder
        self._born = born
        self._died = died
        self._lock = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._gone: RestartReason | None = None
        self.current: Kernel | None = None
        self.number = 0
        """The number of the current incarnation; 1 for the first."""
        self.untold: RestartReason | None = None
        """Why the variables were lost; None once an execution has reported it."""

    @property
    def _usable(self) -> Kernel | None:
        return None if self._is_dying() or self._lock.locked() else self.current

    def model(self) -> SessionKernel | None:
        """Return the kernel and its state."""
        if self.current is None:
            return None
        return SessionKernel(
            id=self.current.id,
            name=self.current.name,
            execution_state=self.current.connection.execution_state,
            incarnation=self.number,
        )

    async def begin(self, kernel: Kernel) -> None:
        """Start with a kernel that has not run anything yet."""
        async with self._lock:
            await self._adopt(kernel)

    async def confirmed(self) -> Kernel | None:
        """Check that the kernel is still the session's; return the kernel if it can be used."""
        kernel = self._usable
        if kernel is None:
            return kernel
        parted = await self.kernels.parted(kernel)
        if parted is not None and kernel is self.current:
            await self._died(kernel, parted)
        return self._usable

    async def end_of(self, kernel: Kernel) -> None:
        """Wait until the end of a kernel is recorded."""
        if kernel is self.current and self._watch is not None:
            await asyncio.wait({self._watch})

    async def fresh(self) -> Kernel:
        """Return the kernel; start a new one if there is none.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        async with self._lock:
            if self._watch is not None and self._is_dying():
                await asyncio.wait({self._watch})  # until the kernel's end is recorded
            if self.current is None:
                await self._adopt(await self.kernels.take())
            assert self.current is not None
            return self.current

    async def fresh_unless(self, withdrawn: asyncio.Future[None], tasks: Tasks) -> Kernel | None:
        """Return the kernel as `fresh` does; return None if `withdrawn` is done first.

        Parameters
        ----------
        tasks
            Keeps a kernel start alive that the caller no longer waits for.
        """
        fresh = asyncio.create_task(self.fresh(), name="fresh kernel")
        await first_of(fresh, withdrawn)
        if fresh.done():
            return fresh.result()
        tasks.start(_ignore(fresh), fresh.get_name())
        return None

    async def begun(self) -> None:
        """Wait until no kernel is being started."""
        async with self._lock:
            return

    async def end(self, death: KernelDeath, by: By) -> Kernel | None:
        """Record the kernel's end, and return the kernel for the caller to release.

        Returns None if there is no kernel.
        """
        kernel = self.current
        if kernel is None:
            return None
        self._gone = death.reason
        self.current = None
        if self._watch is not None and self._watch is not asyncio.current_task():
            self._watch.cancel()
        await self._recorder.record(
            KernelEnded(
                at=timestamp(),
                by=by,
                kernel_id=kernel.id,
                incarnation=self.number,
                reason=death.reason,
                message=death.message,
            )
        )
        return kernel

    def leave(self) -> None:
        """Detach from the kernel, which keeps running; the caller releases it."""
        self.current = None
        if self._watch is not None:
            self._watch.cancel()

    async def _adopt(self, kernel: Kernel) -> None:
        self.number += 1
        self.current = kernel
        model = self.model()
        assert model is not None
        try:
            await self._recorder.write(
                KernelStarted(
                    at=timestamp(),
                    by=SERVER,
                    kernel=model,
                    reason=self._gone,
                    display_name=kernel.display_name,
                    language_info=kernel.language_info,
                )
            )
        except BaseException:
            self.number -= 1
            self.current = None
            await kernel.let_go()
            raise
        self.untold = self._gone
        self._watch = start_apart(self._watch_over(kernel), f"death of {kernel.id}")
        try:
            await self._born(kernel)
        except AgentExecError as error:
            if kernel.owned:
                await self.end(KernelDeath("shut_down", error.message), SERVER)
            else:
                self.leave()
            await kernel.let_go()
            raise

    def _is_dying(self) -> bool:
        return self.current is not None and self.current.is_ending

    async def _watch_over(self, kernel: Kernel) -> None:
        death = await kernel.death()
        try:
            death = await self.kernels.explain(kernel, death)
        finally:  # if `explain` fails too: others wait until the kernel's end is recorded
            if kernel is self.current:
                await self._died(kernel, death)


async def _ignore(fresh: asyncio.Future[Kernel]) -> None:
    """Wait for a kernel start whose result is no longer needed; ignore its errors."""
    with suppress(AgentExecError):
        await fresh
