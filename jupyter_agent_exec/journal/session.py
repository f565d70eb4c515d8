"""A session's record as its manager writes it, with the rule that what has happened is not lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..errors import HistoryUnavailable
from ..models import Chain
from ..records import Closed, Entry, Payload
from ..types import Digest, SessionId
from .blobs import BlobStore
from .journal import Journal
from .reserve import Reserve
from .spill import TextSpill


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
        Freed when what has already happened cannot be written otherwise.
    written
        Called after each attempt to write, with whether it succeeded.
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
        written: Callable[[SessionId, bool], None],
        ended: Callable[[SessionId, Closed, Chain], None],
    ) -> None:
        self.session_id = session_id
        self._journal = journal
        self._blobs = blobs
        self._reserve = reserve
        self._written = written
        self._ended = ended
        self._lock = threading.Lock()
        self._kept: list[tuple[Sequence[Entry], Sequence[Payload]]] = []
        self._closing: Closed | None = None

    @property
    def history_dir(self) -> Path:
        """The folder of the history that it is part of."""
        return self._journal.path.parents[2]

    @property
    def head(self) -> Chain:
        """Where the journal's chain ends; never waits for a write."""
        return self._journal.head

    @property
    def kept(self) -> bool:
        """Whether something that has happened is only in memory."""
        return bool(self._kept)

    @property
    def is_deleted(self) -> bool:
        """Whether its file was deleted: nothing will ever be recorded there."""
        return self._journal.is_deleted

    def append(self, entries: Sequence[Entry], payloads: Iterable[Payload] = ()) -> list[Digest]:
        """Record what is about to happen; durable before this returns.

        What was kept in memory goes ahead of it.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If it is not recorded, so must not be done.
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
        """Record what has already happened.

        If there is no room, the reserve is freed for it. If it still cannot be written, it is kept
        in memory, and `retry` or the next call of any kind writes it in its order.

        Returns
        -------
        list of Digest
            The lines' hashes.

        Raises
        ------
        HistoryUnavailable
            If it is in memory only.
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
        """Write what is kept in memory, and return whether nothing is left there."""
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
        """Record the session's end, as `append_final` does, and let go of its files.

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
        """Let go of the files without an end; the next server writes one."""
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
