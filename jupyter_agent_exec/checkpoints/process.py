"""The process of a kernel that has checkpoints: the first, or a copy that has taken its place."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .guards import ESTABLISHED

UNKNOWN: int = 1
"""Returned as the exit code of a process that is not our child: nobody tells it."""
END_SECONDS = 5.0
"""Seconds within which a process ends that was sent SIGKILL."""


class AdoptedProcess:
    """A process that another one has started; it has what provisioners use of `Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.number = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self.number)

    def poll(self) -> int | None:
        """Return the exit code, or `UNKNOWN`; None while it runs."""
        if self.returncode is None and has_ended(self.number, 0.0):
            self.returncode = UNKNOWN
            with suppress(ChildProcessError):  # it is our child if this server is process 1
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else UNKNOWN
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return as `poll` does."""
        if self.poll() is None:
            if not has_ended(self.number, timeout):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.poll()
        return UNKNOWN if self.returncode is None else self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.number, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class KernelProcess:
    """Stands for the process of a kernel in its provisioner, whichever process that is now.

    Parameters
    ----------
    process
        The kernel's process.
    is_replaced
        Called when its end is asked for and it has ended; returns whether the kernel does not count
        as dead, since a copy is about to take its place, or copies have not ended yet.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | AdoptedProcess, is_replaced: Callable[[], bool]
    ) -> None:
        self._is_replaced = is_replaced
        self.now = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    @property
    def pid(self) -> int:
        """The id of the process that is the kernel now."""
        return self.now.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs, or if nobody knows it."""
        return None if self.lacks_exit_code else self.now.returncode

    @property
    def lacks_exit_code(self) -> bool:
        """Whether nobody tells how the process ended."""
        return isinstance(self.now, AdoptedProcess) and self.now.returncode in (None, UNKNOWN)

    def poll(self) -> int | None:
        """Return the exit code; None while the kernel does not count as dead."""
        code = self.now.poll()
        return None if code is not None and self._is_replaced() else code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process."""
        return self.now.wait(timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        self.now.send_signal(number)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.now.terminate()

    def kill(self) -> None:
        """End the kernel."""
        self.now.kill()


def has_ended(number: int, seconds: float | None) -> bool:
    """Wait for the end of a process, by its descriptor."""
    ends = select.poll()
    ends.register(number, select.POLLIN)
    return bool(ends.poll(None if seconds is None else seconds * 1000))


def own_bytes(pid: int) -> int:
    """Return the memory that a copy of a process may come to take; 0 if it has ended.

    That of files, and memory that it shares with others, are not copied. Source: Linux, *statm*.
    """
    with suppress(OSError):
        resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def pss_bytes(pid: int) -> int:
    """Return a process's share of memory; 0 if it has ended. Blocks: the system looks at each page.

    Source: Linux, *smaps_rollup*.
    """
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def free_bytes() -> int:
    """Return the memory that is free for this server, within the limit of its control group."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    found = next(line for line in text.splitlines() if line.startswith("MemAvailable:"))
    free = int(found.split()[1]) * 1024
    group = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):  # "max", if there is no limit
            free = min(free, int((group / most).read_text()) - int((group / used).read_text()))
    return max(0, free)


class Client(NamedTuple):
    """A connection to a port of a kernel, at the kernel's side."""

    port: int
    inode: str


def clients_of(ports: Iterable[int]) -> list[Client]:
    """Return the connections to these ports. Blocks: the system lists those of all processes."""
    of_kernel, found = set(ports), []
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            lines = Path(f"/proc/self/net/{name}").read_text(encoding="ascii").splitlines()
            for fields in map(str.split, lines[1:]):
                port = int(fields[1].rpartition(":")[2], 16)
                if port in of_kernel and int(fields[3], 16) == ESTABLISHED:
                    found.append(Client(port, fields[9]))
    return found


def end_holders(pid: int, held: Iterable[Client], spared: Iterable[int]) -> None:
    """End forks of a kernel's process that hold its connections, which would never end otherwise.

    Parameters
    ----------
    pid
        The process, which is about to be ended.
    held
        Its connections.
    spared
        Processes to leave alone.
    """
    keep, inodes = set(spared), {f"socket:[{each.inode}]" for each in held}
    for child in descendants(pid):
        if child not in keep and inodes & set(links(child)):
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Return all processes that a process has started, and those that they have started."""
    found, todo = [], [pid]
    while todo:
        with suppress(OSError):
            for task in Path(f"/proc/{todo.pop()}/task").iterdir():
                children = [int(each) for each in (task / "children").read_text().split()]
                found += children
                todo += children
    return found


def links(pid: int) -> list[str]:
    """Return what a process's descriptors are."""
    told = []
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                told.append(str(each.readlink()))
    return told
