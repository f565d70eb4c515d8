"""One append-only, hash-chained file, and the way back after a write that failed.

Knows lines and bytes on disk, not what the entries in them mean. A ledger is such a file too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ..durability import sync_data
from ..errors import HistoryUnavailable
from ..models import Chain
from ..records import Entry, Payload
from ..types import Digest
from . import chain

_EMPTY: Final = Chain(head=Digest(chain.GENESIS), length=0)
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_TAIL_BYTES: Final = 1 << 16


class Journal:
    """A file of chained lines with one writer. Thread-safe.

    Use `create` or `resume`.

    Parameters
    ----------
    path
        Where the file is.
    fd
        An open descriptor of it, for reading and appending; closed by `close`.
    size
        Bytes up to the end of its last whole line.
    head
        Where its chain ends.
    """

    def __init__(self, path: Path, fd: int, *, size: int, head: Chain) -> None:
        self.path = path
        self._fd = fd
        self._file = os.fstat(fd)
        self._size = size
        self._head = head
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def create(cls, path: Path) -> Journal:
        """Make a new, empty file.

        Raises
        ------
        OSError
            If it exists or cannot be made.
        """
        return cls(path, os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600), size=0, head=_EMPTY)

    @classmethod
    def resume(cls, path: Path) -> tuple[Journal, int]:
        """Open an existing file to go on with it.

        Returns the journal and how many bytes of a torn last line, which nobody had been told of,
        were cut off.
        """
        fd = os.open(path, _FLAGS)
        try:
            total = os.fstat(fd).st_size
            size, head = _find_end(fd, total)
            if size < total:
                os.ftruncate(fd, size)
                sync_data(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, size=size, head=head), total - size

    @property
    def head(self) -> Chain:
        """Where the chain ends; never waits for a write."""
        return self._head

    @property
    def size(self) -> int:
        """Bytes of the acknowledged lines."""
        return self._size

    @property
    def is_deleted(self) -> bool:
        """Whether its file was deleted, and not moved away, from where it could come back."""
        try:
            return not self._closed and not os.fstat(self._fd).st_nlink and not self.path.exists()
        except OSError:  # it is being closed
            return False

    def refusal(self, error: OSError) -> HistoryUnavailable:
        """Return what is said of an error of the disk."""
        what = f"The history cannot be written ({error.strerror or error}); nothing was run."
        if self.is_deleted:
            what = "The session's record was deleted; nothing was run. Open another session."
        return HistoryUnavailable(what, path=str(self.path))

    def append(self, entries: Sequence[Entry], payloads: Iterable[Payload] = ()) -> list[Digest]:
        """Add entries, durable before this returns, in one write; set their `n`.

        Parameters
        ----------
        entries
            In order. Either all of them are written or none is.
        payloads
            UTF-8 texts; each stands on the line of every entry that names it.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If it could not be written, or the path no longer leads to this file. The file is as it
            was before, and a later call succeeds when the cause is gone.
        """
        texts = {payload.digest: payload.data.decode("utf-8") for payload in payloads}
        with self._lock:
            if self._closed:
                raise HistoryUnavailable("This journal is closed; nothing more can be recorded.")
            data, hashes = self._format(entries, texts)
            self._put(data)
            self._size += len(data)
            if hashes:
                self._head = Chain(head=hashes[-1], length=self._head.length + len(hashes))
        return hashes

    def close(self) -> None:
        """Close the file; nothing can be appended any more. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._fd)

    def _format(
        self, entries: Sequence[Entry], texts: dict[Digest, str]
    ) -> tuple[bytes, list[Digest]]:
        previous, first = self._head.head, self._head.length
        lines: list[bytes] = []
        hashes: list[Digest] = []
        for n, entry in enumerate(entries, first):
            fields = msgspec.to_builtins(entry)
            fields["n"] = n
            data = chain.canonical(fields)
            previous = Digest(chain.link(previous, data))
            named = {d: text for d, text in texts.items() if d.encode("ascii") in data}
            lines.append(chain.format_line(previous, data, named))
            hashes.append(previous)
        return b"".join(lines), hashes

    def _put(self, data: bytes) -> None:
        """Write and sync `data` to the file that the path names, or leave all as it was."""
        try:
            self._write(data)
            if self._ends_after(data):
                return
            os.ftruncate(self._fd, self._size)  # and what an earlier failure could not cut back
            if not self._is_at_path():
                self._adopt()
            self._write(data)
            if not self._ends_after(data):
                raise FileNotFoundError(f"{self.path} was moved, replaced or deleted")
        except OSError as error:
            self._cut_back()
            raise self.refusal(error) from error

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        sync_data(self._fd)

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return  # `_put` cuts before it writes again

    def _ends_after(self, data: bytes) -> bool:
        """Tell whether the path leads to this file, and it ends with what was just written.

        One look, after the write: each system call lets other threads run, and under load it is
        milliseconds until this one runs again.
        """
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, self._file) and found.st_size == self._size + len(data)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), self._file)
        except FileNotFoundError:
            return False

    def _adopt(self) -> None:
        """Go over to the file that is now at the path, if it ends just as this one does.

        A folder that was restored from a copy has other files with the same bytes.

        Raises
        ------
        OSError
            If there is none, or it is another journal, or one with a hole.
        """
        fd = os.open(self.path, _FLAGS)
        size = os.fstat(fd).st_size
        if _find_end(fd, size) != (self._size, self._head) or size != self._size:
            os.close(fd)
            raise FileExistsError(f"{self.path} was replaced by another file")
        os.close(self._fd)
        self._fd, self._file = fd, os.fstat(fd)


def _find_end(fd: int, total: int) -> tuple[int, Chain]:
    """Return the size up to the last whole line, and the chain's end there."""
    length = _TAIL_BYTES
    while True:
        start = max(0, total - length)
        data = os.pread(fd, total - start, start)
        first = data.find(b"\n") + 1 if start else 0
        end = data.rfind(b"\n") + 1
        while end > first:
            begin = max(data.rfind(b"\n", 0, end - 1) + 1, first)
            head = _head_at(data[begin:end])
            if head is not None:
                return start + end, head
            end = begin
        if start == 0:
            return 0, _EMPTY
        length *= 8


def _head_at(line: bytes) -> Chain | None:
    try:
        parsed = chain.parse_line(line)
    except ValueError:
        return None
    n = parsed.entry.get("n", 0)
    return Chain(head=Digest(parsed.hash), length=n + 1) if isinstance(n, int) else None
