"""The server's own chain: lists the sessions, and the ends of their journals.

Each running server holds one ledger, with a lock file beside it. A new server reuses the ledger of
a dead server, if there is one, or makes a new one. Another file beside the ledger holds its head,
so that `verify` detects a ledger whose end was cut off.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from msgspec.structs import replace

from ..auth.token_store import LedgerTokens
from ..errors import HistoryUnavailable
from ..records import (
    SERVER,
    LedgerEntry,
    LedgerOpened,
    SessionAmended,
    SessionClosed,
    SessionOpened,
    TokenExtended,
    TokenMinted,
    TokenRenewed,
    TokenRevoked,
    timestamp,
)
from ..storage.durability import sync_folder
from ..types import Digest, SessionId, TokenId
from . import chain
from .journal import Journal
from .lines import ledger_entries, ledger_entry


def ledger_paths(folder: Path) -> list[Path]:
    """Return all ledgers of a history."""
    return sorted(folder.glob("ledger-*.jsonl"))


class Ledger:
    """A ledger that this server holds. Thread-safe.

    Use `make` or `take`.
    """

    def __init__(self, journal: Journal, lock: FileLock, sessions: dict[SessionId, bool]) -> None:
        self.journal = journal
        """Its file."""
        self._file_lock = lock
        self._sessions = sessions
        self._lock = threading.Lock()
        self._owed: list[LedgerEntry] = []
        self._was_cut = _is_cut(journal.path)

    @classmethod
    def make(cls, folder: Path) -> Ledger:
        """Make a new ledger.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        path = folder / f"ledger-{secrets.token_hex(8)}.jsonl"
        lock = _lock(path)
        lock.acquire()
        try:
            journal = Journal.create(path)
            sync_folder(folder)
        except OSError:
            lock.release()
            raise
        return cls(journal, lock, {})

    @classmethod
    def take(cls, path: Path) -> Ledger | None:
        """Take over the ledger of an earlier server; None if that server still runs.

        Raises
        ------
        OSError
            If it cannot be read or written.
        """
        lock = _lock(path)
        try:
            lock.acquire()
        except Timeout:
            return None
        try:
            journal, _ = Journal.resume(path)
            try:
                return cls(journal, lock, sessions_in(path))
            except BaseException:
                journal.close()
                raise
        except BaseException:
            lock.release()
            raise

    @property
    def sessions(self) -> Collection[SessionId]:
        """Sessions that the ledger listed when this server took it over."""
        return self._sessions

    @property
    def unclosed(self) -> list[SessionId]:
        """Sessions that the ledger listed as open when this server took it over."""
        return [session_id for session_id, closed in self._sessions.items() if not closed]

    def opened(self, version: str, address: str | None, root_dir: str | None) -> None:
        """Record that this server, with its version and address, writes here from now on.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written.
        """
        entry = LedgerOpened(
            at=timestamp(),
            by=SERVER,
            instance=self.journal.path.stem.removeprefix("ledger-"),
            version=version,
            address=address,
            host=platform.node(),
            pid=os.getpid(),
            root_dir=root_dir,
        )
        self.note(entry)

    def note(self, *entries: LedgerEntry) -> None:
        """Record entries, after those that could not be written before.

        Raises
        ------
        HistoryUnavailable
            If they cannot be written.
        """
        with self._lock:
            self.journal.append([*self._owed, *entries])
            self._owed.clear()
            self._keep_head()

    def note_owed(self, entry: LedgerEntry) -> None:
        """Record an entry. One that cannot be written is kept, and written before the next one.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written now.
        """
        with self._lock:
            self._owed.append(entry)
        self.note()

    def write_owed(self) -> None:
        """Record the entries that could not be written before.

        Raises
        ------
        HistoryUnavailable
            If they cannot be written now.
        """
        if self._owed:
            self.note()

    @property
    def owes(self) -> bool:
        """Whether it lacks entries that could not be written."""
        return bool(self._owed)

    def close(self) -> None:
        """Write what could not be written before, close the file, release the lock. Idempotent."""
        with contextlib.suppress(HistoryUnavailable):
            self.write_owed()
        self.journal.close()
        self._file_lock.release()

    def _keep_head(self) -> None:
        """Write the head to the file beside the ledger, after the ledger and without a sync.

        A head that is older than the ledger does no harm. If the ledger does not reach the head,
        the head stays, and `verify` reports it.
        """
        if self._was_cut:
            return
        with contextlib.suppress(OSError):
            fd = os.open(
                _head_path(self.journal.path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                os.pwrite(fd, f"{self.journal.head.head}\n".encode("ascii"), 0)
            finally:
                os.close(fd)


class _Place(NamedTuple):
    """The last line of a ledger that was read."""

    start: int
    data: bytes


class _NewLine(NamedTuple):
    """A line that a ledger has grown by, and the line before it; empty for the first one."""

    data: bytes
    before: bytes


class _NewLines:
    """Reads new lines of the ledgers of a history. Not thread-safe.

    Parameters
    ----------
    folder
        The history's folder.
    kind
        The prefix of the types of the wanted entries.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._mark = f'"type":"{kind}'.encode()
        self._places: dict[Path, _Place] = {}

    def read(self, own: Path | None = None) -> tuple[list[_NewLine], bool]:
        """Return the new lines, and whether these are all lines.

        All ledgers are read again if one of them was replaced or shortened.

        Parameters
        ----------
        own
            A ledger to leave out.

        Raises
        ------
        OSError
            If one cannot be read.
        """
        paths = [path for path in ledger_paths(self._folder) if path != own]
        lines: list[_NewLine] = []
        all_lines = not self._places
        if not self._places.keys() <= set(paths) or not all(self._read(p, lines) for p in paths):
            all_lines = True
            self._places.clear()
            lines.clear()
            for path in paths:
                self._read(path, lines)
        return lines, all_lines

    def _read(self, path: Path, lines: list[_NewLine]) -> bool:
        """Add the new lines of a ledger; False if the lines that were read before are gone."""
        start, last = self._places.get(path, _Place(0, b""))
        with path.open("rb") as file:
            file.seek(start)
            if file.read(len(last)) != last:
                return False
            start += len(last)
            for data in file:
                if not data.endswith(b"\n"):
                    break  # a server writes it now
                if self._mark in data:
                    lines.append(_NewLine(data, last))
                self._places[path] = _Place(start, data)
                start, last = start + len(data), data
        return True


class TokenEntries:
    """Collects the entries about agent tokens from all ledgers. Not thread-safe.

    An entry is used only if its line continues the chain; `verify` reports the others.
    """

    def __init__(self, folder: Path) -> None:
        self._lines = _NewLines(folder, "token_")
        self._minted: dict[TokenId, TokenMinted] = {}
        self._renewed: dict[TokenId, TokenRenewed] = {}  # the last entry of each token
        self._extended: dict[TokenId, tuple[str, ...]] = {}  # the scopes that each got
        self._revoked: dict[TokenId, str] = {}
        self._secrets: set[tuple[TokenId, Digest | None]] = set()

    def read(self) -> LedgerTokens:
        """Return what all ledgers say.

        Raises
        ------
        OSError
            If a ledger cannot be read.
        """
        lines, all_lines = self._lines.read()
        if all_lines:
            self._minted.clear()
            self._renewed.clear()
            self._extended.clear()
            self._revoked.clear()
            self._secrets.clear()
        for line in lines:
            self._take(line)
        minted = {id: self._current(entry) for id, entry in self._minted.items()}
        return LedgerTokens(minted, self._revoked, self._secrets)

    def _current(self, minted: TokenMinted) -> TokenMinted:
        extended = self._extended.get(minted.token_id, ())
        minted = replace(minted, scopes=(*minted.scopes, *extended))
        renewed = self._renewed.get(minted.token_id)
        if renewed is None:
            return minted
        return replace(
            minted,
            secret_sha256=renewed.secret_sha256,
            secret_expires_at=renewed.secret_expires_at,
        )

    def _take(self, new: _NewLine) -> None:
        try:
            line = chain.parse_line(new.data)
            previous = chain.parse_line(new.before).hash if new.before else chain.GENESIS
        except ValueError:
            return
        entry = ledger_entry(new.data)
        if line.hash != chain.link(previous, line.canonical):
            return
        if isinstance(entry, (TokenMinted, TokenRenewed)):
            self._secrets.add((entry.token_id, entry.secret_sha256))
        if isinstance(entry, TokenMinted):
            self._minted[entry.token_id] = entry
        elif isinstance(entry, TokenRenewed):
            renewed = self._renewed.get(entry.token_id)  # of another ledger, perhaps later
            if renewed is None or renewed.at <= entry.at:
                self._renewed[entry.token_id] = entry
        elif isinstance(entry, TokenExtended):
            earlier = self._extended.get(entry.token_id, ())
            self._extended[entry.token_id] = (*earlier, *entry.scopes)
        elif isinstance(entry, TokenRevoked):
            self._revoked[entry.token_id] = entry.at


class OtherServers:
    """What other servers write to the same history. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._sessions = folder / "sessions"
        self._lines = _NewLines(folder, "session_")
        self._open: dict[SessionId, int] = {}

    def grown(self, own: Path | None) -> set[SessionId]:
        """Return the sessions whose journals other servers may have written since the last call.

        Parameters
        ----------
        own
            This server's ledger.

        Raises
        ------
        OSError
            If a ledger cannot be read.
        """
        grown: set[SessionId] = set()
        lines, all_lines = self._lines.read(own)
        if all_lines:
            self._open.clear()
        for new in lines:
            entry = ledger_entry(new.data)
            if isinstance(entry, SessionOpened):
                self._open.setdefault(entry.session_id, 0)
            elif isinstance(entry, SessionClosed | SessionAmended):
                self._open.pop(entry.session_id, None)
                grown.add(entry.session_id)
        for session_id, seen in self._open.items():
            size = self._size(session_id)
            if size != seen:
                self._open[session_id] = size
                grown.add(session_id)
        return grown

    def _size(self, session_id: SessionId) -> int:
        try:
            return os.stat(self._sessions / session_id / "journal.jsonl").st_size
        except OSError:
            return 0


def all_ledger_entries(folder: Path) -> Iterator[LedgerEntry]:
    """Yield the entries of all ledgers of a history; OSError if one cannot be read."""
    for path in ledger_paths(folder):
        yield from ledger_entries(path)


def sessions_in(path: Path) -> dict[SessionId, bool]:
    """Return the sessions in a ledger, and whether each was closed."""
    sessions: dict[SessionId, bool] = {}
    for entry in ledger_entries(path):
        if isinstance(entry, SessionOpened):
            sessions[entry.session_id] = False
        elif isinstance(entry, SessionClosed):
            sessions[entry.session_id] = True
    return sessions


def sessions_below(folder: Path, root_dir: str | None) -> set[SessionId]:
    """Return the sessions of servers that served a folder."""
    sessions: set[SessionId] = set()
    for path in ledger_paths(folder):
        served: str | None = None
        for entry in ledger_entries(path):
            if isinstance(entry, LedgerOpened):
                served = entry.root_dir
            elif isinstance(entry, SessionOpened) and served == root_dir:
                sessions.add(entry.session_id)
    return sessions


def _head_path(path: Path) -> Path:
    return path.with_suffix(".head")


def _is_cut(path: Path) -> bool:
    """Return whether a ledger does not reach the head in the file beside it."""
    try:
        kept = _head_path(path).read_bytes().strip()
    except FileNotFoundError:
        return False
    return b'{"hash":"%b"' % kept not in path.read_bytes()


class Owner(NamedTuple):
    """The server that a session belongs to."""

    address: str | None
    """Its address; None if unknown."""
    host: str | None
    pid: int | None
    is_alive: bool


def owner_of(folder: Path, session_id: SessionId) -> Owner | None:
    """Return the server whose ledger lists a session, open or closed; None if none does."""
    for path in ledger_paths(folder):
        opened: LedgerOpened | None = None
        lists = False
        for entry in ledger_entries(path):
            if isinstance(entry, LedgerOpened):
                opened = entry
            elif isinstance(entry, SessionOpened) and entry.session_id == session_id:
                lists = True
        if lists and opened is not None:
            return Owner(opened.address, opened.host, opened.pid, is_held(path))
    return None


def is_held(path: Path) -> bool:
    """Return whether a server that lives writes to a ledger."""
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _lock(path: Path) -> FileLock:
    return FileLock(f"{path}.lock", timeout=0, mode=0o600, thread_local=False)
