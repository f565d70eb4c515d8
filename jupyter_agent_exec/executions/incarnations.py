"""The kernels of one session, one after the other: each is an incarnation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from ..errors import AgentExecError
from ..kernels.kernel import Death, Kernel, KernelSource, WorkingFolder
from ..models import SessionKernel
from ..records import SERVER, By, KernelEnded, KernelStarted, timestamp
from ..tasks import Tasks, first_of, start_apart
from ..types import RestartReason
from .recorder import Recorder


class SessionNotebook(Protocol):
    """The notebook of a session whose target is one, and which kernel it has."""

    @property
    def path(self) -> str:
        """Its contents path now."""

    async def parted(self, kernel: Kernel) -> Death | None:
        """Return why the notebook does not have this kernel any more; None if it still does."""

    async def explain(self, kernel: Kernel, death: Death) -> Death:
        """Return how a kernel ended, in more detail if Jupyter knows more."""


class Incarnations:
    """Gives a session its kernel, and a new one when that has ended.

    Parameters
    ----------
    notebook
        The notebook whose kernels these are; None if the session's target is none.
    born
        Called with each kernel before anything else may run in it.
    died
        Called after a kernel has ended by itself, or somebody else has ended it.
    """

    def __init__(
        self,
        kernels: KernelSource,
        *,
        notebook: SessionNotebook | None,
        recorder: Recorder,
        born: Callable[[Kernel], Awaitable[None]],
        died: Callable[[Kernel, Death], Awaitable[None]],
    ) -> None:
        self._kernels = kernels
        self._notebook = notebook
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
        """Why the variables are gone, until an execution has reported it."""

    @property
    def ready(self) -> Kernel | None:
        """The kernel, if it can be used at once without a look at its notebook."""
        return self._usable if self._notebook is None else None

    @property
    def folder(self) -> WorkingFolder | None:
        """Where the kernel works; None if that is not known, or not on this machine."""
        return self._kernels.folder

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
        """Return the kernel if it can be used, after checking that its notebook still has it."""
        kernel = self._usable
        if kernel is None or self._notebook is None:
            return kernel
        parted = await self._notebook.parted(kernel)
        if parted is not None and kernel is self.current:
            await self._died(kernel, parted)
        return self._usable

    async def end_of(self, kernel: Kernel) -> None:
        """Wait until it is recorded how a kernel ended."""
        if kernel is self.current and self._watch is not None:
            await asyncio.wait({self._watch})

    async def fresh(self) -> Kernel:
        """Return the kernel, a new one if there is none.

        Raises
        ------
        KernelUnavailable, HistoryUnavailable, InitFailed
        """
        async with self._lock:
            if self._watch is not None and self._is_dying():
                await asyncio.wait({self._watch})  # until it is recorded how the kernel ended
            if self.current is None:
                await self._adopt(await self._kernels.take())
            assert self.current is not None
            return self.current

    async def fresh_unless(self, withdrawn: asyncio.Future[None], tasks: Tasks) -> Kernel | None:
        """Return the kernel, a new one if there is none; None if `withdrawn` is done first.

        Parameters
        ----------
        tasks
            Where a start continues that nobody waits for any more.
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

    async def end(self, death: Death, by: By) -> Kernel | None:
        """Give up the kernel; return it so that the caller can let it go, None if there is none."""
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

    async def release(self) -> None:
        """Free what the kernels used beside themselves; the session has ended."""
        await self._kernels.release()

    def leave(self) -> None:
        """Give up the kernel, which goes on; the caller lets it go."""
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
                await self.end(Death("shut_down", error.message), SERVER)
            else:
                self.leave()
            await kernel.let_go()
            raise

    def _is_dying(self) -> bool:
        return self.current is not None and self.current.is_ending

    async def _watch_over(self, kernel: Kernel) -> None:
        death = await kernel.death()
        try:
            if self._notebook is not None:
                death = await self._notebook.explain(kernel, death)
        finally:  # also if Jupyter cannot say more: who waits for a kernel must not wait for this
            if kernel is self.current:
                await self._died(kernel, death)


async def _ignore(fresh: asyncio.Future[Kernel]) -> None:
    """Wait for the start of a kernel that nobody needs any more."""
    with suppress(AgentExecError):
        await fresh
