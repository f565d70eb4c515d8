"""Copies the record to a syslog server.

Sources: RFC 5424 (messages), RFC 6587 (octet counting over TCP), RFC 5425 (TLS).
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from contextlib import suppress
from typing import Final

from ..journal.chain import format_line
from .sink import Batch, SentEntry, Sink, SinkSettings

_PRIORITY: Final = 13 * 8 + 6
"""Facility log audit, severity informational."""
_TIMEOUT: Final = 30.0
_NOT_PRINTABLE: Final = re.compile(r"[^!-~]")


class SyslogSink(Sink):
    """A syslog server, over TLS or plain TCP.

    Syslog has no acknowledgement. So each batch has a connection of its own: the sink says that it
    has sent everything, and waits until the server has read it all and closes the connection.

    Parameters
    ----------
    context
        For TLS; None for plain TCP.
    max_message_bytes
        The longest message that the server takes. Payloads that do not fit are left out.
    """

    def __init__(
        self,
        settings: SinkSettings,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        max_message_bytes: int,
    ) -> None:
        super().__init__(settings)
        self._address = (host, port)
        self._context = context
        self._max_message_bytes = max_message_bytes
        self._hostname = _NOT_PRINTABLE.sub("_", settings.server)[:255]

    def deliver(self, batch: Batch) -> None:
        """Send a batch, and return when the server has read it."""
        messages = [self._message(batch.journal, entry) for entry in batch.entries]
        if batch.rewound:
            messages.insert(0, self._note(batch))
        frames = b"".join(b"%d %b" % (len(message), message) for message in messages)
        with socket.create_connection(self._address, timeout=_TIMEOUT) as connection:
            if self._context is None:
                connection.sendall(frames)
                connection.shutdown(socket.SHUT_WR)
                _read_to_end(connection)
                return
            with self._context.wrap_socket(connection, server_hostname=self._address[0]) as tls:
                tls.sendall(frames)
                with suppress(ssl.SSLEOFError):  # it has read everything, and closes without a word
                    _read_to_end(tls.unwrap())

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _message(self, journal: str, entry: SentEntry) -> bytes:
        head = self._head(entry.at, entry.type)
        start = json.dumps({"journal": journal})[:-1].encode("ascii")
        texts = {}
        for digest, data in entry.payloads.items():
            with suppress(UnicodeDecodeError):  # an image
                texts[digest] = data.decode("utf-8")
        line = format_line(entry.hash, entry.canonical, texts, entry.salts)
        if len(head) + len(start) + len(line) > self._max_message_bytes:
            line = format_line(entry.hash, entry.canonical, {})
        return b"%b%b,%b" % (head, start, line[1:-1])

    def _note(self, batch: Batch) -> bytes:
        last = batch.entries[-1] if batch.entries else None
        note = {
            "journal": batch.journal,
            "rewound": True,
            "length": last.n + 1 if last else 0,
            "head": last.hash if last else "",
        }
        return self._head(last.at if last else "-", "rewound") + json.dumps(note).encode()

    def _head(self, at: str, kind: str) -> bytes:
        return f"<{_PRIORITY}>1 {at} {self._hostname} jupyter-agent-exec - {kind[:32]} - ".encode(
            "ascii", "replace"
        )


def _read_to_end(connection: socket.socket) -> None:
    """Wait until the far side closes; ConnectionResetError if it did not read everything."""
    while connection.recv(4096):
        pass
