"""A TCP proxy that can be cut: all its connections break, and none are taken until it is mended."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class CuttingProxy:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._open: list[socket.socket] = []
        self._pumps: list[threading.Thread] = []
        self.connections = 0
        self.sent = bytearray()
        """All that clients have sent."""
        self.port = 0
        self.mend()
        self.url = f"http://127.0.0.1:{self.port}{parts.path}"

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        """Listen again, on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def cut(self) -> None:
        """Break what is open and listen no more."""
        _shut(self._listener)
        self._accepting.join()
        self._listener.close()
        for each in self._open:
            _shut(each)
        for pump in self._pumps:
            pump.join()
        for each in self._open:
            each.close()
        self._open.clear()
        self._pumps.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # nobody listens there
                near.close()
                continue
            self.connections += 1
            self._open += [near, far]
            for ends in ((near, far, self.sent), (far, near, None)):
                pump = threading.Thread(target=_pump, args=ends)
                self._pumps.append(pump)
                pump.start()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if kept is not None:
                kept += data
            sink.sendall(data)
    _shut(sink)
    _shut(source)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
