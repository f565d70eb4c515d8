"""Control groups that limit the processes and threads of root's isolated kernels.

The limit on a user's processes (`RLIMIT_NPROC`) does not hold for root.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OUTSIDE: Final = 2
"""Our own processes in the group: the outer one, and the first one of the namespaces."""
END_TIMEOUT: Final = 1.0
"""Seconds within which a killed process has ended."""


def make_cgroup(name: str, most: int) -> Path | None:
    """Make a control group in which so many processes and threads may be besides our own.

    Return None if this process is not root's, or may make none: the machine has no `pids`
    controller, or shows it read-only, as containers do.
    """
    for parent in _parents() if os.geteuid() == 0 else ():
        cgroup = parent / name
        with contextlib.suppress(OSError):
            cgroup.mkdir()
            try:
                (cgroup / "pids.max").write_text(str(most + OUTSIDE))
            except OSError:
                cgroup.rmdir()
            else:
                return cgroup
    return None


def remove_cgroup(cgroup: Path) -> None:
    """Remove a control group whose processes have been killed, when they have ended."""
    with contextlib.suppress(OSError):
        for pid in (cgroup / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                _wait_for_end(int(pid))
        cgroup.rmdir()


def _wait_for_end(pid: int) -> None:
    process = os.pidfd_open(pid)
    try:
        select.select([process], [], [], END_TIMEOUT)
    finally:
        os.close(process)


def _parents(process: Path = Path("/proc/self")) -> Iterator[Path]:
    """Yield the groups below which a group with a limit on processes may be made."""
    paths: dict[str, str] = {}
    for line in (process / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    for line in (process / "mounts").read_text().splitlines():
        _, mounted, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "pids" in options.split(",") and "pids" in paths:
            yield Path(mounted) / paths["pids"]
        elif kind == "cgroup2" and "" in paths:
            # A group with processes has no controllers for groups below it, except the root.
            own = Path(mounted) / paths[""]
            yield own.parent if (own / "pids.max").exists() else own
