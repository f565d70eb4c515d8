"""The append-only, hash-chained file of a session, and how its manager writes to it.

`Journal` writes lines to the disk, and undoes a write that failed. It does not interpret entries. A
ledger is such a file too. `SessionJournal` keeps entries about past events until they can be
written. `amend_session` adds to the journal of a closed session.
"""

from __future__ import annotations

import mmap
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from filelock import FileLock, Timeout
from msgspec.structs import replace

from ..errors import HistoryBusy, HistoryUnavailable
from ..models import Chain, HeadSignature, marked
from ..records import Closed, Entry, Mark, Payload
from ..storage.durability import Reserve, sync_data, with_mark
from ..text.redaction import Redactor
from ..types import Digest, SessionId
from . import chain
from .blobs import BlobStore, TextSpill
from .heads import signatures_path

Grown = Callable[[Path, int, int], None]
"""Called after a write with a journal's path, its size, and the number of new entries."""

_EMPTY: Final = Chain(head=Digest(chain.GENESIS), length=0)
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_TAIL_BYTES: Final = 1 << 16
_UNLISTED: Final = "amending"
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode_signatures: Final = msgspec.json.Decoder(list[HeadSignature]).decode


E = TypeVar("E", bound=Entry)


def redacted(
    redactor: Redactor, entries: Sequence[Entry], payloads: Sequence[Payload]
) -> tuple[list[Entry], list[Payload]]:
    """Return entries and payloads without secrets: whatever is written comes through here."""
    names: dict[object, Digest] = {}
    kept: list[Payload] = []
    for payload in payloads:
        data = payload.data
        if data is not None and not (payload.is_redacted or payload.as_file):
            shown, count = redactor.text(data.decode("utf-8", "surrogatepass"))
            if count:
                old, payload = payload.digest, Payload.of(shown.encode("utf-8", "surrogatepass"))
                names[old] = payload.digest
        kept.append(payload)
    return [without_secrets(redactor, entry, names) for entry in entries], kept


def without_secrets(redactor: Redactor, entry: E, names: Mapping[object, Digest] = {}) -> E:
    """Return an entry without secrets in its texts, and with the new names of its payloads."""
    changes: dict[str, object] = {}
    for name in marked(type(entry), Mark.FREE_TEXT):
        value = getattr(entry, name)
        if isinstance(value, str):
            changes[name] = redactor.text(value)[0]
        elif isinstance(value, tuple):
            changes[name] = tuple(map(redactor.struct, value))
        elif value is not None:
            changes[name] = redactor.struct(value)
    if names:
        for name in entry.__struct_fields__:
            digest = getattr(entry, name)
            if isinstance(digest, str) and digest in names:
                changes[name] = names[digest]
    return replace(entry, **changes) if changes else entry


class Journal:
    """A file of chained lines with one writer. Thread-safe.

    Use `create` or `resume`.

    Parameters
    ----------
    path
        The path of the file.
    fd
        An open descriptor of it, for reading and appending; closed by `close`.
    size
        Bytes up to the end of its last whole line.
    head
        The end of its chain.
    """

    def __init__(self, path: Path, fd: int, *, size: int, head: Chain) -> None:
        self.path = path
        self._fd = fd
        self._file = os.fstat(fd)
        self._size = size
        self._head = head
        self._lock = threading.Lock()
        self._closed = False
        self.grown: Grown | None = None
        self.signature: HeadSignature | None = None
        """The newest signature of its chain."""

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
        """Open an existing file to append to it.

        Cuts off an incomplete last line, which was never reported to anyone. Returns the journal
        and the number of bytes that were cut off.
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

    @classmethod
    def mend(cls, path: Path) -> Chain:
        """Cut off an incomplete last line, and return the end of the chain."""
        journal, _ = cls.resume(path)
        journal.close()
        return journal.head

    @property
    def head(self) -> Chain:
        """The end of the chain; never waits for a write."""
        return self._head

    @property
    def signed_head(self) -> Chain:
        """The end of the chain, with the newest signature."""
        signature = self.signature
        return self._head if signature is None else replace(self._head, signature=signature)

    @property
    def size(self) -> int:
        """Bytes of the acknowledged lines."""
        return self._size

    @property
    def is_deleted(self) -> bool:
        """Whether its file was deleted. A file that was moved could come back."""
        try:
            return not self._closed and not os.fstat(self._fd).st_nlink and not self.path.exists()
        except OSError:  # it is being closed
            return False

    def refusal(self, error: OSError) -> HistoryUnavailable:
        """Return the error for a failure of the disk."""
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
            Each salt, and each payload that is not kept elsewhere, a UTF-8 text, is on the line of
            every entry that names it.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If it could not be written, or another file is at the path. The file is unchanged, and a
            later call succeeds when the cause is gone.
        """
        texts: dict[Digest, str] = {}
        salts: dict[Digest, str] = {}
        for payload in payloads:
            salts[payload.digest] = payload.salt
            if payload.data is not None:
                texts[payload.digest] = payload.data.decode("utf-8")
        with self._lock:
            if self._closed:
                raise HistoryUnavailable("This journal is closed; nothing more can be recorded.")
            data, hashes = self._format(entries, texts, salts)
            self._put(data)
            self._size += len(data)
            if hashes:
                self._head = Chain(head=hashes[-1], length=self._head.length + len(hashes))
            if self.grown is not None:
                self.grown(self.path, self._size, len(hashes))
        return hashes

    def close(self) -> None:
        """Close the file; nothing can be appended any more. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._fd)

    def _format(
        self, entries: Sequence[Entry], texts: dict[Digest, str], salts: dict[Digest, str]
    ) -> tuple[bytes, list[Digest]]:
        previous, first = self._head.head, self._head.length
        lines: list[bytes] = []
        hashes: list[Digest] = []
        for n, entry in enumerate(entries, first):
            fields = msgspec.to_builtins(entry)
            fields["n"], fields["format"] = n, chain.FORMAT
            line_hash, line = chain.next_line(previous, _canonical(fields), texts, salts)
            previous = Digest(line_hash)
            lines.append(line)
            hashes.append(previous)
        return b"".join(lines), hashes

    def _put(self, data: bytes) -> None:
        """Write and sync `data` to the file that the path names, or leave all as it was."""
        try:
            self._write(data)
            if self._ends_after(data):
                return
            os.ftruncate(self._fd, self._size)  # also the rest of an earlier failed write
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
        """Return whether this file is at the path, and ends with the bytes that were just written.

        Only one check, after the write: each system call lets other threads run, and under load it
        takes milliseconds until this thread runs again.
        """
        try:
            at_path = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(at_path, self._file) and at_path.st_size == self._size + len(data)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), self._file)
        except FileNotFoundError:
            return False

    def _adopt(self) -> None:
        """Switch to the file that is now at the path, if it has the same end.

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


def _canonical(fields: dict[str, object]) -> bytes:
    """Return an entry's canonical bytes as `chain.canonical` does, in a fifth of the time."""
    try:
        return _encode(fields)
    except UnicodeEncodeError:  # a lone surrogate
        return chain.canonical(fields)


def end_of(path: Path) -> Chain:
    """Return the end of the chain in a file that nobody writes to.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        return _find_end(file.fileno(), os.fstat(file.fileno()).st_size)[1]


def signatures_of(path: Path) -> list[HeadSignature]:
    """Return the last signature of a chain by each key.

    Raises
    ------
    OSError, msgspec.MsgspecError
        If they cannot be read.
    """
    try:
        return _decode_signatures(signatures_path(path).read_bytes())
    except FileNotFoundError:
        return []


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


class SessionJournal:
    """The journal and the blobs of one live session. Thread-safe; `append*` and `close` block.

    Made by `History.open_session`.

    Parameters
    ----------
    session_id
        The session.
    journal
        Its file, with the `opened` entry.
    blobs
        Its large payloads.
    reserve
        Disk space to free when an entry about a past event cannot be written otherwise.
    redactor
        Replaces secrets in all that is written.
    check
        Becomes `check_sinks`.
    written
        Called after each attempt to write, with True if it succeeded.
    ended
        Called once, when `closed` has been written.
    """

    def __init__(
        self,
        session_id: SessionId,
        journal: Journal,
        blobs: BlobStore,
        reserve: Reserve,
        *,
        redactor: Redactor,
        check: Callable[[], None],
        written: Callable[[SessionId, bool], None],
        ended: Callable[[SessionId, Closed, Chain], None],
    ) -> None:
        self.session_id = session_id
        self._journal = journal
        self._blobs = blobs
        self._reserve = reserve
        self.redactor = redactor
        self.check_sinks = check
        """Raises SinkBehind if nothing may be sent to a kernel now."""
        self._written = written
        self._ended = ended
        self._lock = threading.Lock()
        self._kept: list[tuple[Sequence[Entry], Sequence[Payload]]] = []
        self._closing: Closed | None = None

    @property
    def file(self) -> Journal:
        """Its file."""
        return self._journal

    @property
    def history_dir(self) -> Path:
        """The folder of the history that it is part of."""
        return self._journal.path.parents[2]

    @property
    def head(self) -> Chain:
        """The end of the journal's chain; never waits for a write."""
        return self._journal.head

    @property
    def signed_head(self) -> Chain:
        """The end of the journal's chain, with the newest signature."""
        return self._journal.signed_head

    @property
    def kept(self) -> bool:
        """Whether entries about past events are only in memory."""
        return bool(self._kept)

    @property
    def is_deleted(self) -> bool:
        """Whether its file was deleted: nothing will ever be recorded there."""
        return self._journal.is_deleted

    def append(self, entries: Sequence[Entry], payloads: Iterable[Payload] = ()) -> list[Digest]:
        """Record events before they happen; durable before this returns.

        Entries that are kept in memory are written first.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If they are not recorded. Then the caller must not perform them.
        """
        with self._lock:
            try:
                self._reserve.hold()
            except OSError as error:
                self._written(self.session_id, False)
                raise self._journal.refusal(error) from error
            self._write_kept()
            return self._write(entries, tuple(payloads))

    def append_final(
        self, entries: Sequence[Entry], payloads: Iterable[Payload] = ()
    ) -> list[Digest]:
        """Record past events.

        If the disk is full, the reserve is freed. Entries that still cannot be written are kept in
        memory, and `retry` or the next call of any kind writes them in order.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If the entries are only in memory.
        """
        final = tuple(payloads)
        with self._lock:
            try:
                self._write_kept()
                return self._write(entries, final)
            except HistoryUnavailable:
                self._reserve.free()
            try:
                self._write_kept()
                return self._write(entries, final)
            except HistoryUnavailable:
                self._kept.append((entries, final))
                raise

    def retry(self) -> bool:
        """Write the entries that are kept in memory. Return whether none is left."""
        with self._lock:
            try:
                self._write_kept()
            except HistoryUnavailable:
                return False
            self._end()
            return True

    def new_text_spill(self, max_bytes: int) -> TextSpill:
        """Return a file for the whole text of an execution whose outputs are capped."""
        return self._blobs.new_text_spill(max_bytes)

    def close(self, closed: Closed) -> None:
        """Record the session's end, as `append_final` does, and close its files.

        Raises
        ------
        HistoryUnavailable
            If the end is in memory only; `retry` completes it.
        """
        self._closing = closed
        self.append_final([closed])
        with self._lock:
            self._end()

    def release(self) -> None:
        """Close the files without an end. The next server writes the end."""
        self._journal.close()

    def _end(self) -> None:
        if self._closing is not None:
            closed, self._closing = self._closing, None
            self._journal.close()
            self._ended(self.session_id, closed, self._journal.head)

    def _write_kept(self) -> None:
        while self._kept:
            self._write(*self._kept[0])
            del self._kept[0]

    def _write(self, entries: Sequence[Entry], payloads: Sequence[Payload]) -> list[Digest]:
        entries, payloads = redacted(self.redactor, entries, payloads)
        try:
            hashes = self._journal.append(entries, self._blobs.keep(payloads))
        except OSError as error:
            self._written(self.session_id, False)
            raise self._journal.refusal(error) from error
        except HistoryUnavailable:
            self._written(self.session_id, False)
            raise
        self._written(self.session_id, True)
        return hashes


_CLOSED: Final = b'"type":"closed"'
"""Occurs only in the last entry, because quotes within a text are escaped."""
_LOCK_TIMEOUT: Final = 5.0
"""Seconds to wait for somebody else who amends the same session."""


def amend_session(
    session: Path,
    entries: Sequence[Entry],
    payloads: Sequence[Payload],
    redactor: Redactor,
    grown: Grown,
) -> Chain:
    """Append to the journal of a closed session; return the new end of its chain.

    A closed session belongs to no server, so a lock keeps two servers from writing to it.

    Raises
    ------
    OSError, HistoryUnavailable
        If it cannot be written, or the session is open in another server.
    """
    with amending(session) as path:
        journal, _ = Journal.resume(path)
        journal.grown = grown
        entries, payloads = redacted(redactor, entries, payloads)
        try:
            journal.append(entries, BlobStore(session / "blobs").keep(payloads))
            return journal.head
        finally:
            journal.close()


def unlisted(session: Path) -> AbstractContextManager[None]:
    """Mark a session while the ledger lacks its amendment; after an error, the mark stays."""
    name = f"{session.name}.{secrets.token_hex(8)}"
    return with_mark(session.parents[1] / _UNLISTED / name)


def unlisted_in(folder: Path) -> list[tuple[Path, SessionId]]:
    """Return the marks in a history, and their sessions: of servers that died, or amend now."""
    marks = sorted((folder / _UNLISTED).glob("s_*.*"))
    return [(mark, SessionId(mark.name.partition(".")[0])) for mark in marks]


@contextmanager
def amending(session: Path) -> Iterator[Path]:
    """Hold the lock of a closed session's journal; yield its path. Raises as `amend_session`."""
    path = session / "journal.jsonl"
    lock = FileLock(f"{path}.lock", timeout=_LOCK_TIMEOUT, mode=0o600)
    try:
        with lock:
            if not _has_ended(path):
                raise HistoryUnavailable("The session is open in another server; ask that one.")
            yield path
    except Timeout as error:
        raise HistoryBusy("The session is written to right now; ask again.") from error


def _has_ended(path: Path) -> bool:
    """Search for a journal's last entry from the end of the file, which may be large."""
    if not path.stat().st_size:  # such a file cannot be mapped
        return False
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.rfind(_CLOSED) >= 0
