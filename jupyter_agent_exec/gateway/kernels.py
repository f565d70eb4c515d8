"""The kernels of a server that has them at a gateway, as the rest of the package expects kernels.

Jupyter's own managers for this differ from those of local kernels: kernelspecs are awaited, a
kernel is looked up over HTTP, and there is neither a process nor a folder on this machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayMappingKernelManager
from tornado import web

from ..errors import KernelUnavailable
from ..kernels.channels import OpenChannels
from ..kernels.server_kernels import RemoteKernel, RemoteKernels, kernel_spec
from ..services import Leaf
from .channels import GatewayChannels

ANSWER_TIMEOUT: Final = 10.0
"""Seconds to wait for a gateway that is asked about a kernel, or told to interrupt one."""


SHUTDOWN_DELAYS: Final = (0.0, 1.0, 3.0)
"""Seconds before each attempt to end a kernel: a gateway refuses while it restarts a dead one."""


@contextmanager
def told(**detail: object) -> Iterator[None]:
    """Make a gateway that cannot be asked a `KernelUnavailable` that names the cause."""
    try:
        yield
    except (web.HTTPError, OSError) as error:  # a timeout is an OSError, too
        if isinstance(error, web.HTTPError) and isinstance(error.__cause__, OSError):
            cause = str(error.__cause__)
        elif isinstance(error, web.HTTPError):
            said = error.log_message or error.reason or ""
            cause = said % error.args if error.args else said
        else:
            cause = str(error) or f"no answer in {ANSWER_TIMEOUT:g} s"
        raise KernelUnavailable(
            f"The gateway that has the server's kernels cannot be used: {cause.rstrip('.')}.",
            gateway=GatewayClient.instance().url,
            **detail,
        ) from error


class GatewaySpec(NamedTuple):
    """The part of a gateway's kernelspec that is used here."""

    display_name: str
    language: str
    argv: list[str]


class GatewaySpecs:
    """The kernelspecs of a gateway."""

    def __init__(self, specs: Any) -> None:
        self._specs = specs

    async def get_kernel_spec(self, kernel_name: str) -> GatewaySpec:
        """Return a kernelspec; KeyError if none has this name."""
        with told(kernel_name=kernel_name):
            spec = (await self._specs.get_kernel_spec(kernel_name))["spec"]
        return GatewaySpec(
            spec.get("display_name") or kernel_name, spec.get("language", ""), spec.get("argv", [])
        )

    async def get_all_specs(self) -> dict[str, Any]:
        """Return what the gateway says of all its kernelspecs, by name."""
        with told():
            specs: dict[str, Any] = await self._specs.get_all_specs()
        return specs


class GatewayKernel(RemoteKernel):
    """One kernel at a gateway: stands in for the manager of a local kernel.

    Parameters
    ----------
    manager
        Jupyter's own manager of it, a `GatewayKernelManager`.
    """

    provisioner: None = None
    autorestart = False
    shutting_down = False

    def __init__(self, manager: Any, specs: GatewaySpecs) -> None:
        self._manager = manager
        self._specs = specs
        self.kernel_name: str = (manager.kernel or {}).get("name", "")
        self.kernel_spec = GatewaySpec(self.kernel_name, "", [])
        self.last_activity: datetime = manager.last_activity
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done: a kernel has an id only when the gateway has started it."""
        self.ready.set_result(None)

    @property
    def execution_state(self) -> str:
        """The kernel's state, as the gateway last said."""
        state: str = self._manager.execution_state
        return state

    @execution_state.setter
    def execution_state(self, state: str) -> None:
        self._manager.execution_state = state

    async def is_alive(self) -> bool:
        """Ask the gateway whether it has the kernel, and what it knows of it.

        Raises
        ------
        KernelUnavailable
            It does not answer.
        """
        with told(kernel_id=self._manager.kernel_id):
            async with asyncio.timeout(ANSWER_TIMEOUT):
                is_there = await self._manager.refresh_model() is not None
                if is_there:
                    self.kernel_spec = await self._specs.get_kernel_spec(self.kernel_name)
        return is_there

    def open_channels(self, log: logging.Logger) -> OpenChannels:
        """Return a callable that opens the kernel's channels."""
        return partial(GatewayChannels, str(self._manager.kernel_id), log=log)

    def stop_restarter(self) -> None:
        """Do nothing: the gateway restarts its kernels. The channels report such a death."""

    def add_restart_callback(self, callback: Callable[[], None], event: str) -> None:
        """Do nothing: the channels report a death."""

    def remove_restart_callback(self, callback: Callable[[], None], event: str) -> None:
        """Do nothing."""


class GatewayKernels(RemoteKernels):
    """The server's kernel manager if its kernels are at a gateway: a `ServerKernels`.

    Parameters
    ----------
    kernels
        Jupyter's own manager, a `GatewayMappingKernelManager`.
    """

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels
        self._log = kernels.log
        self._known: dict[str, GatewayKernel] = {}
        self.kernel_spec_manager = GatewaySpecs(kernels.parent.kernel_spec_manager)
        self.last_kernel_activity: datetime = kernels.last_kernel_activity
        self.untracked_message_types: list[str] = []

    @property
    def default_kernel_name(self) -> str:
        """The gateway's own default, once Jupyter has asked for it."""
        name: str = self._kernels.default_kernel_name
        return name

    def __contains__(self, kernel_id: str) -> bool:
        """Return whether a kernel is in the server's list."""
        return kernel_id in self._kernels

    def refused_env(self, names: Iterable[str]) -> list[str]:
        """Return which environment variables Jupyter does not pass on to the gateway."""
        passed = GatewayClient.instance().allowed_envs.split(",")
        return sorted(n for n in names if n not in passed and not n.startswith("KERNEL_"))

    async def start_kernel(
        self,
        *,
        kernel_name: str,
        path: str | None,
        env: dict[str, str],
        extra_arguments: list[str],
        cwd: str = "",
    ) -> str:
        """Start a kernel; return its id. Jupyter passes `cwd` on as ``KERNEL_WORKING_DIR``."""
        spec = await kernel_spec(self, kernel_name)
        with told(kernel_name=kernel_name):
            kernel_id: str = await self._kernels.start_kernel(
                kernel_name=kernel_name, path=path, env=env, cwd=cwd
            )
        self.get_kernel(kernel_id).kernel_spec = spec
        return kernel_id

    def cwd_for_path(self, path: str) -> str:
        """Return the folder of a contents path on this machine."""
        return str(self._kernels.cwd_for_path(path))

    def get_kernel(self, kernel_id: str) -> GatewayKernel:
        """Return a kernel, always as the same object."""
        manager = self._kernels.get_kernel(kernel_id)
        if kernel_id not in self._known:
            self._known = {id: known for id, known in self._known.items() if id in self._kernels}
            self._known[kernel_id] = GatewayKernel(manager, self.kernel_spec_manager)
        return self._known[kernel_id]

    async def interrupt_kernel(self, kernel_id: str) -> None:
        """Interrupt a kernel. If the gateway does not answer, that is only logged.

        The caller sees whether the code ends anyway.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._kernels.interrupt_kernel(kernel_id)
        except (web.HTTPError, OSError) as error:
            self._log.warning("The gateway did not interrupt the kernel %s: %r", kernel_id, error)

    async def shutdown_kernel(self, kernel_id: str, now: bool) -> None:
        """Shut a kernel down. If the gateway does not answer, the kernel may stay there."""
        for delay in SHUTDOWN_DELAYS:
            await asyncio.sleep(delay)
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    await self._kernels.shutdown_kernel(kernel_id, now=now)
                return
            except (web.HTTPError, OSError) as error:
                self._log.warning("The gateway did not end the kernel %s: %r", kernel_id, error)
        self._kernels.remove_kernel(kernel_id)

    def stop_watching_activity(self, kernel_id: str) -> None:
        """Do nothing: only the gateway reads a kernel's messages of itself."""


class GatewayLeaf(Leaf):
    """Reaches the kernels of a server that has them at a gateway."""

    def kernels(self, manager: Any) -> GatewayKernels | None:
        """Return the kernels of the server's kernel manager, if they are at a gateway."""
        is_gateway = isinstance(manager, GatewayMappingKernelManager)
        return GatewayKernels(manager) if is_gateway else None
