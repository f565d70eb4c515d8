"""What is asked of the server's kernel manager, and of its manager of one kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Protocol

from jupyter_client.kernelspec import NoSuchKernel

from ..errors import KernelSpecNotFound


class ServerKernels(Protocol):
    """What is asked of the server's kernel manager (jupyter_server's AsyncMappingKernelManager)."""

    default_kernel_name: str
    kernel_spec_manager: Any
    last_kernel_activity: datetime
    kernel_manager_factory: Any
    """Makes the manager of one kernel."""
    untracked_message_types: list[str]
    """Requests that do not make a kernel busy or idle in the server's eyes."""

    def __contains__(self, kernel_id: str) -> bool:
        """Tell whether a kernel is in its list."""

    def start_kernel(
        self,
        *,
        kernel_name: str,
        path: str | None,
        env: dict[str, str],
        extra_arguments: list[str],
        cwd: str = ...,
    ) -> Awaitable[str]:
        """Start a kernel in the folder of a contents path, without one in `cwd`; return its id."""

    def cwd_for_path(self, path: str) -> str:
        """Return the folder on this machine in which a kernel of a contents path starts."""

    def get_kernel(self, kernel_id: str) -> Any:
        """Return the manager of one kernel."""

    def interrupt_kernel(self, kernel_id: str) -> Awaitable[None]:
        """Interrupt a kernel."""

    def shutdown_kernel(self, kernel_id: str, now: bool) -> Awaitable[None]:
        """Shut a kernel down."""

    def stop_watching_activity(self, kernel_id: str) -> None:
        """Read its IOPub no more."""


def kernel_spec(kernels: ServerKernels, name: str) -> Any:
    """Return a kernelspec; KernelSpecNotFound if none has this name."""
    try:
        return kernels.kernel_spec_manager.get_kernel_spec(name)
    except NoSuchKernel:
        allowed = sorted(kernels.kernel_spec_manager.find_kernel_specs())
        raise KernelSpecNotFound(
            f"No kernel is named {name!r}; there are: {', '.join(allowed)}.",
            field="target.kernel_name",
            allowed=allowed,
        ) from None


def forget_failed_starts(kernels: ServerKernels) -> None:
    """Forget kernels that did not start, whoever wanted them, so that the server can stop.

    jupyter_client 8.10 keeps such a kernel among those that are starting, and has no public way to
    remove it; when jupyter_server 2.21 shuts all kernels down, it answers that there is no such
    kernel, and stays.
    """
    starting: dict[str, asyncio.Future[None]] = getattr(kernels, "_pending_kernels", {})
    for kernel_id, start in list(starting.items()):
        if start.done() and kernel_id not in kernels:
            del starting[kernel_id]
