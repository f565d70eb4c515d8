"""What is asked of the server's kernel manager, and of its manager of one kernel."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Protocol


class ServerKernels(Protocol):
    """What is asked of the server's kernel manager (jupyter_server's AsyncMappingKernelManager)."""

    default_kernel_name: str
    kernel_spec_manager: Any
    last_kernel_activity: datetime

    def __contains__(self, kernel_id: str) -> bool:
        """Tell whether a kernel is in its list."""

    def start_kernel(
        self, *, kernel_name: str, path: str, env: dict[str, str], extra_arguments: list[str]
    ) -> Awaitable[str]:
        """Start a kernel in the folder of a contents path; return its id."""

    def get_kernel(self, kernel_id: str) -> Any:
        """Return the manager of one kernel."""

    def interrupt_kernel(self, kernel_id: str) -> Awaitable[None]:
        """Interrupt a kernel."""

    def shutdown_kernel(self, kernel_id: str, now: bool) -> Awaitable[None]:
        """Shut a kernel down."""

    def stop_watching_activity(self, kernel_id: str) -> None:
        """Read its IOPub no more."""
