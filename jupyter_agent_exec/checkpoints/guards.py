"""Says why a copy of this kernel could not take its place. Sent to kernels, never imported there.

A copy has the memory of the kernel, and one thread. Whatever else the kernel has would be missing
in it, or would be shared with the process that it replaces. So this looks for what cannot be made
again: connections, threads of Python, locks on files, processes, loops of graphical toolkits.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..kernels.trials.copy import gpu
    from ..kernels.trials.parking import park

THREADS = ("ipykernel.", "IPython.core.history", "tqdm._monitor", "asyncio.")
"""Modules whose threads a copy makes again, or can do without."""
ESTABLISHED, LISTENING = "01", "0A"
"""Source: Linux, *include/net/tcp_states.h*."""


class Tcp(NamedTuple):
    """One socket of TCP, as the system lists it."""

    local: int
    """Its port."""
    peer: str
    """Address and port of the other side, in hexadecimal digits."""
    state: str
    inode: str


def why_not(kernel: Any) -> str | None:
    """Return why a copy could not take this kernel's place; None if it could."""
    app, loop = kernel.parent, kernel.io_loop.asyncio_loop
    if app is None or app.transport != "tcp":
        return "the kernel's channels are not TCP"
    if not type(loop).__module__.startswith("asyncio.unix"):
        return f"the kernel's event loop is {type(loop).__module__}"
    if kernel.eventloop is not None:
        return "the kernel runs the event loop of a graphical toolkit"
    return (
        of_python_threads(kernel)
        or of_processes()
        or of_connections(kernel)
        or of_file_locks(kernel)
        or gpu()
        or park()
    )


def of_python_threads(kernel: Any) -> str | None:
    """Return the thread of Python that a copy would lack."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is None or thread is threading.main_thread():
            continue
        last, modules = frame.f_code.co_name, []
        while frame is not None:
            modules.append(str(frame.f_globals.get("__name__")))
            frame = frame.f_back
        own = [each for each in modules if each not in ("threading", "builtins", "None")]
        first = own[-1] if own else ""
        is_idle = own[:1] == ["concurrent.futures.thread"] and last == "_worker"
        is_known = not own or first.startswith(THREADS)
        is_known |= type(thread).__module__.startswith(THREADS)
        if is_idle or (is_known and "__main__" not in own):
            continue
        owner = type(thread).__module__ if first == "concurrent.futures.thread" else first
        return f"the thread {thread.name!r} of {owner or first} would be missing in a copy"
    return None


def of_processes() -> str | None:
    """Return which processes of the user's a copy could not wait for."""
    module = sys.modules.get("multiprocessing.process")
    children = vars(module)["active_children"]() if module is not None else []
    if children:
        return f"the kernel has processes of multiprocessing, such as {children[0].name}"
    return None


def of_connections(kernel: Any) -> str | None:
    """Return which connection a copy would share with the process that it replaces."""
    ports, own = ports_of(kernel), set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(f"/proc/self/fd/{number}"))
    for each in connections():
        peer = int(each.peer.rpartition(":")[2], 16)
        if f"socket:[{each.inode}]" not in own or ports & {each.local, peer}:
            continue
        if each.state == LISTENING:
            return f"the kernel listens on port {each.local}"
        if each.state == ESTABLISHED:
            return f"the kernel has an open network connection (to port {peer})"
    return None


def of_file_locks(kernel: Any) -> str | None:
    """Return which file the kernel has locked: a database that a copy would find changed."""
    history = str(getattr(getattr(kernel.shell, "history_manager", None), "hist_file", ""))
    own, me = set(), str(os.getpid())
    with contextlib.suppress(OSError), open("/proc/locks") as locks:
        for line in locks:
            fields = line.split()
            if "->" not in fields and fields[1] in ("POSIX", "OFDLCK", "FLOCK") and fields[4] == me:
                own.add(int(fields[5].rpartition(":")[2]))
    for number in os.listdir("/proc/self/fd") if own else ():
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if os.stat(f"/proc/self/fd/{number}").st_ino in own and not path.startswith(history):
                return f"the kernel has a database or another file locked ({path})"
    return None


def ports_of(kernel: Any) -> set[int]:
    """Return the ports of the kernel's own channels."""
    app = kernel.parent
    ports = {app.shell_port, app.iopub_port, app.stdin_port, app.hb_port, app.control_port}
    return ports | {getattr(kernel.iopub_thread, "_pipe_port", 0)} - {0}


def connections() -> Iterator[Tcp]:
    """Yield all sockets of TCP of this network namespace."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                local = int(fields[1].rpartition(":")[2], 16)
                yield Tcp(local, fields[2], fields[3], fields[9])


def clients(port: int) -> int:
    """Return how many connections a port has."""
    return sum(each.local == port and each.state == ESTABLISHED for each in connections())


def tcp_sockets() -> Iterator[tuple[int, bool, set[int]]]:
    """Yield number of each descriptor of TCP, whether it listens, and its ports of both sides."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(number)) as each:
                if each.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                listens = bool(each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
                ports = {each.getsockname()[1]}
                with contextlib.suppress(OSError):
                    ports.add(each.getpeername()[1])
                yield number, listens, ports
        except OSError:
            continue
