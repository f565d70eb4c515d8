"""Servers that adapters start when no server is configured: one for each folder and process."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ..client.servers import Server
from ..own_server.launch import own_server

TRAITS: Final = {"AgentExecApp.max_output_bytes": "100000000"}
"""Settings of these servers. Frameworks expect pictures of any size in full."""


class OwnServers:
    """Servers that run while adapters use them. Thread-safe.

    A server stops when its last adapter releases it, at the latest with this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Path, _Running] = {}

    def acquire(self, root_dir: Path) -> Server:
        """Return the server of a folder. Start it if needed, which takes about a second.

        Raises
        ------
        ServerUnreachable
            The server did not start. The message has the end of its log.
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
        """Release a server from `acquire`. The last release stops it and waits until it ends."""
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
"""The servers of this process."""
