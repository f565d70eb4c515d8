"""The processes of a server that a program started: the program's end is noticed, and none is left.

On Linux. Elsewhere the program's end is noticed too, and what kernels have detached from themselves
is left.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
"""Of ``prctl``; Source: linux/prctl.h."""

_KILL_ROUNDS: Final = 10


def wait_for_end(owner: int) -> None:
    """Return when the process that started this one has ended, whoever holds its pipes open."""
    if os.getppid() != owner:
        return
    if sys.platform == "linux":
        with suppress(OSError):  # an older kernel, or it has ended: told below
            descriptor = os.pidfd_open(owner)
            select.select([descriptor], [], [])
            return
    while os.getppid() == owner:
        time.sleep(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents end, such as daemons of a kernel's."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill all descendants that are left."""
    for _ in range(_KILL_ROUNDS):  # one that is about to die may just have made another
        found = list(_descendants(os.getpid()))
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not found:
            return
        time.sleep(0.01)


def _descendants(of: int) -> Iterator[int]:
    """Yield the processes below one, of those that have not ended."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name before it may hold anything, also a parenthesis.
            state, parent = file.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(file.parent.name))
    below = list(children.get(of, ()))
    for pid in below:
        yield pid
        below.extend(children.get(pid, ()))
