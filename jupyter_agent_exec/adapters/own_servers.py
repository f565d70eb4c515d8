"""The servers that adapters start where none is named: one for each folder, shared in a process."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ..client.servers import Server
from ..own_server.launch import own_server

TRAITS: Final = {"AgentExecApp.max_output_bytes": "100000000"}
"""A framework's user expects each picture as a whole, of whatever size."""


class OwnServers:
    """Servers that run while somebody uses them; any thread may ask.

    A server ends with its last user, and with this process in any case.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Path, _Running] = {}

    def acquire(self, root_dir: Path) -> Server:
        """Return the server of a folder, started if it does not run; it takes about a second.

        Raises
        ------
        ServerUnreachable
            It did not start; the message holds the end of its log.
        """
        root_dir = root_dir.resolve()
        with self._lock:
            running = self._running.get(root_dir)
            if running is None:
                running = self._running[root_dir] = _Running(root_dir)
            running.users += 1
        try:
            return running.server()
        except BaseException:
            self.release(root_dir)
            raise

    def release(self, root_dir: Path) -> None:
        """Let go of what `acquire` returned; the last one waits until the server has ended."""
        root_dir = root_dir.resolve()
        with self._lock:
            running = self._running[root_dir]
            running.users -= 1
            if running.users:
                return
            del self._running[root_dir]
        running.stop()


class _Running:
    def __init__(self, root_dir: Path) -> None:
        self.users = 0
        self._root_dir = root_dir
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._server: Server | None = None

    def server(self) -> Server:
        with self._lock:
            if self._server is None:
                self._server = self._stack.enter_context(own_server(self._root_dir, traits=TRAITS))
            return self._server

    def stop(self) -> None:
        with self._lock:
            self._stack.close()


OWN_SERVERS: Final = OwnServers()
"""Those of this process."""
