"""Says why a copy of this kernel could not take its place. Sent to kernels, never imported there.

A copy has the memory of the kernel, and one thread. Whatever else the kernel has would be missing
in it, or would be shared with the process that it replaces. So this looks for what cannot be made
again: connections, threads of Python, locks on files, processes, loops of graphical toolkits.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..kernels.trials.copy import gpu
    from ..kernels.trials.parking import park

THREADS = ("ipykernel.", "IPython.core.history", "tqdm._monitor", "asyncio.")
"""Modules whose threads a copy makes again, or can do without."""
ESTABLISHED, LISTENING = 1, 10
"""Source: Linux, *include/net/tcp_states.h*."""


class Tcp(NamedTuple):
    """A descriptor of this process that is a socket of TCP."""

    number: int
    local: int
    """Its port."""
    peer: int
    """The port of the other side; 0 if there is none."""
    state: int


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
    ports = ports_of(kernel)
    for each in tcp_sockets():
        if ports & {each.local, each.peer}:
            continue
        if each.state == LISTENING:
            return f"the kernel listens on port {each.local}"
        if each.state == ESTABLISHED:
            return f"the kernel has an open network connection (to port {each.peer})"
    return None


def of_file_locks(kernel: Any) -> str | None:
    """Return which file the kernel has locked: a database that a copy would find changed."""
    history = str(getattr(getattr(kernel.shell, "history_manager", None), "hist_file", ""))
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            with open(f"/proc/self/fdinfo/{number}") as about:
                is_locked = "\nlock:" in about.read()
            path = os.readlink(f"/proc/self/fd/{number}")
            if is_locked and not path.startswith(history):
                return f"the kernel has a database or another file locked ({path})"
    return None


def ports_of(kernel: Any) -> set[int]:
    """Return the ports of the kernel's own channels."""
    app = kernel.parent
    ports = {app.shell_port, app.iopub_port, app.stdin_port, app.hb_port, app.control_port}
    return ports | {getattr(kernel.iopub_thread, "_pipe_port", 0)} - {0}


def clients(port: int) -> int:
    """Return how many connections a port of this process has."""
    return sum(each.local == port and each.state == ESTABLISHED for each in tcp_sockets())


def tcp_sockets() -> Iterator[Tcp]:
    """Yield the descriptors of this process that are sockets of TCP.

    The system's own list has those of all processes, and takes milliseconds.
    """
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as each:
                if each.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                state = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
                peer = 0
                with contextlib.suppress(OSError):
                    peer = each.getpeername()[1]
                yield Tcp(number, each.getsockname()[1], peer, state)
        except OSError:
            continue
