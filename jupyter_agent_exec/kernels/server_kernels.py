"""The server's own kernel manager: the part of it that is used here, and how it starts kernels."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, Final, Protocol, TypeVar

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_core.utils import ensure_async

from ..errors import KernelSpecNotFound
from .channels import OpenChannels
from .zmq_channels import ZMQChannels

_LOCAL: Final = "local-provisioner"
_OURS: Final = "agent-exec-provisioner"
"""The default provisioner of a server whose operator chose no other."""

T = TypeVar("T")
MakeProvisioner = Callable[[str, Any, Any], LocalProvisioner]
"""Makes the provisioner of a kernel with an id, a kernelspec and a manager."""

_make: ContextVar[MakeProvisioner | None] = ContextVar("provisioner of a kernel", default=None)


class ServerKernels(Protocol):
    """The part of jupyter_server's AsyncMappingKernelManager that is used here."""

    kernel_spec_manager: Any
    last_kernel_activity: datetime
    untracked_message_types: list[str]
    """Requests that do not make a kernel busy or idle in the server's eyes."""

    @property
    def default_kernel_name(self) -> str:
        """The kernelspec to use if none is named."""

    def __contains__(self, kernel_id: str) -> bool:
        """Return whether a kernel is in its list."""

    def start_kernel(
        self,
        *,
        kernel_name: str,
        path: str | None,
        env: dict[str, str],
        extra_arguments: list[str],
        cwd: str = ...,
    ) -> Awaitable[str]:
        """Start a kernel in the folder of `path`, or in `cwd` without a path; return its id."""

    def cwd_for_path(self, path: str) -> str:
        """Return the folder on this machine in which a kernel of a contents path starts."""

    def get_kernel(self, kernel_id: str) -> Any:
        """Return the manager of one kernel."""

    def interrupt_kernel(self, kernel_id: str) -> Awaitable[None]:
        """Interrupt a kernel."""

    def shutdown_kernel(self, kernel_id: str, now: bool) -> Awaitable[None]:
        """Shut a kernel down."""

    def stop_watching_activity(self, kernel_id: str) -> None:
        """Stop reading a kernel's IOPub."""


class RemoteKernel(ABC):
    """The manager of one kernel that another server keeps, on another machine."""

    @abstractmethod
    def open_channels(self, log: logging.Logger) -> OpenChannels:
        """Return a callable that opens the kernel's channels."""


class RemoteKernels(ABC):
    """A `ServerKernels` whose kernels another server keeps: no process or folder is here."""

    @abstractmethod
    def refused_env(self, names: Iterable[str]) -> list[str]:
        """Return which environment variables do not reach a kernel there."""


def is_elsewhere(manager: Any) -> bool:
    """Return whether a kernel may run on another machine: it is no process of this server's.

    Parameters
    ----------
    manager
        The kernel's manager.
    """
    return not isinstance(manager.provisioner, LocalProvisioner)


def open_channels(manager: Any, kernel_id: str, log: logging.Logger) -> OpenChannels:
    """Return a callable that opens the channels of a kernel of the server.

    Parameters
    ----------
    manager
        The kernel's manager.
    """
    if isinstance(manager, RemoteKernel):
        return manager.open_channels(log)
    info = manager.get_connection_info()
    return partial(ZMQChannels, info, name=f"kernel-{kernel_id[:8]}", log=log)


async def kernel_spec(kernels: ServerKernels, name: str) -> Any:
    """Return a kernelspec; KernelSpecNotFound if none has this name."""
    try:
        return await ensure_async(kernels.kernel_spec_manager.get_kernel_spec(name))
    except KeyError:
        allowed = sorted(await ensure_async(kernels.kernel_spec_manager.get_all_specs()))
        raise KernelSpecNotFound(
            f"No kernel is named {name!r}; there are: {', '.join(allowed)}.",
            field="target.kernel_name",
            allowed=allowed,
        ) from None


class KernelStarter:
    """Starts kernels through the server's kernel manager, with provisioners that we choose.

    A kernel's provisioner comes from its kernelspec or from the default for all kernels. So this
    sets a default that starts users' kernels as Jupyter does, and agents' kernels as the session
    demands. If a kernelspec or the operator names another provisioner, that one is used.

    Parameters
    ----------
    kernels
        The server's kernel manager.
    """

    def __init__(self, kernels: ServerKernels) -> None:
        self._kernels = kernels

    async def start(self, start: Callable[[], Awaitable[T]], make: MakeProvisioner) -> T:
        """Start a kernel. If the start is cancelled, the kernel is shut down once it has started.

        The server's kernel manager loses a kernel whose start is cancelled: its process keeps
        running, and the server cannot stop. Source: jupyter_client 8.10, *multikernelmanager.py*.

        Parameters
        ----------
        start
            Makes the server's kernel manager start the kernel.
        make
            Makes its provisioner, unless its kernelspec or the operator has chosen one.
        """
        factory = self._factory
        if factory.default_provisioner_name == _LOCAL:
            target = f"{__name__}:{make_provisioner.__name__}"
            factory.provisioners[_OURS] = EntryPoint(_OURS, target, factory.GROUP_NAME)
            factory.default_provisioner_name = _OURS
        starting = asyncio.ensure_future(self._start(start, make))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Read the exception, or asyncio would log it. The kernel manager has logged it.
            await asyncio.gather(starting, return_exceptions=True)
            raise

    async def _start(self, start: Callable[[], Awaitable[T]], make: MakeProvisioner) -> T:
        token = _make.set(make)
        try:
            return await start()
        finally:
            _make.reset(token)

    def own_provisioner(self, kernel_spec: Any) -> str | None:
        """Return the provisioner that a kernelspec or the operator has chosen; None if neither."""
        named = kernel_spec.metadata.get("kernel_provisioner", {})
        name: str = named.get("provisioner_name") or self._factory.default_provisioner_name
        is_default = "provisioner_name" not in named and name in (_LOCAL, _OURS)
        return None if is_default else name

    def starts_elsewhere(self, kernel_spec: Any) -> bool:
        """Return whether the provisioner of a kernelspec may start kernels on other machines."""
        name = self.own_provisioner(kernel_spec)
        if name is None:
            return False
        return not issubclass(self._factory.provisioners[name].load(), LocalProvisioner)

    @property
    def _factory(self) -> KernelProvisionerFactory:
        return KernelProvisionerFactory.instance(parent=self._kernels)


def make_provisioner(kernel_id: str, kernel_spec: Any, parent: Any) -> LocalProvisioner:
    """Make the provisioner of a kernel: Jupyter's own, unless `KernelStarter` starts the kernel."""
    make = _make.get()
    if make is None:
        return LocalProvisioner(kernel_id=kernel_id, kernel_spec=kernel_spec, parent=parent)
    return make(kernel_id, kernel_spec, parent)
