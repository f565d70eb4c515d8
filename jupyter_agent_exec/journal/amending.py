"""Going on with the journal of a closed session, for what people decide about it afterwards."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from ..errors import HistoryUnavailable
from ..models import Chain
from ..records import Entry, Payload
from .blobs import BlobStore
from .journal import Journal

_CLOSED: Final = b'"type":"closed"'
"""Stands in the last entry only: within a text, quotes are escaped."""
_LOCK_TIMEOUT: Final = 5.0
"""Seconds to wait for another server on the same history that does the same."""


def amend_session(
    session: Path, entries: Sequence[Entry], payloads: Sequence[Payload] = ()
) -> Chain:
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
            if not _has_ended(path):
                raise HistoryUnavailable("The session is open in another server; ask that one.")
            journal, _ = Journal.resume(path)
            try:
                journal.append(entries, BlobStore(session / "blobs").keep(payloads))
                return journal.head
            finally:
                journal.close()
    except Timeout as error:
        raise HistoryUnavailable("Another server writes to the session; ask again.") from error


def _has_ended(path: Path) -> bool:
    """Look for a journal's end from behind, since much may stand before it."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.rfind(_CLOSED) >= 0
