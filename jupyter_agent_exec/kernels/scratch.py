"""Scratch kernels: started for one agent session, warm where possible, never handed on.

They are kernels of the server's own kernel manager, so they appear in Jupyter's list of running
kernels, but belong to no Jupyter session.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple
from weakref import WeakSet

from ..errors import AgentExecError, KernelUnavailable
from ..tasks import Tasks, call_later_apart, first_of, start_apart
from ..types import ExecutionState
from .connection import KernelConnection
from .endings import Life
from .isolation.isolation import Isolation
from .kernel import Death, WorkingFolder
from .server import ServerKernels, kernel_spec
from .turns import Turns

IPYKERNEL_ARGUMENTS = [
    # What agents run stays out of the person's own IPython history, as with nbclient.
    "--HistoryManager.hist_file=:memory:",
    # ipykernel waits half a millisecond before each reply, for frontends that take the reply for
    # the end of the output. Here a run ends with reply and idle, and idle follows all output.
    "--Kernel._execute_sleep=0",
]


KILL_TIMEOUT = 5.0
"""Seconds to wait for the end of a process that was killed."""


class Spec(NamedTuple):
    """What a kernel is started with."""

    kernel_name: str
    cwd: str
    """Contents path of a folder that exists."""
    env: tuple[tuple[str, str], ...]
    """Environment variables beyond the server's own, sorted by name."""


class EndedAtStart(Exception):
    """A kernel's process ended before it answered."""


class ScratchKernel:
    """A running scratch kernel and the connection to it."""

    owned = True

    def __init__(
        self,
        kernels: ServerKernels,
        manager: Any,
        connection: KernelConnection,
        spec: Spec,
    ) -> None:
        self.id = connection.kernel_id
        self.name = spec.kernel_name
        self.connection = connection
        self.turns = Turns()
        self._kernels = kernels
        self._manager = manager
        self._life = Life(kernels, manager, connection)

    @property
    def language_info(self) -> dict[str, Any]:
        """As the kernel tells it."""
        info: dict[str, Any] = self.connection.kernel_info.get("language_info", {})
        return info

    @property
    def display_name(self) -> str:
        """The kernelspec's name for people."""
        name: str = self._manager.kernel_spec.display_name
        return name

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or somebody is ending it."""
        return self._life.is_ending

    async def interrupt(self) -> None:
        """Interrupt what runs in it."""
        await self._kernels.interrupt_kernel(self.id)
        self.connection.interrupted()

    async def death(self) -> Death:
        """Wait until it ends, and tell how."""
        return await self._life.death()

    def shows(self, execution_state: ExecutionState) -> None:
        """Tell Jupyter's list of running kernels what this one does."""
        if self.id in self._kernels:
            self._manager.execution_state = execution_state
            now = datetime.now(timezone.utc)
            self._manager.last_activity = self._kernels.last_kernel_activity = now

    async def let_go(self) -> None:
        """Shut it down; nothing happens if it has ended already."""
        await self.connection.close()
        if self.id in self._kernels:
            await _killed(self._manager.provisioner)
            await self._kernels.shutdown_kernel(self.id, now=True)


async def _killed(provisioner: Any) -> None:
    """Kill a kernel that is a process here, and wait for its end.

    Its manager would do so too, but look for the end only every tenth of a second.
    """
    process = getattr(provisioner, "process", None)
    if process is not None:
        await provisioner.kill()
        with suppress(TimeoutExpired):
            await asyncio.to_thread(process.wait, KILL_TIMEOUT)


class ScratchSource:
    """One session's scratch kernels: each is started with the same."""

    def __init__(self, kernels: ScratchKernels, spec: Spec) -> None:
        self._kernels = kernels
        self._spec = spec

    @property
    def folder(self) -> WorkingFolder:
        """Where they start."""
        return self._kernels.folder(self._spec)

    async def take(self) -> ScratchKernel:
        """Return a kernel that has not run anything."""
        return await self._kernels.take(self._spec)

    async def release(self) -> None:
        """Have nothing to give up."""


class FolderSource:
    """One session's kernels in a folder that is theirs, or isolated in it: none is kept warm.

    Parameters
    ----------
    folder
        Where they work; None for a folder that they alone have, and that goes with the session.
    isolated
        Whether they are.
    """

    def __init__(
        self, kernels: ScratchKernels, spec: Spec, folder: Path | None, *, isolated: bool
    ) -> None:
        self._kernels = kernels
        self._spec = spec
        self._isolated = isolated
        self._own: TemporaryDirectory[str] | None = None
        self.folder = None if folder is None else WorkingFolder(folder)
        """Where they work; None as long as there is none of their own yet."""

    async def take(self) -> ScratchKernel:
        """Return a kernel that has not run anything."""
        if self.folder is None:
            self._own = TemporaryDirectory(
                prefix="agent-exec-work-",
                dir=os.path.realpath(gettempdir()),  # noqa: ASYNC240 - once, and on a local disk
                ignore_cleanup_errors=True,
            )
            self.folder = WorkingFolder(Path(self._own.name))
        return await self._kernels.take_in(self.folder.path, self._spec, isolated=self._isolated)

    async def release(self) -> None:
        """Remove the folder of their own."""
        if self._own is not None:
            await asyncio.to_thread(self._own.cleanup)


class ScratchKernels:
    """Starts scratch kernels, and keeps some warm once they have been used.

    A warm kernel is a started one that has not run anything, in the right folder with the right
    environment: it is taken only by a session that asks for just the same.

    Parameters
    ----------
    kernels
        The server's kernel manager.
    pool_size
        How many kernels to keep warm; 0 for none.
    start_timeout
        Seconds within which a kernel must answer.
    idle_timeout
        Seconds after which a warm kernel that nobody took is shut down; 0 for never.
    """

    def __init__(
        self,
        kernels: ServerKernels,
        *,
        pool_size: int,
        start_timeout: float,
        idle_timeout: float,
        isolation: Isolation,
        log: logging.Logger,
    ) -> None:
        self._kernels = kernels
        self._isolation = isolation
        self._pool_size = pool_size
        self._start_timeout = start_timeout
        self._idle_timeout = idle_timeout
        self._log = log
        self._warm: deque[ScratchKernel] = deque()
        self._warm_spec: Spec | None = None
        self._filling: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._ending = Tasks(log)
        self._managers: WeakSet[Any] = WeakSet()
        self._stopping = False

    def isolates(self, asked: bool) -> bool:
        """Tell whether a session's kernels are isolated, by what it asks and the server says."""
        return asked or self._isolation.mode == "always"

    def spec(self, kernel_name: str | None, cwd: str, env: Mapping[str, str]) -> Spec:
        """Make a spec; raise KernelSpecNotFound if no kernelspec has this name."""
        name = kernel_name or self._kernels.default_kernel_name
        kernel_spec(self._kernels, name)
        return Spec(name, cwd, tuple(sorted(env.items())))

    def own_folder(self, spec: Spec) -> FolderSource:
        """Return where kernels come from that have a folder of their own."""
        return FolderSource(self, spec, None, isolated=False)

    def isolated(self, spec: Spec, *, own_folder: bool) -> FolderSource:
        """Return where isolated kernels come from.

        Raises
        ------
        IsolationUnavailable, InvalidRequest
            The server isolates none, or not in that folder.
        """
        self._isolation.check_allowed()
        if own_folder:
            return FolderSource(self, spec, None, isolated=True)
        folder = self.folder(spec).path.resolve()
        self._isolation.check_folder(folder)
        return FolderSource(self, spec, folder, isolated=True)

    def has(self, kernel_id: str) -> bool:
        """Tell whether a kernel is one of these, in a session or warm."""
        return kernel_id in self._kernels and self._kernels.get_kernel(kernel_id) in self._managers

    def folder(self, spec: Spec) -> WorkingFolder:
        """Return where a kernel works."""
        return WorkingFolder(Path(self._kernels.cwd_for_path(spec.cwd)))

    async def take(self, spec: Spec) -> ScratchKernel:
        """Return a kernel that has not run anything: a warm one, or else start one."""
        kernel = None
        if spec == self._warm_spec:
            if not self._warm and self._filling is not None:
                await asyncio.wait({self._filling})
            while self._warm and kernel is None:
                kernel = self._warm.popleft()
                if kernel.connection.disconnected.done():
                    self._end_later(kernel)
                    kernel = None
        if kernel is None:
            kernel = await self._start(spec)
        self._keep_warm(spec)
        return kernel

    async def take_in(self, folder: Path, spec: Spec, *, isolated: bool) -> ScratchKernel:
        """Start a kernel in a folder of this machine; none is ever warm."""
        return await self._start(spec, folder, isolated=isolated)

    async def stop(self) -> None:
        """Shut down the warm kernels, and wait for those that are being shut down."""
        self._stopping = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        self._discard_warm()
        await self._ending.end()

    def _keep_warm(self, spec: Spec) -> None:
        """Have warm kernels for whoever asks for the same next."""
        if self._stopping or self._pool_size == 0:
            return
        if spec != self._warm_spec:
            self._discard_warm()
            self._warm_spec = spec
        if self._filling is None or self._filling.done():
            self._filling = start_apart(self._fill(), "scratch kernel pool")
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._idle_timeout:
            self._idle_timer = call_later_apart(self._idle_timeout, self._discard_warm)

    async def _fill(self) -> None:
        while not self._stopping and len(self._warm) < self._pool_size:
            spec = self._warm_spec
            if spec is None:
                return
            try:
                kernel = await self._start(spec)
            except KernelUnavailable as error:
                self._log.warning("No warm kernel: %s", error.message)
                return
            if spec == self._warm_spec and not self._stopping:
                self._warm.append(kernel)
            else:
                self._end_later(kernel)

    def _discard_warm(self) -> None:
        self._warm_spec = None
        while self._warm:
            self._end_later(self._warm.popleft())

    def _end_later(self, kernel: ScratchKernel) -> None:
        self._ending.start(kernel.let_go(), f"end kernel {kernel.id}")

    def _arguments(self, kernel_name: str) -> list[str]:
        argv = self._kernels.kernel_spec_manager.get_kernel_spec(kernel_name).argv
        return IPYKERNEL_ARGUMENTS if any("ipykernel" in argument for argument in argv) else []

    async def _start(
        self, spec: Spec, folder: Path | None = None, *, isolated: bool = False
    ) -> ScratchKernel:
        """Start a kernel, and another one if it ends before it is ready."""
        try:
            return await self._start_once(spec, folder, isolated=isolated)
        except EndedAtStart:
            # Ports are chosen before they are taken, and may be somebody else's by then.
            self._log.warning("Kernel %r ended as it started; trying again", spec.kernel_name)
        try:
            return await self._start_once(spec, folder, isolated=isolated)
        except EndedAtStart as error:
            raise self._unavailable(spec) from error

    async def _start_once(
        self, spec: Spec, folder: Path | None, *, isolated: bool
    ) -> ScratchKernel:
        kernel_id = ""
        connection: KernelConnection | None = None
        start = partial(
            self._kernels.start_kernel,
            kernel_name=spec.kernel_name,
            path=spec.cwd,
            env={**os.environ, **dict(spec.env)},
            extra_arguments=self._arguments(spec.kernel_name),
        )
        try:
            if folder is None:
                kernel_id = await start()
            elif isolated:
                kernel_id = await self._isolation.start(start, folder, dict(spec.env))
            else:
                kernel_id = await start(path=None, cwd=str(folder))
            manager = self._kernels.get_kernel(kernel_id)
            self._managers.add(manager)
            # Its state is told from our own drain: one reader of IOPub on the loop less. And its
            # death is ours to tell: the autorestart would hide it.
            self._kernels.stop_watching_activity(kernel_id)
            manager.stop_restarter()
            connection = KernelConnection(
                manager.get_connection_info(),
                kernel_id=kernel_id,
                kernel_name=spec.kernel_name,
                log=self._log,
            )
            await self._until_ready(manager, connection)
        except BaseException as error:
            if connection is not None:
                await connection.close()
            if kernel_id in self._kernels:
                await self._kernels.shutdown_kernel(kernel_id, now=True)
            if not isinstance(error, Exception) or isinstance(
                error, (AgentExecError, EndedAtStart)
            ):
                raise
            self._log.warning("Kernel %r did not start", spec.kernel_name, exc_info=error)
            raise self._unavailable(spec) from error
        kernel = ScratchKernel(self._kernels, manager, connection, spec)
        connection.on_state = kernel.shows
        kernel.shows("idle")
        return kernel

    async def _until_ready(self, manager: Any, connection: KernelConnection) -> None:
        """Wait until a kernel answers.

        Raises
        ------
        EndedAtStart
            Its process has ended.
        TimeoutError
        """
        ready = asyncio.ensure_future(connection.ready())
        ended = asyncio.ensure_future(manager.provisioner.wait())
        try:
            await first_of(ready, ended, timeout=self._start_timeout)
            if ready.done():
                ready.result()
            elif ended.done():
                raise EndedAtStart
            else:
                raise TimeoutError
        finally:
            ready.cancel()
            ended.cancel()

    def _unavailable(self, spec: Spec) -> KernelUnavailable:
        return KernelUnavailable(
            f"The kernel {spec.kernel_name!r} did not start; the server's log says why.",
            kernel_name=spec.kernel_name,
        )
