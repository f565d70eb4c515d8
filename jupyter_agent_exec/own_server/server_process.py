"""A Jupyter server that runs until its parent process ends or tells it to stop.

`python -m jupyter_agent_exec.own_server.server_process` reads one line of JSON (`ServerOptions`)
from its standard input, and writes one line to its standard output when it listens. It stops when
another line comes, its standard input ends, or the parent process dies. On Linux, it then kills all
processes that its kernels started. On other systems, detached processes stay.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from jupyter_server.serverapp import ServerApp

_SET_CHILD_SUBREAPER: Final = 36
"""An option of ``prctl``. Source: linux/prctl.h."""

_KILL_ROUNDS: Final = 10


class ServerOptions(msgspec.Struct, kw_only=True):
    """The options of the server."""

    token: str
    root_dir: str
    owner: int
    """Process id of the parent."""
    history_dir: str | None = None
    """Null is the extension's default."""
    traits: dict[str, str] = {}
    """Further configuration, such as ``ServerApp.port``, in the format of the command line."""


class OwnServer(ServerApp):
    """A server that reports when it listens, and stops when its parent ends or tells it to."""

    owner: int

    def start_app(self) -> None:
        """Start the server, and report its address as soon as it listens."""
        super().start_app()
        if "jupyter_agent_exec" not in self.extension_manager.extension_apps:
            self.exit("The extension was not loaded; what is above says why.")
        # The loop starts to listen before it runs this callback.
        self.io_loop.add_callback(self._say_where)
        threading.Thread(target=self._stop_when_let_go, name="let-go", daemon=True).start()
        threading.Thread(target=self._stop_when_orphaned, name="orphaned", daemon=True).start()

    def _say_where(self) -> None:
        _ready.write(json.dumps({"url": self.connection_url}) + "\n")
        _ready.close()

    def write_server_info_file(self) -> None:
        """Write no file: other programs must not find a server that ends with its parent."""

    def _stop_when_let_go(self) -> None:
        sys.stdin.buffer.readline()
        self.io_loop.add_callback(self.stop)

    def _stop_when_orphaned(self) -> None:
        # If the parent has forked, its child keeps the pipe to this process open.
        wait_for_end(self.owner)
        self.io_loop.add_callback(self.stop)


def _arguments(options: ServerOptions) -> list[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    traits = {
        "ServerApp.jpserver_extensions": "{'jupyter_agent_exec': True}",
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": str(port),
        "ServerApp.port_retries": "50",
        "ServerApp.sock": "",
        "ServerApp.certfile": "",
        "ServerApp.keyfile": "",
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        "ServerApp.root_dir": options.root_dir,
        "IdentityProvider.token": options.token,
    }
    if options.history_dir is not None:
        traits["AgentExecApp.history_dir"] = options.history_dir
    return [f"--{name}={value}" for name, value in (traits | options.traits).items()]


def main() -> None:
    """Serve until the parent ends or sends a line."""
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerOptions)
    adopt_orphans()
    app = OwnServer.instance()
    app.owner = options.owner
    # Only this extension, because the user's other extensions would slow down the start.
    app.initialize(_arguments(options), find_extensions=False)
    try:
        app.start()
    finally:
        end_descendants()


def wait_for_end(owner: int) -> None:
    """Wait until the parent process has ended, even if another process keeps its pipes open."""
    if os.getppid() != owner:
        return
    if sys.platform == "linux":
        with suppress(OSError):  # an older Linux, or the parent has ended: handled below
            descriptor = os.pidfd_open(owner)
            select.select([descriptor], [], [])
            return
    while os.getppid() == owner:
        time.sleep(1)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, such as a kernel's daemons."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill all remaining descendants of this process."""
    for _ in range(_KILL_ROUNDS):  # a dying process may have started another one
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
    """Yield the running descendants of a process."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The process name before the last parenthesis may contain any text.
            state, parent = file.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(file.parent.name))
    below = list(children.get(of, ()))
    for pid in below:
        yield pid
        below.extend(children.get(pid, ()))


if __name__ == "__main__":
    # The answer goes to a copy of standard output. Kernels inherit descriptor 1, which now leads to
    # standard error, so that they cannot write to the answer.
    _ready = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main()
