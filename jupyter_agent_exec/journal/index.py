"""The index over all journals: a cache in SQLite that is made again whenever it is not there.

One named thread has the only connection. It is told that a journal has grown, which costs a few
microseconds, and takes in the new lines soon after, or before it answers the next question: so
readers see what was told before they asked. Being a cache, it is never synced to disk.

When it starts, and when its file is missing, damaged or of another version, it reads the journals
whose size is not what was indexed. Until that is done questions wait, within bounds.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from ..errors import HistoryUnavailable
from ..types import SessionId
from . import tables

T = TypeVar("T")
_Asked = tuple[Callable[[sqlite3.Connection], Any], Future[Any]]

BATCH_DELAY: Final = 0.25
"""Seconds for which new lines are collected when nobody asks."""
ANSWER_TIMEOUT: Final = 10.0
"""Seconds a question waits, for a rebuild above all."""
_BATCH_SESSIONS: Final = 16
_RETRY_DELAY: Final = 30.0
_FAILURE_DELAY: Final = 0.5


class Index:
    """The index of the history in `folder`. Thread-safe.

    Parameters
    ----------
    folder
        The history's. If it cannot be written, the index is kept in memory.
    log
        Told when the index has to be made again.
    """

    def __init__(self, folder: Path, log: logging.Logger) -> None:
        self._folder = folder
        self._path = folder / "index.sqlite"
        self._log = log
        self._condition = threading.Condition()
        self._grown: dict[SessionId, None] = {}
        self._asked: deque[_Asked] = deque()
        self._stopping = False
        self._ready = threading.Event()
        self._in_memory = False
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._run, name="agent-exec-index", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether all journals are indexed, but for what was told in this moment."""
        return self._ready.is_set()

    def start(self) -> None:
        """Start the thread; it opens the index and brings it up to date."""
        self._thread.start()

    def stop(self) -> None:
        """Take in what was told, and end the thread. Idempotent."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join()

    def grown(self, session_id: SessionId) -> None:
        """Tell that a session's journal has new lines."""
        with self._condition:
            if not self._grown:
                self._condition.notify()
            self._grown[session_id] = None

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `question` makes of the connection, in the index's thread. Blocks.

        Raises
        ------
        HistoryUnavailable
            If the index is still being made after `ANSWER_TIMEOUT`, or it is stopped.
        """
        if not self._ready.wait(ANSWER_TIMEOUT):
            raise HistoryUnavailable("The history is still being indexed; ask again in a moment.")
        future: Future[T] = Future()
        with self._condition:
            if self._stopping:
                raise HistoryUnavailable("The server is stopping; its history cannot be asked.")
            self._asked.append((question, future))
            self._condition.notify()
        try:
            return future.result(ANSWER_TIMEOUT)
        except (FutureTimeout, CancelledError):
            raise HistoryUnavailable("The index of the history is busy; ask again.") from None
        except sqlite3.Error as error:
            raise HistoryUnavailable(
                f"The index of the history failed ({error}) and is being made again; ask again."
            ) from error

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        connection = self._open()
        stopping = False
        while not stopping:
            with self._condition:
                self._condition.wait_for(lambda: self._grown or self._asked or self._stopping)
                if self._ready.is_set():
                    self._condition.wait_for(lambda: self._asked or self._stopping, BATCH_DELAY)
            connection = self._usable(connection)
            with self._condition:  # who asks must see what was told before
                grown, self._grown = self._grown, {}
                asked, self._asked = self._asked, deque()
                stopping = self._stopping
            try:
                self._take_in(connection, grown)
                self._answer(connection, asked)
            except sqlite3.Error as error:
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error)
                connection = self._recover(connection, error)
        connection.close()
        self._ready.set()
        for _, future in self._asked:
            future.cancel()

    def _take_in(
        self, connection: sqlite3.Connection, grown: Mapping[SessionId, int | None]
    ) -> None:
        """Index what has grown, in transactions small enough for others to get a turn."""
        left = dict(grown)
        while left:
            if self._stopping and not self._ready.is_set():
                return  # the rest of a rebuild waits for the next start
            batch = list(islice(left, _BATCH_SESSIONS))
            connection.execute("BEGIN IMMEDIATE")
            until = {s: self._chunk(connection, s, left[s]) for s in batch}
            connection.execute("COMMIT")
            for session, rest in until.items():
                del left[session]
                if rest is not None:
                    left[session] = rest
        self._ready.set()

    def _chunk(
        self, connection: sqlite3.Connection, session_id: SessionId, until: int | None
    ) -> int | None:
        folder = self._folder / "sessions" / session_id
        try:
            return tables.take_in(connection, folder, session_id, until)
        except sqlite3.Error:
            raise
        except Exception:
            self._log.exception("The journal of %s cannot be indexed", session_id)
            return None

    def _answer(self, connection: sqlite3.Connection, asked: Iterable[_Asked]) -> None:
        for question, future in asked:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(question(connection))
            except sqlite3.Error:
                raise
            except Exception as error:
                future.set_exception(error)

    def _open(self) -> sqlite3.Connection:
        """Open the index, made anew if need be, and note which journals are to be read."""
        try:
            connection = self._open_file()
        except (OSError, sqlite3.Error) as error:
            self._log.warning("The index of the history cannot be used: %s", error)
            return self._open_in_memory()
        self._in_memory = False
        return connection

    def _open_in_memory(self) -> sqlite3.Connection:
        self._in_memory = True
        self._retry_at = time.monotonic() + _RETRY_DELAY
        return self._connect(None)

    def _open_file(self) -> sqlite3.Connection:
        try:
            return self._connect(self._path)
        except sqlite3.OperationalError:
            raise  # it cannot be written, or not be locked
        except sqlite3.DatabaseError as error:
            self._log.warning("The index of the history is made again: %s", error)
        for name in ("index.sqlite", "index.sqlite-journal"):
            (self._folder / name).unlink(missing_ok=True)
        return self._connect(self._path)

    def _connect(self, path: Path | None) -> sqlite3.Connection:
        connection = tables.connect(path)
        try:
            self._note_changed(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _note_changed(self, connection: sqlite3.Connection) -> None:
        """Note the sessions whose journals are not of the size that was indexed."""
        known = tables.indexed_sizes(connection)
        changed: list[SessionId] = []
        try:
            with os.scandir(self._folder / "sessions") as entries:
                for entry in entries:
                    session_id = SessionId(entry.name)
                    if known.pop(session_id, 0) != _size(entry.path):
                        changed.append(session_id)
        except OSError:
            known.clear()  # nothing to be read now; what is indexed stays
        with connection:
            for gone in known:
                tables.forget(connection, gone)
        with self._condition:
            self._grown.update(dict.fromkeys(sorted(changed, reverse=True)))
            if not self._grown:
                self._ready.set()

    def _usable(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return the connection, or a new one if the file is gone or can be used again."""
        if not self._in_memory:
            if self._path.exists() or not self._folder.exists():
                return connection
            connection.close()
            self._ready.clear()
            return self._open()
        if not self._grown or time.monotonic() < self._retry_at:
            return connection
        was_ready = self._ready.is_set()
        self._ready.clear()
        try:
            on_disk = self._open_file()
        except (OSError, sqlite3.Error):
            self._retry_at = time.monotonic() + _RETRY_DELAY
            if was_ready:
                self._ready.set()
            return connection
        connection.close()
        self._in_memory = False
        return on_disk

    def _recover(self, connection: sqlite3.Connection, error: sqlite3.Error) -> sqlite3.Connection:
        """Return a new connection after one that failed.

        A damaged file is made again; one that cannot be written or locked is left alone, and the
        index is kept in memory meanwhile.
        """
        self._log.warning("The index of the history failed: %s", error)
        self._ready.clear()
        connection.close()
        if not isinstance(error, sqlite3.OperationalError):
            self._path.unlink(missing_ok=True)
            return self._open()
        with self._condition:  # never round and round
            self._condition.wait_for(lambda: self._stopping, _FAILURE_DELAY)
        return self._open_in_memory()


def _size(session: str) -> int:
    try:
        return os.stat(f"{session}/journal.jsonl").st_size
    except OSError:
        return 0
