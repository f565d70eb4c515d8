"""Ending the sessions of servers that died: nothing stays open, and nothing is run again."""

from __future__ import annotations

import logging
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
    timestamp,
)
from ..types import ExecutionId, SessionId
from .blobs import BlobStore
from .journal import Journal
from .ledger import Ledger, ledger_paths, sessions_in
from .reading import lines

_CANCELLED = "The server died before this was sent to a kernel; it was not run."
_LOST = "The server died while this ran; what it did in the kernel is not known."


def take_ledger(folder: Path, log: logging.Logger) -> tuple[Ledger, list[SessionId]]:
    """Return a ledger for this server, and the sessions of dead servers, which were ended.

    Raises
    ------
    OSError
        If there is no ledger to take, and none can be made.
    """
    own: Ledger | None = None
    ended: list[SessionId] = []
    known: set[SessionId] = set()
    others_live = False
    for path in ledger_paths(folder):
        try:
            ledger = Ledger.take(path)
        except OSError as error:
            log.info("The ledger %s cannot be taken up: %s", path.name, error)
            ledger = None
        if ledger is None:
            others_live = True
            known.update(sessions_in(path))
            continue
        known.update(ledger.sessions)
        ended += [s for s in ledger.unclosed if _recover(folder, s, ledger, log)]
        if own is None:
            own = ledger
        else:
            ledger.close()
    own = own or Ledger.make(folder)
    if not others_live:  # else it may be a session that a live server is about to list
        ended += _recover_unlisted(folder, known, own, log)
    return own, ended


def _recover_unlisted(
    folder: Path, known: set[SessionId], ledger: Ledger, log: logging.Logger
) -> list[SessionId]:
    """End sessions whose server died between their journal's first line and the ledger's."""
    ended: list[SessionId] = []
    for path in (folder / "sessions").glob("s_*"):
        session_id = SessionId(path.name)
        if session_id in known:
            continue
        opened = next(lines(path / "journal.jsonl"), None) if _has_journal(path) else None
        if opened is None or not isinstance(opened.entry, Opened):
            continue  # nobody was told of it
        try:
            ledger.session_opened(session_id, opened.entry.at, opened.entry.by)
        except HistoryUnavailable as error:
            log.warning("Session %s cannot be listed: %s", session_id, error)
            continue
        if _recover(folder, session_id, ledger, log):
            ended.append(session_id)
    return ended


def _has_journal(session: Path) -> bool:
    return (session / "journal.jsonl").is_file()


def _recover(folder: Path, session_id: SessionId, ledger: Ledger, log: logging.Logger) -> bool:
    """End a session that a dead server left open, in its journal and the ledger."""
    session = folder / "sessions" / session_id
    if not _has_journal(session):
        log.warning("The journal of session %s is missing from the history", session_id)
        return False
    try:
        chain = end_session(session)
        ledger.session_closed(session_id, timestamp(), SERVER, chain)
    except (OSError, HistoryUnavailable) as error:
        log.warning("Session %s cannot be closed until the next start: %s", session_id, error)
        return False
    log.info("Session %s of a server that died was closed", session_id)
    return True


def end_session(session: Path) -> Chain:
    """Give each execution in a dead server's journal a final status, and the session an end.

    Returns where the journal's chain ends then. A journal that has its end stays as it is.

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
        Finished(
            at=at,
            by=SERVER,
            execution_id=execution_id,
            status="cancelled" if started_at is None else "lost",
            reason=_CANCELLED if started_at is None else _LOST,
            started_at=started_at,
            outputs_complete=started_at is None,
        )
        for execution_id, started_at in open_since.items()
    ]
