"""Going on with the journal of a closed session, for what people decide about it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from ..errors import HistoryUnavailable
from ..models import Chain
from ..records import Closed, Entry
from .journal import Journal
from .reading import lines

_LOCK_TIMEOUT: Final = 5.0
"""Seconds to wait for another server on the same history that does the same."""


def amend_session(session: Path, entries: Sequence[Entry]) -> Chain:
    """Append to the journal of a closed session; return where its chain ends then.

    A closed session belongs to no server, so a lock keeps several of them apart.

    Raises
    ------
    OSError, HistoryUnavailable
        If it cannot be written, or the session is open in another server.
    """
    path = session / "journal.jsonl"
    lock = FileLock(f"{path}.lock", timeout=_LOCK_TIMEOUT, mode=0o600)
    try:
        with lock:
            if not any(isinstance(line.entry, Closed) for line in lines(path)):
                raise HistoryUnavailable("The session is open in another server; ask that one.")
            journal, _ = Journal.resume(path)
            try:
                journal.append(entries)
                return journal.head
            finally:
                journal.close()
    except Timeout as error:
        raise HistoryUnavailable("Another server writes to the session; ask again.") from error
