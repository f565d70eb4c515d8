"""Ends the sessions of servers that died. No code is run again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import HistoryUnavailable
from ..models import Chain
from ..records import (
    SERVER,
    Accepted,
    Closed,
    Dispatched,
    Entry,
    Finished,
    JournalEntry,
    Opened,
    Recovered,
    SessionClosed,
    SessionOpened,
    timestamp,
)
from ..storage.durability import Reserve
from ..types import ExecutionId, SessionId
from .blobs import BlobStore
from .heads import journal_in
from .journal import Journal
from .ledger import Ledger, ledger_paths
from .lines import lines

_CANCELLED = "The server died before this was sent to a kernel; it was not run."
_LOST = "The server died while this ran; what it did in the kernel is not known."


class Recovery:
    """Ends the sessions that dead servers left open in a history.

    A dead server's ledger has no lock, because the system releases a lock when its process dies. If
    an end cannot be written, for example on a full disk, it is tried again after the reserve was
    freed, and at the next `settle`.

    Parameters
    ----------
    folder
        The history's folder.
    reserve
        Disk space to free when an end cannot be written otherwise.
    log
        Gets messages about what was ended, and what could not be ended.
    """

    def __init__(self, folder: Path, reserve: Reserve, log: logging.Logger) -> None:
        self._folder = folder
        self._reserve = reserve
        self._log = log
        self._unlisted: set[SessionId] = set()
        self._left: set[SessionId] = set()
        self._settled: dict[Path, int] = {}

    def take_ledger(self) -> Ledger:
        """Return a ledger for this server: one that a dead server left, or a new one.

        Raises
        ------
        OSError
            If there is no ledger to take, and none can be made.
        """
        own: Ledger | None = None
        listed: set[SessionId] = set()
        others_live = False
        for path in ledger_paths(self._folder):
            ledger = self._take(path)
            if ledger is None:
                others_live = True
                continue
            listed.update(ledger.sessions)
            if own is None:
                own = ledger
            else:
                if not ledger.unclosed:
                    self._settled[path] = path.stat().st_size
                ledger.close()
        own = own or Ledger.make(self._folder)
        self._left = set(own.unclosed)
        # If another server runs, this may be a session that it is about to list.
        self._unlisted = set() if others_live else self._sessions_beside(listed)
        return own

    def settle(self, own: Ledger) -> list[SessionId]:
        """End the sessions that dead servers left open, if possible. Return the sessions it ended.

        Parameters
        ----------
        own
            This server's ledger.
        """
        for session_id in sorted(self._unlisted):
            if self._write(session_id, partial(self._list, session_id, own)):
                self._unlisted.discard(session_id)
                self._left.add(session_id)
        ended = self._end(own, self._left)
        self._left.difference_update(ended)
        for path in ledger_paths(self._folder):
            if path == own.journal.path or self._settled.get(path) == path.stat().st_size:
                continue
            ledger = self._take(path)
            if ledger is None:
                continue
            try:
                unclosed = set(ledger.unclosed)
                done = self._end(ledger, unclosed)
                if unclosed.issubset(done):
                    self._settled[path] = path.stat().st_size
            finally:
                ledger.close()
            ended.update(done)
        return sorted(ended)

    def _take(self, path: Path) -> Ledger | None:
        try:
            return Ledger.take(path)
        except OSError as error:
            self._log.info("The ledger %s cannot be taken up: %s", path.name, error)
            return None

    def _sessions_beside(self, listed: set[SessionId]) -> set[SessionId]:
        """Return sessions whose server died between their journal's first line and the ledger's."""
        beside = {SessionId(path.name) for path in (self._folder / "sessions").glob("s_*")} - listed
        return {each for each in beside if self._opened(each) is not None}

    def _opened(self, session_id: SessionId) -> Opened | None:
        """Return a journal's first entry; None if it has none, so the session never existed."""
        if not self._has_journal(session_id):
            return None
        first = next(lines(journal_in(self._folder, session_id)), None)
        return first.entry if first is not None and isinstance(first.entry, Opened) else None

    def _has_journal(self, session_id: SessionId) -> bool:
        return journal_in(self._folder, session_id).is_file()

    def _list(self, session_id: SessionId, ledger: Ledger) -> None:
        opened = self._opened(session_id)
        if opened is not None:
            ledger.note(SessionOpened(at=opened.at, by=opened.by, session_id=session_id))

    def _end(self, ledger: Ledger, sessions: set[SessionId]) -> set[SessionId]:
        """End sessions that a dead server left open; return those that have ended or are gone."""
        ended = set()
        for session_id in sorted(sessions):
            if not self._has_journal(session_id):
                self._log.warning("The journal of session %s is missing", session_id)
                ended.add(session_id)
            elif self._write(session_id, partial(self._end_one, session_id, ledger)):
                self._log.info("Session %s of a server that died was closed", session_id)
                ended.add(session_id)
        return ended

    def _end_one(self, session_id: SessionId, ledger: Ledger) -> None:
        chain = end_session(journal_in(self._folder, session_id).parent)
        # Use `note`, not `note_owed`: if the write fails, the next `settle` tries again.
        ledger.note(
            SessionClosed(
                at=timestamp(), by=SERVER, session_id=session_id, chain=chain, server_died=True
            )
        )

    def _write(self, session_id: SessionId, write: Callable[[], None]) -> bool:
        """Write the end of a session; free the reserve if the disk is full."""
        try:
            write()
        except (OSError, HistoryUnavailable):
            self._reserve.free()
        else:
            return True
        try:
            write()
        except (OSError, HistoryUnavailable) as error:
            self._log.warning("Session %s cannot be closed yet: %s", session_id, error)
            return False
        return True


def end_session(session: Path) -> Chain:
    """Write a final status for each execution in a dead server's journal, and the session's end.

    Returns the end of the journal's chain. A journal that has its end is not changed.

    Raises
    ------
    OSError, HistoryUnavailable
        If the journal cannot be written.
    """
    journal, torn_bytes = Journal.resume(session / "journal.jsonl")
    try:
        entries = [line.entry for line in lines(journal.path)]
        if not any(isinstance(entry, Closed) for entry in entries):
            BlobStore(session / "blobs").remove_temporary()
            at = timestamp()
            journal.append(
                [
                    Recovered(at=at, by=SERVER, torn_bytes=torn_bytes),
                    *_final_entries(entries, at),
                    Closed(at=at, by=SERVER, reason="server_died"),
                ]
            )
        return journal.head
    finally:
        journal.close()


def _final_entries(entries: list[JournalEntry], at: str) -> list[Entry]:
    """Return a `finished` entry for each execution that has none."""
    open_since: dict[ExecutionId, str | None] = {}
    for entry in entries:
        if isinstance(entry, Accepted):
            open_since[entry.execution_id] = None
        elif isinstance(entry, Dispatched):
            open_since[entry.execution_id] = entry.at
        elif isinstance(entry, Finished):
            open_since.pop(entry.execution_id, None)
    return [
        Finished.without_run(at, id, "cancelled", _CANCELLED, None)
        if started_at is None
        else Finished.without_run(at, id, "lost", _LOST, started_at)
        for id, started_at in open_since.items()
    ]
