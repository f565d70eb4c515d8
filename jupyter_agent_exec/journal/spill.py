"""A file that takes an execution's whole text while it is printed, up to a cap."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from pathlib import Path
from typing import Final, NamedTuple

from ..durability import make_folder, sync_folder
from ..types import Digest

_BUFFER_BYTES: Final = 1 << 16


class SpilledText(NamedTuple):
    """What became of a text."""

    digest: Digest
    bytes: int
    """Length of the blob."""
    omitted_bytes: int
    """UTF-8 bytes that came after the cap, or could not be written."""


class TextSpill:
    """A growing file for an execution's text. Thread-safe; a failing disk is never raised.

    Parameters
    ----------
    folder
        The session's blobs; made if need be.
    max_bytes
        The cap; the text is cut at the end of a character.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._path = folder / f".{secrets.token_hex(8)}"
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._written = 0
        self._omitted = 0
        self._full = False

    def write(self, text: str) -> None:
        """Add to the text, without waiting for the disk; what is over the cap is only counted."""
        data = text.encode("utf-8", "replace")
        with self._lock:
            room = 0 if self._full else self._max_bytes - self._written - len(self._buffer)
            if len(data) > room:
                kept = data[:room].decode("utf-8", "ignore").encode("utf-8")
                self._omitted += len(data) - len(kept)
                self._full = True
                data = kept
            self._buffer += data

    def flush(self) -> None:
        """Put what was added into the file if it is much; what the disk refuses is counted."""
        with self._lock:
            if len(self._buffer) >= _BUFFER_BYTES:
                self._flush()

    def finish(self) -> SpilledText | None:
        """Make the text a blob, durable before this returns; None if none of it could be kept."""
        with self._lock:
            self._flush()
            self._full = True
            if self._fd is None:
                return None
            digest = Digest(self._hash.hexdigest())
            try:
                os.fsync(self._fd)
                self._path.rename(self._folder / digest)
                sync_folder(self._folder)
            except OSError:
                self._drop()
                return None
            os.close(self._fd)
            self._fd = None
            return SpilledText(digest, self._written, self._omitted)

    def discard(self) -> None:
        """Remove the file. Idempotent, and harmless after `finish`."""
        with self._lock:
            self._full = True
            self._buffer.clear()
            if self._fd is not None:
                self._drop()

    def _flush(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        if not data:
            return
        try:
            self._append(data)
        except OSError:
            self._full = True
            self._omitted += len(data)
        else:
            self._hash.update(data)
            self._written += len(data)

    def _append(self, data: bytes) -> None:
        if self._fd is None:
            make_folder(self._folder)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os.ftruncate(self._fd, self._written)
            os.lseek(self._fd, self._written, os.SEEK_SET)
            raise

    def _drop(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return  # a folder that cannot be written; the next start removes it
