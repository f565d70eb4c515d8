"""The server's own chain: which sessions there are, and how their journals ended.

Each live server holds one ledger by a lock beside it. A server takes one whose server is dead, if
there is one, before it makes another. Another file beside it holds its head, so that `verify` sees
if its end was cut off.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from ..durability import sync_folder
from ..models import Chain
from ..records import (
    SERVER,
    By,
    LedgerEntry,
    LedgerOpened,
    SessionAmended,
    SessionClosed,
    SessionOpened,
    TokenMinted,
    TokenRevoked,
    timestamp,
)
from ..types import SessionId, TokenId
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
        self._journal = journal
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
        """Take a ledger that a server before left; None if its server lives.

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
            return cls(journal, lock, sessions_in(path))
        except BaseException:
            lock.release()
            raise

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._journal.path

    @property
    def head(self) -> Chain:
        """Where its chain ends."""
        return self._journal.head

    @property
    def sessions(self) -> Collection[SessionId]:
        """Sessions that it knew when this server took it."""
        return self._sessions

    @property
    def unclosed(self) -> list[SessionId]:
        """Sessions that were opened here and not closed, when this server took it."""
        return [session_id for session_id, closed in self._sessions.items() if not closed]

    def opened(self, version: str, address: str | None, root_dir: str | None) -> None:
        """Say that this server, of this version and at this address, writes here from now on.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written.
        """
        entry = LedgerOpened(
            at=timestamp(),
            by=SERVER,
            instance=self.path.stem.removeprefix("ledger-"),
            version=version,
            address=address,
            host=platform.node(),
            pid=os.getpid(),
            root_dir=root_dir,
        )
        self._append([entry])

    def session_opened(self, session_id: SessionId, at: str, by: By) -> None:
        """Say that a session's journal is there.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written.
        """
        self._append([SessionOpened(at=at, by=by, session_id=session_id)])

    def session_closed(self, session_id: SessionId, at: str, by: By, chain: Chain) -> None:
        """Say how a session's journal ended.

        What cannot be written is kept, and goes ahead of what is written next.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written now.
        """
        self._append_owed(SessionClosed(at=at, by=by, session_id=session_id, chain=chain))

    def session_amended(self, session_id: SessionId, at: str, by: By, chain: Chain) -> None:
        """Say where the journal of a closed session ends now; kept as `session_closed` is.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written now.
        """
        self._append_owed(SessionAmended(at=at, by=by, session_id=session_id, chain=chain))

    def note(self, entry: LedgerEntry) -> None:
        """Say what concerns all sessions.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written.
        """
        self._append([entry])

    def note_owed(self, entry: LedgerEntry) -> None:
        """Say what concerns all sessions; kept as `session_closed` is.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written now.
        """
        self._append_owed(entry)

    def close(self) -> None:
        """Let go of it. Idempotent."""
        self._journal.close()
        self._file_lock.release()

    def _append_owed(self, entry: LedgerEntry) -> None:
        with self._lock:
            self._owed.append(entry)
        self._append([])

    def _append(self, entries: Sequence[LedgerEntry]) -> None:
        with self._lock:
            self._journal.append([*self._owed, *entries])
            self._owed.clear()
            self._keep_head()

    def _keep_head(self) -> None:
        """Write where the chain ends beside it, after it and without a sync.

        A head that the ledger went beyond does no harm. One that it does not reach stays, and
        `verify` tells of it.
        """
        if self._was_cut:
            return
        with contextlib.suppress(OSError):
            fd = os.open(_head_path(self.path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, f"{self.head.head}\n".encode("ascii"), 0)
            finally:
                os.close(fd)


class _Place(NamedTuple):
    """The last line of a ledger that was read."""

    start: int
    data: bytes


class TokenEntries:
    """What all ledgers of a history say of agent tokens. Not thread-safe.

    An entry counts only if its line follows the line before it; `verify` tells of the others.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[Path, _Place] = {}
        self._minted: dict[TokenId, TokenMinted] = {}
        self._revoked: dict[TokenId, str] = {}

    def read(self) -> tuple[Mapping[TokenId, TokenMinted], Mapping[TokenId, str]]:
        """Return the tokens that were minted, and when each of the revoked ones was.

        Only what the ledgers have grown by is read; all of them if one is not what it was.

        Raises
        ------
        OSError
            If one cannot be read.
        """
        paths = ledger_paths(self._folder)
        if not self._places.keys() <= set(paths) or not all(map(self._read, paths)):
            self._places.clear()
            self._minted.clear()
            self._revoked.clear()
            for path in paths:
                self._read(path)
        return self._minted, self._revoked

    def _read(self, path: Path) -> bool:
        """Read the lines after those that are known; False if those are not there any more."""
        start, last = self._places.get(path, _Place(0, b""))
        with path.open("rb") as file:
            file.seek(start)
            if file.read(len(last)) != last:
                return False
            start += len(last)
            for data in file:
                if not data.endswith(b"\n"):
                    break  # a server writes it now
                if b'"type":"token_' in data:
                    self._take(data, last)
                self._places[path] = _Place(start, data)
                start, last = start + len(data), data
        return True

    def _take(self, data: bytes, before: bytes) -> None:
        try:
            line = chain.parse_line(data)
            previous = chain.parse_line(before).hash if before else chain.GENESIS
        except ValueError:
            return
        entry = ledger_entry(data)
        if line.hash != chain.link(previous, line.canonical):
            return
        if isinstance(entry, TokenMinted):
            self._minted[entry.token_id] = entry
        elif isinstance(entry, TokenRevoked):
            self._revoked[entry.token_id] = entry.at


def sessions_in(path: Path) -> dict[SessionId, bool]:
    """Return the sessions that a ledger knows, and whether each was closed."""
    sessions: dict[SessionId, bool] = {}
    for entry in ledger_entries(path):
        if isinstance(entry, SessionOpened):
            sessions[entry.session_id] = False
        elif isinstance(entry, SessionClosed):
            sessions[entry.session_id] = True
    return sessions


def sessions_below(folder: Path, root_dir: str) -> set[SessionId]:
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
    """Look whether a ledger lacks the head that is kept beside it."""
    try:
        kept = _head_path(path).read_bytes().strip()
    except FileNotFoundError:
        return False
    return b'{"hash":"%b"' % kept not in path.read_bytes()


class Owner(NamedTuple):
    """The server that a session belongs to."""

    address: str | None
    """Where it answers; None if that is not known."""
    host: str | None
    pid: int | None
    is_alive: bool


def owner_of(folder: Path, session_id: SessionId) -> Owner | None:
    """Return the server in whose ledger a session is open; None if it is in none."""
    for path in ledger_paths(folder):
        opened: LedgerOpened | None = None
        lists = False
        for entry in ledger_entries(path):
            if isinstance(entry, LedgerOpened):
                opened = entry
            elif isinstance(entry, SessionOpened) and entry.session_id == session_id:
                lists = True
        if lists and opened is not None:
            return Owner(opened.address, opened.host, opened.pid, _is_held(path))
    return None


def _is_held(path: Path) -> bool:
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _lock(path: Path) -> FileLock:
    return FileLock(f"{path}.lock", timeout=0, mode=0o600, thread_local=False)
