"""Scratch kernels: each is started for one agent session, warm if possible, and never reused.

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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from weakref import WeakSet

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from ..errors import AgentExecError, InvalidRequest, IsolationUnavailable, KernelUnavailable
from ..tasks import Tasks, call_later_apart, first_of, start_apart
from ..text.redaction import Redactor
from ..types import KernelState
from ..workarounds import IPYKERNEL_ARGUMENTS, forget_failed_starts
from .channels import KernelDeath
from .connection import KernelConnection
from .folder import Folder, FolderGone
from .kernel import Kernel, KernelLife, KernelSource
from .kernel_queue import KernelQueue
from .outputs import AGENT_TOKENS
from .provisioner import Isolation, folder_provisioner
from .server_kernels import (
    KernelStarter,
    RemoteKernels,
    ServerKernels,
    is_elsewhere,
    kernel_spec,
    open_channels,
)

POLL_DELAY = 0.5
"""Seconds between checks whether a kernel that starts on another machine has ended."""

KILL_TIMEOUT = 5.0
"""Seconds to wait for the end of a process that was killed."""


class Spec(NamedTuple):
    """The options to start a kernel with."""

    kernel_name: str
    folder: Folder
    """The folder in which it starts."""
    env: tuple[tuple[str, str], ...]
    """Environment variables beyond the server's own, sorted by name."""


class EndedAtStart(Exception):
    """A kernel's process ended before it answered."""


class ScratchKernel(Kernel):
    """A running scratch kernel and the connection to it."""

    owned = True

    def __init__(self, kernels: ServerKernels, manager: Any, connection: KernelConnection) -> None:
        super().__init__(kernels, KernelLife(kernels, manager, connection), KernelQueue())
        self._manager = manager

    async def death(self) -> KernelDeath:
        """Wait until it ends, and return how."""
        return await self._life.death()

    def shows(self, execution_state: KernelState) -> None:
        """Set the fields of this kernel in Jupyter's list of running kernels."""
        if self.id in self._kernels:
            self._manager.execution_state = execution_state
            now = datetime.now(UTC)
            self._manager.last_activity = self._kernels.last_kernel_activity = now

    async def let_go(self) -> None:
        """Shut it down; nothing happens if it has ended already."""
        await self.connection.close()
        if self.id in self._kernels:
            await _killed(self._manager.provisioner)
            # Elsewhere it is asked first: a provisioner may have more there than the kernel.
            await self._kernels.shutdown_kernel(self.id, now=not self.is_elsewhere)


async def _killed(provisioner: Any) -> None:
    """Kill a local kernel's process, and wait for its end.

    Its manager would do so too, but look for the end only every tenth of a second.
    """
    process = provisioner.process if isinstance(provisioner, LocalProvisioner) else None
    if process is not None:
        await provisioner.kill()
        with suppress(TimeoutExpired):
            await asyncio.to_thread(process.wait, KILL_TIMEOUT)


class ScratchSource(KernelSource):
    """One session's scratch kernels, all started with the same options in the same folder.

    Parameters
    ----------
    spec
        The options to start them with. Its folder is ignored if `own_folder` is set.
    own_folder
        Whether they have a private folder, which is removed with the session.
    is_elsewhere
        Whether they may run on another machine, where there is no such folder.
    """

    def __init__(
        self,
        kernels: ScratchKernels,
        spec: Spec,
        *,
        own_folder: bool,
        isolated: bool,
        is_elsewhere: bool,
    ) -> None:
        self.is_elsewhere = is_elsewhere
        self._kernels = kernels
        self._spec = spec
        self._own_folder = own_folder
        self._isolated = isolated
        self._own: TemporaryDirectory[str] | None = None
        self._held: int | None = None
        self._folder: Folder | None = None

    @property
    def folder(self) -> Folder | None:
        """Their working folder; None before the first start, or if it is not on this machine."""
        return self._folder

    async def take(self) -> ScratchKernel:
        """Return a kernel that has not run anything."""
        if self.is_elsewhere:
            return await self._kernels.take(self._spec, isolated=False, may_be_warm=True)
        if self._held is None:
            if self._own_folder:
                self._spec = self._spec._replace(folder=self._make_own())
            self._held = self._kernels.open_folder(self._spec, isolated=self._isolated)
            self._spec = self._spec._replace(folder=self._spec.folder.held(self._held))
            self._folder = self._spec.folder
        else:
            self._look_again()
        is_warm = not self._isolated and not self._own_folder
        return await self._kernels.take(self._spec, isolated=self._isolated, may_be_warm=is_warm)

    async def release(self) -> None:
        """Close the folder, and remove it if it was made for these kernels."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        if self._own is not None:
            await asyncio.to_thread(self._own.cleanup)

    def _make_own(self) -> Folder:
        self._own = TemporaryDirectory(prefix="agent-exec-work-", ignore_cleanup_errors=True)
        path = Path(self._own.name)
        return Folder(path.parent, (path.name,))

    def _look_again(self) -> None:
        """Check that the folder was not moved, and is still allowed for these kernels."""
        try:
            os.close(self._kernels.open_folder(self._spec, isolated=self._isolated))
        except InvalidRequest as error:
            raise KernelUnavailable(
                f"{error.message} The kernel is not started elsewhere: open another session.",
                **error.detail,
            ) from error


class ScratchKernels:
    """Starts scratch kernels, and keeps some warm after the first use.

    A warm kernel was started with the options of an earlier session, and has not run anything. Only
    a session with exactly the same options gets it.

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
        starter: KernelStarter,
        *,
        pool_size: int,
        start_timeout: float,
        idle_timeout: float,
        isolation: Isolation,
        redactor: Redactor = AGENT_TOKENS,
        log: logging.Logger,
    ) -> None:
        self._kernels = kernels
        self._starter = starter
        self._isolation = isolation
        self._redactor = redactor
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

    def _check_gateway(self, spec: Spec, *, isolated: bool) -> None:
        """Refuse what kernels at a gateway cannot have."""
        if not isinstance(self._kernels, RemoteKernels):
            return
        where = "the kernels of this server run at a gateway, on another machine"
        if isolated:
            raise IsolationUnavailable(
                f"target.isolated: {where}, where this server cannot isolate them.",
                field="target.isolated",
            )
        refused = self._kernels.refused_env(dict(spec.env))
        if refused:
            raise InvalidRequest(
                f"target.env: {where}, and Jupyter does not pass on {', '.join(refused)}. The "
                "server's operator can allow it (GatewayClient.allowed_envs).",
                field="target.env",
            )

    def isolates(self, requested: bool) -> bool:
        """Return whether a session's kernels are isolated: the session or the server demands it."""
        return requested or self._isolation.mode == "always"

    async def spec(
        self, kernel_name: str | None, cwd: str, env: Mapping[str, str], *, is_here: bool
    ) -> Spec:
        """Make a spec.

        Parameters
        ----------
        cwd
            Contents path of a folder.
        is_here
            Whether contents are files on this machine. If not, Jupyter uses the nearest parent
            folder that exists.

        Raises
        ------
        KernelSpecNotFound, InvalidRequest
            There is no such kernelspec, or the folder is not below the server's root.
        """
        name = kernel_name or self._kernels.default_kernel_name
        await kernel_spec(self._kernels, name)
        root = Path(self._kernels.cwd_for_path(""))
        named = self._kernels.cwd_for_path(cwd)
        if is_here:
            named = os.path.normpath(root / cwd)  # noqa: ASYNC240 - asks no disk
        path = Path(named)
        if not path.is_relative_to(root):
            raise InvalidRequest(
                f"target.cwd: {cwd!r} is not below the server's root.", field="target.cwd"
            )
        return Spec(name, Folder(root, path.relative_to(root).parts), tuple(sorted(env.items())))

    async def source(self, spec: Spec, *, own_folder: bool, isolated: bool) -> ScratchSource:
        """Return a provider of a session's kernels. It starts nothing yet.

        Raises
        ------
        IsolationUnavailable, InvalidRequest
            The server does not isolate kernels, or not this kernelspec, or not in that folder.
        """
        self._check_gateway(spec, isolated=isolated)
        named = await kernel_spec(self._kernels, spec.kernel_name)
        if isolated:
            self._isolation.check_allowed(named)
        elsewhere = isinstance(self._kernels, RemoteKernels) or (
            self._starter.starts_elsewhere(named)
        )
        if elsewhere and own_folder:
            raise InvalidRequest(
                f"target.own_folder: the kernels {named.display_name!r} run on another machine, "
                "where this server cannot make a folder.",
                field="target.own_folder",
            )
        if not elsewhere and not own_folder:
            os.close(self.open_folder(spec, isolated=isolated))
        return ScratchSource(
            self, spec, own_folder=own_folder, isolated=isolated, is_elsewhere=elsewhere
        )

    def open_folder(self, spec: Spec, *, isolated: bool) -> int:
        """Open the folder in which a kernel is to start; the caller closes it.

        Raises
        ------
        InvalidRequest
            It does not exist, a link leads to it, or isolated kernels may not work in it.
        """
        try:
            descriptor = spec.folder.open()
        except (FolderGone, OSError) as error:
            raise InvalidRequest(
                f"target.cwd: no kernel can start in the folder {'/'.join(spec.folder.parts)!r}: "
                f"{error}.",
                field="target.cwd",
            ) from error
        try:
            if isolated:
                self._isolation.check_folder(
                    spec.folder.path,
                    self._kernels.kernel_spec_manager.get_kernel_spec(spec.kernel_name),
                )
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def has(self, kernel_id: str) -> bool:
        """Return whether a kernel is one of these, in a session or warm."""
        return kernel_id in self._kernels and self._kernels.get_kernel(kernel_id) in self._managers

    async def take(self, spec: Spec, *, isolated: bool, may_be_warm: bool) -> ScratchKernel:
        """Return a kernel that has run no code: a warm one if possible, otherwise a new one.

        Parameters
        ----------
        spec
            The options to start it with; the caller holds the folder open.
        """
        if not may_be_warm:
            return await self._start(spec, isolated=isolated)
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

    async def stop(self) -> None:
        """Shut down the warm kernels, and wait for all pending shutdowns."""
        self._stopping = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        self._discard_warm()
        await self._ending.end()
        forget_failed_starts(self._kernels)

    def _keep_warm(self, spec: Spec) -> None:
        """Keep kernels warm for the next session with the same spec."""
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
            except AgentExecError as error:
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

    async def _arguments(self, kernel_name: str) -> list[str]:
        argv = (await kernel_spec(self._kernels, kernel_name)).argv
        is_ipykernel = any("ipykernel" in argument for argument in argv)
        return list(IPYKERNEL_ARGUMENTS) if is_ipykernel else []

    async def _start(self, spec: Spec, *, isolated: bool = False) -> ScratchKernel:
        """Start a kernel, and another one if it ends before it is ready."""
        try:
            return await self._start_once(spec, isolated=isolated)
        except EndedAtStart:
            # Ports are chosen before they are bound. Another program may bind one in between.
            self._log.warning("Kernel %r ended as it started; trying again", spec.kernel_name)
        try:
            return await self._start_once(spec, isolated=isolated)
        except EndedAtStart as error:
            raise self._unavailable(spec) from error

    async def _start_once(self, spec: Spec, *, isolated: bool) -> ScratchKernel:
        kernel_id = ""
        connection: KernelConnection | None = None

        async def start() -> str:
            nonlocal kernel_id
            kernel_id = await self._kernels.start_kernel(
                kernel_name=spec.kernel_name,
                path=None,
                cwd=str(spec.folder.path),
                env={**os.environ, **dict(spec.env)},
                extra_arguments=await self._arguments(spec.kernel_name),
            )
            return kernel_id

        try:
            if isolated:
                await self._isolation.start(start, spec.folder, dict(spec.env))
            else:
                await self._starter.start(start, partial(folder_provisioner, spec.folder))
            manager = self._kernels.get_kernel(kernel_id)
            self._managers.add(manager)
            # Our own channels set its state, which saves a reader of IOPub on the loop. We also
            # report its death, which the autorestart would hide.
            self._kernels.stop_watching_activity(kernel_id)
            manager.stop_restarter()
            connection = KernelConnection(
                open_channels(manager, kernel_id, self._log),
                kernel_id=kernel_id,
                kernel_name=spec.kernel_name,
                redactor=self._redactor,
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
        kernel = ScratchKernel(self._kernels, manager, connection)
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
        ended = asyncio.ensure_future(self._ended(manager, connection))
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

    async def _ended(self, manager: Any, connection: KernelConnection) -> None:
        process = manager.provisioner
        if process is None:  # it runs at a gateway
            await asyncio.shield(connection.disconnected)
        elif not is_elsewhere(manager):
            await process.wait()
        else:  # its `wait` may block the loop, or end while the kernel runs
            gone = connection.disconnected
            while not gone.done() and process.has_process and await process.poll() is None:
                await asyncio.wait({gone}, timeout=POLL_DELAY)

    def _unavailable(self, spec: Spec) -> KernelUnavailable:
        return KernelUnavailable(
            f"The kernel {spec.kernel_name!r} did not start; the server's log says why.",
            kernel_name=spec.kernel_name,
        )
