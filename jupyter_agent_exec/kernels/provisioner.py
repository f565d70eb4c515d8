"""Starts kernels' processes: in a folder that is looked at each time, whose modules come last."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from ..kernels.folder import Folder
from .server_kernels import ServerKernels

LAUNCHER: Final = Path(__file__).with_name("in_kernel") / "launcher.py"

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*(\.exe)?", re.IGNORECASE)
_LOCAL: Final = "local-provisioner"
_OPEN_FILES: Final = "/proc/self/fd"

T = TypeVar("T")
MakeProvisioner = Callable[[Any], LocalProvisioner]
"""Makes what starts the process of a kernel, which has this manager."""

_make: ContextVar[MakeProvisioner | None] = ContextVar("provisioner of a kernel", default=None)


class FolderProvisioner(LocalProvisioner):
    """Starts a kernel's process, at first and at each restart, whoever restarts it.

    Parameters
    ----------
    folder
        Where it starts; None for where Jupyter says.
    manager
        The kernel's.
    """

    def __init__(self, folder: Folder | None, manager: Any) -> None:
        super().__init__(kernel_spec=manager.kernel_spec, parent=manager)
        self._folder = folder
        self._manager: Any = manager

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare to start the process."""
        self.kernel_id = self._manager.kernel_id
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the process.

        Raises
        ------
        FolderGone
            Its folder is not there, or is another one by now.
        """
        cmd = with_folder_last(cmd, str(LAUNCHER))
        if self._folder is None:
            return await super().launch_kernel(cmd, **kwargs)
        descriptor = self._folder.open()
        try:
            # The process goes there by the descriptor, which it does not keep.
            cwd = f"{_OPEN_FILES}/{descriptor}" if os.path.isdir(_OPEN_FILES) else None  # noqa: ASYNC240
            path = str(self._folder.path)
            launched = await super().launch_kernel(cmd, **{**kwargs, "cwd": cwd or path})
        finally:
            os.close(descriptor)
        self.cwd = path
        return launched


def with_folder_last(command: Sequence[str], launcher: str) -> list[str]:
    """Return a command that runs a Python module such that no module in its folder takes its place.

    Parameters
    ----------
    launcher
        Where the command finds our `launcher.py`.
    """
    for index, argument in enumerate(command):
        if _PYTHON.fullmatch(os.path.basename(argument)):
            for option in range(index + 1, len(command)):
                if command[option] == "-m":
                    return [*command[:option], launcher, *command[option + 1 :]]
                is_value = command[option - 1] in ("-W", "-X")
                if not is_value and not command[option].startswith("-"):
                    break
    return list(command)


class KernelStarter:
    """Has the server's kernel manager start kernels by means of ours.

    Parameters
    ----------
    kernels
        The server's kernel manager.
    """

    def __init__(self, kernels: ServerKernels) -> None:
        self._kernels = kernels
        self._makes_managers = False

    async def start(self, start: Callable[[], Awaitable[T]], make: MakeProvisioner) -> T:
        """Start a kernel; one that is cancelled meanwhile ends when the kernel has started.

        The server's kernel manager loses a kernel whose start is broken off: its process goes on,
        and the server cannot stop. Source: jupyter_client 8.10, *multikernelmanager.py*.

        Parameters
        ----------
        start
            Has the server's kernel manager start it.
        make
            Makes what starts its process, unless its kernelspec has a provisioner of its own.
        """
        if not self._makes_managers:
            # Which provisioner a kernel has is said in its kernelspec, once for all its kernels;
            # this is said for one, and the kernelspec stays the one that people know.
            self._makes_managers = True
            factory = self._kernels.kernel_manager_factory
            self._kernels.kernel_manager_factory = partial(self._manager, factory)
        starting = asyncio.ensure_future(self._start(start, make))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            raise

    async def _start(self, start: Callable[[], Awaitable[T]], make: MakeProvisioner) -> T:
        token = _make.set(make)
        try:
            return await start()
        finally:
            _make.reset(token)

    def own_provisioner(self, kernel_spec: Any) -> str | None:
        """Return the name of what starts a kernelspec's kernels; None if that is Jupyter itself."""
        factory = KernelProvisionerFactory.instance(parent=self._kernels)
        named = kernel_spec.metadata.get("kernel_provisioner", {})
        name: str = named.get("provisioner_name", factory.default_provisioner_name)
        return None if name == _LOCAL else name

    def _manager(self, factory: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        manager = factory(*args, **kwargs)
        make = _make.get()
        if make is not None and self.own_provisioner(manager.kernel_spec) is None:
            manager.provisioner = make(manager)
        return manager
