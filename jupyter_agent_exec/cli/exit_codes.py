"""The exit codes of `jupyter agent-exec`; the documentation lists them for users."""

from __future__ import annotations

from typing import Final

from ..types import Status

OK: Final = 0
FAILED: Final = 1
"""The code raised an error."""
USAGE: Final = 2
"""The command line is wrong, or names something that does not exist. Nothing was done."""
UNREACHABLE: Final = 3
"""No server was found, or the connection broke."""
REFUSED: Final = 4
"""The server refused the request."""
STOPPED: Final = 5
"""The execution was interrupted, cancelled or rejected."""
TIMED_OUT: Final = 6
"""The execution exceeded its timeout."""
KERNEL_LOST: Final = 7
"""The kernel or the server died while the execution ran."""
INTERRUPTED: Final = 130
"""The user pressed Ctrl-C. A running execution was cancelled."""
TERMINATED: Final = 143
"""The process got SIGTERM. The session that the command opened is closed."""
BROKEN_PIPE: Final = 141
"""The program that read the output has closed its pipe."""

_OF_STATUS: Final[dict[Status, int]] = {
    "ok": OK,
    "error": FAILED,
    "interrupted": STOPPED,
    "cancelled": STOPPED,
    "rejected": STOPPED,
    "timed_out": TIMED_OUT,
    "kernel_died": KERNEL_LOST,
    "lost": KERNEL_LOST,
}


def of_status(status: Status) -> int:
    """Return the exit code for an execution's final status."""
    return _OF_STATUS[status]
