"""What Jupyter has no public way for: each with the reason, and what would remove it."""

from __future__ import annotations

import asyncio

from .server_kernels import ServerKernels


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
