"""The connection to the server of a sleeping copy. Sent to kernels, never imported there."""

from __future__ import annotations

import json
import os
import socket
from typing import Any


class Link:
    """A connection to the server that carries lines of JSON."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")

    def tell(self, **told: object) -> None:
        """Send a line."""
        self._socket.sendall(json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        """Close it in this process."""
        self._lines.close()
        self._socket.close()

    def hear(self) -> dict[str, Any]:
        """Wait for a line; end this process if the server has hung up."""
        line = self._lines.readline()
        if not line:
            os._exit(0)
        heard: dict[str, Any] = json.loads(line)
        return heard
