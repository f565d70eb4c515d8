"""The index over all journals: a cache in SQLite that is rebuilt whenever it is missing.

One named thread owns the only connection. Writers report that a journal has grown, which takes a
few microseconds. The thread indexes the new lines soon after, and always before it answers the next
query. So readers see everything that was written before, also by other servers on the same history,
whose open sessions are in their ledgers. The cache is never synced to disk.

When the index starts, and when its file is missing, damaged or of another version, the thread reads
the journals whose size has changed. Meanwhile queries wait, up to a limit.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import HistoryUnavailable
from ..models import Progress
from ..types import SessionId
from . import tables
from .ledger import OtherServers

T = TypeVar("T")

BATCH_DELAY: Final = 0.25
"""Seconds for which new lines are collected while there is no query."""
ANSWER_TIMEOUT: Final = 10.0
"""Seconds that a query waits, mostly for a rebuild."""
LATE_TIMEOUT: Final = 1.0
"""Seconds that a query waits for a rebuild that takes longer than that: it holds a thread."""
_BATCH_SESSIONS: Final = 32
_RETRY_DELAY: Final = 30.0
_FAILURE_DELAY: Final = 0.5


class _Question(NamedTuple):
    """A query for the index's thread."""

    answer: Callable[[sqlite3.Connection], Any]
    future: Future[Any]

    def begins(self) -> bool:
        """Begin to answer; False if that was done before, or nobody waits any more."""
        if self.future.running() or self.future.done():
            return False
        return self.future.set_running_or_notify_cancel()


class Index:
    """The index of the history in `folder`. Thread-safe.

    Parameters
    ----------
    folder
        The history's. If it cannot be written, the index is kept in memory.
    log
        Gets a warning when the index has to be rebuilt.
    """

    def __init__(self, folder: Path, log: logging.Logger) -> None:
        self._folder = folder
        self._path = folder / "index.sqlite"
        self._log = log
        self._condition = threading.Condition()
        self._grown: dict[SessionId, None] = {}
        self._questions: deque[_Question] = deque()
        self._others = OtherServers(folder)
        self.own_ledger: Path | None = None
        """This server's ledger. This server reports its own lines with `grown`."""
        self._stopping = False
        self._ready = threading.Event()
        self._waiting: list[Future[None]] = []  # for the index to be ready
        self._in_memory = False
        self._retry_at = 0.0
        self._rebuilt_since = time.monotonic()
        self.progress: Progress | None = None
        """How far a rebuild is; None if the index is complete."""
        self._thread = threading.Thread(target=self._run, name="agent-exec-index", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether all journals are indexed, except for lines that were just written."""
        return self._ready.is_set()

    def until_ready(self) -> Future[None]:
        """Return a future that is done when all journals are indexed, or the index is stopped."""
        future: Future[None] = Future()
        with self._condition:
            if self._ready.is_set():
                future.set_result(None)
            else:
                self._waiting.append(future)
        return future

    def start(self) -> None:
        """Start the thread; it opens the index and brings it up to date."""
        self._rebuilt_since = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Index the lines that were reported, and end the thread. Idempotent.

        Before the index is ready, they are left to the next start.
        """
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join()

    def grown(self, session_id: SessionId) -> None:
        """Report that a session's journal has new lines."""
        with self._condition:
            if not self._grown:
                self._condition.notify()
            self._grown[session_id] = None

    def ask(
        self,
        question: Callable[[sqlite3.Connection], T],
        *,
        timeout: float | None = ANSWER_TIMEOUT,
    ) -> T:
        """Run `question`, a query, in the index's thread and return its result. Blocks.

        Parameters
        ----------
        question
            Reads from the connection.
        timeout
            Seconds that the answer may take.

        Raises
        ------
        HistoryUnavailable
            If the rebuild takes longer than `ANSWER_TIMEOUT`, or the index is stopped.
        """
        rebuilding = time.monotonic() - self._rebuilt_since
        if not self._ready.wait(max(LATE_TIMEOUT, ANSWER_TIMEOUT - rebuilding)):
            raise HistoryUnavailable("The history is still being indexed; ask again in a moment.")
        future: Future[T] = Future()
        with self._condition:
            if self._stopping:
                raise HistoryUnavailable("The server is stopping; its history cannot be asked.")
            self._questions.append(_Question(question, future))
            self._condition.notify()
        try:
            return future.result(timeout)
        except (TimeoutError, CancelledError):
            future.cancel()  # unless it is running, it need not run any more
            raise HistoryUnavailable("The index of the history is busy; ask again.") from None
        except sqlite3.Error as error:
            raise HistoryUnavailable(
                f"The index of the history failed ({error}) and is being made again; ask again."
            ) from error

    def purge(self, sessions: Collection[SessionId]) -> None:
        """Index sessions anew, and leave nothing of what was indexed before in the file. Blocks.

        Raises
        ------
        HistoryUnavailable
            As for `ask`; the answer may take as long as it needs.
        """
        left = list(sessions)
        while left:  # in parts, between which others are answered
            self.ask(partial(self._index_anew, left[:_BATCH_SESSIONS]), timeout=None)
            del left[:_BATCH_SESSIONS]
        self.ask(tables.merge_texts, timeout=None)
        self.ask(tables.vacuum, timeout=None)

    # -- in the thread -----------------------------------------------------------------------------

    def _index_anew(self, sessions: Collection[SessionId], connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for session_id in sessions:
            tables.forget(connection, session_id)
        connection.execute("COMMIT")
        self._index_sessions(connection, dict.fromkeys(sessions))

    def _set_ready(self) -> None:
        self.progress = None
        with self._condition:
            self._ready.set()
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def _run(self) -> None:
        connection = self._open()
        stopping = False
        while not stopping:
            with self._condition:
                self._condition.wait_for(lambda: self._grown or self._questions or self._stopping)
                if self._ready.is_set():
                    self._condition.wait_for(lambda: self._questions or self._stopping, BATCH_DELAY)
            connection = self._usable(connection)
            with self._condition:  # a query must see everything that was written before it
                grown, self._grown = self._grown, {}
                questions, self._questions = list(self._questions), deque()
                stopping = self._stopping
            if questions:
                grown |= dict.fromkeys(self._grown_elsewhere())
            try:
                if not self._index_sessions(connection, grown):
                    break
                self._answer(connection, questions)
            except sqlite3.Error as error:
                for question in questions:
                    if question.begins() or question.future.running():
                        question.future.set_exception(error)
                connection = self._recover(connection, error)
        connection.close()
        self._set_ready()
        for question in (*questions, *self._questions):
            question.future.cancel()

    def _grown_elsewhere(self) -> Iterable[SessionId]:
        """Return the sessions that other servers on this history may have written."""
        try:
            return self._others.grown(self.own_ledger)
        except OSError as error:
            self._log.warning("What other servers recorded cannot be read now: %s", error)
            return ()

    def _index_sessions(
        self, connection: sqlite3.Connection, grown: Mapping[SessionId, None]
    ) -> bool:
        """Index new lines, in small transactions, so that other servers get a turn.

        Return False if the index is stopped during a rebuild, which the next start finishes.
        """
        left: dict[SessionId, int | None] = dict(grown)
        while left:
            if not self._ready.is_set():
                if self._stopping:
                    return False
                self.progress = Progress(done=len(grown) - len(left), total=len(grown))
            batch = {session: left[session] for session in islice(left, _BATCH_SESSIONS)}
            for session, rest in self._index_chunks(connection, batch).items():
                if rest is None:
                    del left[session]
                else:
                    left[session] = rest
        self._set_ready()
        return True

    def _index_chunks(
        self, connection: sqlite3.Connection, ends: Mapping[SessionId, int | None]
    ) -> dict[SessionId, int | None]:
        """Index the next chunk of each session; return where to stop later, None if it is done."""
        if not ends:
            return {}
        connection.execute("BEGIN IMMEDIATE")
        # The oldest first: the full-text index writes its buffer whenever a number is lower.
        rest = {each: self._chunk(connection, each, ends[each]) for each in sorted(ends)}
        connection.execute("COMMIT")
        return rest

    def _chunk(
        self, connection: sqlite3.Connection, session_id: SessionId, until: int | None
    ) -> int | None:
        folder = self._folder / "sessions" / session_id
        try:
            return tables.take_in(connection, folder, session_id, until, log=self._log)
        except sqlite3.Error:
            raise
        except Exception:
            self._log.exception("The journal of %s cannot be indexed", session_id)
            return None

    def _answer(self, connection: sqlite3.Connection, questions: Iterable[_Question]) -> None:
        for question in questions:
            if not question.begins():
                continue
            try:
                question.future.set_result(question.answer(connection))
            except sqlite3.Error:
                raise
            except Exception as error:
                question.future.set_exception(error)

    def _open(self) -> sqlite3.Connection:
        """Open the index, make it again if needed, and list the journals to read."""
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
            raise  # it cannot be written or locked
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
        self._grown_elsewhere()  # from now on; the scan below finds earlier lines
        sizes = tables.indexed_sizes(connection)
        changed: list[SessionId] = []
        try:
            with os.scandir(self._folder / "sessions") as entries:
                for entry in entries:
                    session_id = SessionId(entry.name)
                    if sizes.pop(session_id, 0) != _size(entry.path):
                        changed.append(session_id)
        except OSError:
            sizes.clear()  # nothing can be read now; the indexed lines stay
        with connection:
            for gone in sizes:
                tables.forget(connection, gone)
        with self._condition:
            self._grown = {**dict.fromkeys(changed), **self._grown}
            if not self._grown:
                self._set_ready()

    def _begin_rebuild(self) -> None:
        self._rebuilt_since = time.monotonic()
        self._ready.clear()

    def _usable(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return the connection, or a new one if the file is gone or can be used again."""
        if not self._in_memory:
            if not self._is_deleted():
                return connection
            connection.close()
            self._begin_rebuild()
            return self._open()
        if not self._grown or time.monotonic() < self._retry_at:
            return connection
        was_ready = self._ready.is_set()
        self._begin_rebuild()
        try:
            on_disk = self._open_file()
        except (OSError, sqlite3.Error):
            self._retry_at = time.monotonic() + _RETRY_DELAY
            if was_ready:
                self._set_ready()
            return connection
        connection.close()
        self._in_memory = False
        return on_disk

    def _is_deleted(self) -> bool:
        """Return whether the file was deleted without the folder; False if nobody can tell now."""
        try:
            return not self._path.exists() and self._folder.exists()
        except OSError:
            return False

    def _recover(self, connection: sqlite3.Connection, error: sqlite3.Error) -> sqlite3.Connection:
        """Return a new connection after one that failed.

        A damaged file is made again. A file that cannot be written or locked is not changed, and
        the index is in memory meanwhile.
        """
        self._log.warning("The index of the history failed: %s", error)
        self._begin_rebuild()
        connection.close()
        if not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                self._path.unlink()
            return self._open()
        with self._condition:  # do not recover again and again
            self._condition.wait_for(lambda: self._stopping, _FAILURE_DELAY)
        return self._open_in_memory()


def _size(session: str) -> int:
    """Return a journal's size; 0 if there is none."""
    try:
        return os.stat(f"{session}/journal.jsonl").st_size
    except OSError:
        return 0
