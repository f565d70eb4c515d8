"""How the entries of a session are written: without secrets, with their payloads, and in order.

`SessionJournal` keeps entries about past events until they can be written. `amend_session` adds to
the journal of a closed session.
"""

from __future__ import annotations

import mmap
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeVar

from filelock import FileLock, Timeout
from msgspec.structs import replace

from ..errors import HistoryBusy, HistoryUnavailable
from ..models import Chain, marked
from ..records import Closed, Entry, Mark, Payload
from ..storage.durability import Reserve, with_mark
from ..text.redaction import Redactor
from ..types import Digest, SessionId
from .blobs import BlobStore, TextSpill
from .journal import Grown, Journal

_UNLISTED: Final = "amending"

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
    check_sinks
        Raises SinkBehind if nothing may be sent to a kernel now.
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
        check_sinks: Callable[[], None],
        written: Callable[[SessionId, bool], None],
        ended: Callable[[SessionId, Closed, Chain], None],
    ) -> None:
        self.session_id = session_id
        self.file = journal
        """Its file, and the end of its chain."""
        self._blobs = blobs
        self._reserve = reserve
        self.redactor = redactor
        self.check_sinks = check_sinks
        self._written = written
        self._ended = ended
        self._lock = threading.Lock()
        self._kept: list[tuple[Sequence[Entry], Sequence[Payload]]] = []
        self._closing: Closed | None = None  # once it is written

    @property
    def kept(self) -> bool:
        """Whether entries about past events are only in memory."""
        return bool(self._kept)

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
                raise self.file.refusal(error) from error
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
        self.append_final([closed])
        with self._lock:
            self._end()

    def release(self) -> None:
        """Close the files without an end. The next server writes the end."""
        self.file.close()

    def _end(self) -> None:
        if self._closing is not None:
            closed, self._closing = self._closing, None
            self.file.close()
            self._ended(self.session_id, closed, self.file.head)

    def _write_kept(self) -> None:
        while self._kept:
            self._write(*self._kept[0])
            del self._kept[0]

    def _write(self, entries: Sequence[Entry], payloads: Sequence[Payload]) -> list[Digest]:
        entries, payloads = redacted(self.redactor, entries, payloads)
        try:
            hashes = self.file.append(entries, self._blobs.keep(payloads))
        except OSError as error:
            self._written(self.session_id, False)
            raise self.file.refusal(error) from error
        except HistoryUnavailable:
            self._written(self.session_id, False)
            raise
        self._written(self.session_id, True)
        self._closing = next((each for each in entries if isinstance(each, Closed)), self._closing)
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
