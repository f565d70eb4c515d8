"""Writes to the history, and handles disk failures: the ledger, and new and open sessions."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..errors import HistoryUnavailable
from ..models import (
    Chain,
)
from ..records import (
    SERVER,
    By,
    Closed,
    Entry,
    LedgerEntry,
    Opened,
    Payload,
    SessionAmended,
    SessionClosed,
    SessionOpened,
    timestamp,
)
from ..storage.durability import Reserve, make_folder, sync_folder
from ..text.redaction import Redactor
from ..types import Digest, SessionId
from .blobs import BlobStore
from .chain import FORMAT, GENESIS
from .copies import Copies
from .ids import check_session_id
from .index import Index
from .journal import Grown, Journal
from .ledger import Ledger, Owner, ledger_paths, owner_of, sessions_below
from .lines import format_of
from .reader import HistoryReader, reading
from .recovery import Recovery
from .session_journal import (
    SessionJournal,
    amend_session,
    amending,
    redacted,
    unlisted,
    unlisted_in,
)


class HistoryWriter(HistoryReader):
    """What a server writes: its ledger, and the sessions that are open in it. Thread-safe.

    All methods block and belong in a thread, except `available`, `ready`, `ledger_head` and
    `Journal.head`, which never wait. If the folder cannot be written, reading still works,
    and each `check` and `open_session` tries again.

    Parameters
    ----------
    folder
        Its path. It is made if needed, with its parents, readable only for the owner.
    version
        Version of this package, for the ledger.
    log
        Gets messages for the operator.
    redactor
        Replaces secrets in what is recorded; by default, agent tokens.
    root_dir
        The folder that this server serves. With another one, the same path is another notebook.
    address
        Returns the address of this server; other servers on the same history show it to clients.
    """

    def __init__(
        self,
        folder: Path,
        *,
        version: str,
        log: logging.Logger,
        redactor: Redactor | None = None,
        root_dir: str | None = None,
        address: Callable[[], str | None] = lambda: None,
    ) -> None:
        super().__init__(folder, Index(folder, log))
        self._version = version
        self._log = log
        self.redactor = redactor or Redactor()
        self._address = address
        self._root_dir = root_dir
        self._reserve = Reserve(folder / "reserve")
        self._recovery = Recovery(folder, self._reserve, log)
        self._ledger: Ledger | None = None
        self._live: dict[SessionId, SessionJournal] = {}
        self.copies = Copies()
        """What copies the record. Set it before the start."""
        self._lock = threading.RLock()
        self._is_below: dict[SessionId, bool] = {}
        self._reading_ledgers = threading.Lock()
        self._available = False
        self._stopped = False

    def stop(self) -> None:
        """Close all files. Idempotent.

        Close all sessions before. The next server ends any session that is still open.
        """
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            for session in list(self._live.values()):
                session.retry()
                session.release()
            self._index.stop()
            if self._ledger is not None:
                self._ledger.close()
            self._available = False
        self.copies.stop()
        self.signatures.stop()

    @property
    def available(self) -> bool:
        """Whether the last attempt to write succeeded."""
        return self._available

    @property
    def ledger_head(self) -> Chain:
        """The end of the ledger's chain; an empty chain if there is no ledger yet."""
        ledger = self._ledger
        return (
            Chain(head=Digest(GENESIS), length=0) if ledger is None else ledger.journal.signed_head
        )

    def check(self) -> None:
        """Check that something can be recorded now.

        Raises
        ------
        HistoryUnavailable
            If nothing can be recorded.
        """
        with self._lock:
            try:
                self._begin()
                self._probe()
            except OSError as error:
                raise self._unavailable(error) from error
            self._available = True

    def look(self) -> bool:
        """Return whether something can be recorded now. Does not make a missing ledger."""
        with self._lock:
            if self._stopped or self._ledger is None:
                return False
            try:
                if not self._ledger.journal.path.exists():
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                self._probe()
            except OSError as error:
                if self._available:
                    self._log.warning("%s", self._unavailable(error).message)
                self._available = False
            else:
                self._available = True
            return self._available

    def settle(self) -> None:
        """Record what could not be recorded before, and end the open sessions of dead servers.

        Does nothing if the folder cannot be written, or was moved or deleted.
        """
        with self._lock:
            if self._stopped:
                return
            try:
                if self._ledger is not None and not self._ledger.journal.path.exists():
                    return
                for session in list(self._live.values()):
                    if not session.file.is_deleted:
                        session.retry()
                ledger = self._begin()
                ledger.write_owed()
                self._settle(ledger)
                self.copies.look_for_dead_servers()
            except (OSError, HistoryUnavailable) as error:
                self._log.warning("What is left to record cannot be written yet: %s", error)

    def owner(self, session_id: str) -> Owner | None:
        """Return the server that a session belongs to; None if no ledger lists it."""
        return owner_of(self.folder, check_session_id(session_id))

    def open_session(self, opened: Opened, payloads: Iterable[Payload] = ()) -> SessionJournal:
        """Make a session's journal and list it in the ledger, durable before this returns.

        Raises
        ------
        HistoryUnavailable
            If it cannot be written. Then the session does not exist.
        """
        session_id = check_session_id(opened.session_id)
        with self._lock:
            ledger = self._begin()
            folder = self._session_folder(session_id)
            try:
                opened = replace(opened, ledger=ledger.journal.head)
                entries, kept = redacted(self.redactor, [opened], tuple(payloads))
                journal, blobs = _new_journal(folder, entries, kept, self.copies.grown)
                try:
                    ledger.note(SessionOpened(at=opened.at, by=opened.by, session_id=session_id))
                except HistoryUnavailable:
                    journal.close()
                    _remove(folder)
                    raise
            except OSError as error:
                raise self._unavailable(error) from error
            except HistoryUnavailable:
                self._available = False
                raise
            session = SessionJournal(
                session_id,
                journal,
                blobs,
                self._reserve,
                redactor=self.redactor,
                check_sinks=self.copies.check,
                written=self._written,
                ended=self._ended,
            )
            self._live[session_id] = session
            self._written(session_id, True)
            return session

    def decide(
        self, session_id: SessionId, entries: Sequence[Entry], payloads: Sequence[Payload] = ()
    ) -> None:
        """Record a person's decision about a session, open or closed; durable on return.

        Raises
        ------
        SessionNotFound
            If it is gone.
        HistoryBusy
            If the closed session is written to all the time.
        HistoryUnavailable
            If it is not recorded.
        """
        with self._lock:
            live = self._live.get(session_id)
            if live is not None:
                try:
                    live.append(entries, payloads)
                    return
                except HistoryUnavailable:
                    if session_id in self._live:  # else it has just ended
                        raise
            self._begin()
        end: Chain | None = None
        try:  # without the lock: if the session is being erased from, only this waits
            folder = self.journal_path(session_id).parent
            with unlisted(folder):
                end = amend_session(folder, entries, payloads, self.redactor, self.copies.grown)
                self._written(session_id, True)
                last = entries[-1]
                self._begin().note_owed(amended(session_id, end, last.by, last.at))
        except HistoryUnavailable as error:
            if end is None:
                raise
            self._log.warning("Not yet in the ledger: the end of %s (%s)", session_id, error)
        except OSError as error:
            raise self._unavailable(error) from error
        self._changed(session_id, end)

    def is_below(self, session_id: SessionId) -> bool:
        """Return whether the server of a closed session served the folder that this one serves.

        Raises
        ------
        HistoryUnavailable
            If the ledgers cannot be read.
        """
        with self._reading_ledgers:
            if session_id not in self._is_below:
                with reading(session_id):
                    below = sessions_below(self.folder, self._root_dir)
                self._is_below.update(
                    {**dict.fromkeys(below, True), session_id: session_id in below}
                )
            return self._is_below[session_id]

    def _list_amendments(self) -> None:
        """Note in the ledger to where servers amended sessions that died before they noted it."""
        for mark, id in unlisted_in(self.folder):
            folder = self._session_folder(id)
            try:
                if (folder / "journal.jsonl").is_file():
                    with amending(folder) as path:
                        end = Journal.mend(path)
                    self.note(amended(id, end, SERVER))
                mark.unlink(missing_ok=True)
            except (OSError, HistoryUnavailable) as error:
                self._log.warning("Not yet in the ledger: the end of %s (%s)", id, error)

    def note(self, entry: LedgerEntry) -> None:
        """Record in the ledger an event that concerns all sessions; durable on return.

        Raises
        ------
        HistoryUnavailable
            If it is not recorded.
        """
        with self._lock:
            try:
                self._begin().note(entry)
            except OSError as error:
                raise self._unavailable(error) from error

    def note_owed(self, entry: LedgerEntry) -> None:
        """Record an event in the ledger, later if it cannot be written now."""
        with self._lock:
            try:
                self._begin().note_owed(entry)
            except (OSError, HistoryUnavailable) as error:
                self._log.warning("Not yet in the ledger: %s (%s)", type(entry).__name__, error)

    @property
    def owes(self) -> bool:
        """Whether the ledger lacks entries that could not be written."""
        return self._ledger is not None and self._ledger.owes

    def _begin(self) -> Ledger:
        """Return the ledger. Get one if there is none or its file was deleted."""
        with self._lock:
            if self._stopped:
                raise HistoryUnavailable("The server is stopping; nothing more can be recorded.")
            try:
                if self._ledger is not None and self._ledger.journal.path.exists():
                    return self._ledger
                ledger = self._new_ledger()
            except OSError as error:
                raise self._unavailable(error) from error
            self._ledger = ledger
            journal = ledger.journal
            journal.grown = self.copies.grown
            self.copies.grown(journal.path, journal.size, 1)
            self._index.own_ledger = journal.path
            self._available = True
            return ledger

    def _new_ledger(self) -> Ledger:
        """Return a ledger that can be written; the sessions of dead servers are ended before."""
        for path in ledger_paths(self.folder):
            if format_of(path) not in (FORMAT, None):
                raise HistoryUnavailable(
                    "This version cannot read the format of this history: a version that was never "
                    "released wrote it, or a later one. Its record was left as it is. Move the "
                    "folder away, or set AgentExecApp.history_dir to another one.",
                    path=str(path),
                )
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_folder(self.folder / "sessions")
        if self._ledger is None:
            ledger = self._recovery.take_ledger()
        else:
            self._log.warning("%s is gone; a new ledger is begun", self._ledger.journal.path)
            self._ledger.close()
            ledger = Ledger.make(self.folder)
        try:
            self._settle(ledger)
            ledger.opened(self._version, self._address(), self._root_dir)
            self._reserve.hold()
        except (OSError, HistoryUnavailable):
            ledger.close()
            raise
        return ledger

    def _settle(self, ledger: Ledger) -> None:
        ended = self._recovery.settle(ledger)
        for session_id in ended:
            self._index.grown(session_id)
        if ended:
            self.copies.rescan()

    def heads(self) -> list[tuple[Journal, Chain]]:
        """Return the files that this server writes, its ledger first, and the ends of their chains.

        Each open session that is in the ledger up to its end is there too.
        """
        with self._lock:
            journals = [session.file for session in list(self._live.values())]
            if self._ledger is not None:
                journals.insert(0, self._ledger.journal)
            return [(journal, journal.head) for journal in journals]

    def own_journals(self) -> dict[Path, int]:
        """Return the journals that this server writes, with the ends of their whole lines."""
        return {journal.path: journal.size for journal, _ in self.heads()}

    def _probe(self) -> None:
        """Raise OSError if nothing can be written."""
        self._reserve.hold()
        probe = self.folder / ".probe"
        try:
            probe.write_bytes(bytes(4096))
            sync_folder(self.folder)
        finally:
            probe.unlink(missing_ok=True)

    def _unavailable(self, error: OSError) -> HistoryUnavailable:
        self._available = False
        return HistoryUnavailable(
            f"The history in {self.folder} cannot be written ({error.strerror or error}).",
            path=str(self.folder),
        )

    def _written(self, session_id: SessionId, written: bool) -> None:
        self._available = written
        if written:
            self._index.grown(session_id)

    def _ended(self, session_id: SessionId, closed: Closed, chain: Chain) -> None:
        """Record the end of a session in the ledger, later if it cannot be written now."""
        entry = SessionClosed(at=closed.at, by=closed.by, session_id=session_id, chain=chain)
        try:
            if self._ledger is not None:
                self._ledger.note_owed(entry)
        except HistoryUnavailable as error:
            self._log.warning("The end of %s is not yet in the ledger: %s", session_id, error)
        self._live.pop(session_id, None)
        self._changed(session_id, chain)

    def _changed(self, session_id: SessionId, chain: Chain) -> None:
        self.signatures.changed(self._session_folder(session_id) / "journal.jsonl", chain)


def amended(id: SessionId, chain: Chain, by: By, at: str | None = None) -> SessionAmended:
    """Return the entry of a ledger about the new end of a closed session's journal."""
    return SessionAmended(at=at or timestamp(), by=by, session_id=id, chain=chain)


def _new_journal(
    folder: Path, opened: Sequence[Entry], payloads: Sequence[Payload], grown: Grown
) -> tuple[Journal, BlobStore]:
    """Make a session's folder and its journal with the first entry, or nothing on failure."""
    make_folder(folder)
    try:
        journal = Journal.create(folder / "journal.jsonl")
        blobs = BlobStore(folder / "blobs")
        try:
            journal.append(opened, blobs.keep(payloads))
            sync_folder(folder)
            journal.grown = grown
            grown(journal.path, journal.size, 1)
        except BaseException:
            journal.close()
            raise
    except (OSError, HistoryUnavailable):
        _remove(folder)
        raise
    return journal, blobs


def _remove(folder: Path) -> None:
    """Remove the folder of a session that could not be opened, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
