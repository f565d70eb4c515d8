"""Reading the history: sessions, executions, payloads, search. All of it blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ..errors import BlobNotFound, ExecutionNotFound, HistoryUnavailable, SessionNotFound
from ..models import SearchHit, SearchResults, Session
from ..records import ExecutionRecord
from ..types import Digest, ExecutionId, SessionId, SessionStatus, Status
from . import query
from .blobs import BlobStore
from .fold import execution_record
from .ids import check_digest, check_execution_id, check_session_id
from .index import Index
from .notebook import journal_notebook
from .reading import Range, lines_at
from .tables import parse_ranges

Place = tuple[Session, list[Range]]


class HistoryReader:
    """What is recorded in a history's folder. Thread-safe.

    While the index is being made again, its questions wait up to ten seconds and then raise
    `HistoryUnavailable`; `notebook` and `journal_path` need no index.

    Parameters
    ----------
    folder
        The history's.
    index
        Over the same folder.
    """

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self._index = index

    @property
    def ready(self) -> bool:
        """Whether the index is complete."""
        return self._index.ready

    def session(self, session_id: str) -> Session:
        """Return a session.

        Raises
        ------
        SessionNotFound
            If there is none with this id.
        """
        checked = check_session_id(session_id)
        return self._index.ask(lambda connection: _session(connection, checked))

    def sessions(
        self,
        *,
        status: SessionStatus | None = None,
        agent: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Session], SessionId | None]:
        """Return sessions, the newest first, and where to go on, or None at the end.

        Parameters
        ----------
        status, agent
            Only sessions with these.
        after
            The id with which the page before ended.
        limit
            The most to return.

        Raises
        ------
        InvalidRequest
            If the limit is out of bounds.
        SessionNotFound
            If `after` cannot be the id of a session.
        """
        query.check_limit(limit)
        where, values = ["record IS NOT NULL"], []
        for condition, value in (
            ("status = ?", status),
            ("agent = ?", agent),
            ("id < ?", None if after is None else check_session_id(after)),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        sql = f"SELECT record FROM sessions WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"  # noqa: S608
        rows = self._index.ask(
            lambda connection: connection.execute(sql, (*values, limit + 1)).fetchall()
        )
        records = [msgspec.json.decode(row[0], type=Session) for row in rows[:limit]]
        return records, records[-1].id if len(rows) > limit else None

    def execution(self, execution_id: str) -> ExecutionRecord:
        """Return an execution.

        Raises
        ------
        ExecutionNotFound
            If there is none with this id.
        """
        checked = check_execution_id(execution_id)

        def find(connection: sqlite3.Connection) -> Place:
            row = connection.execute(
                "SELECT session_id, ranges FROM executions WHERE id = ?", (checked,)
            ).fetchone()
            if row is None:
                raise ExecutionNotFound("There is no such execution.", execution_id=checked)
            return _session(connection, row[0]), parse_ranges(row[1])

        session, ranges = self._index.ask(find)
        records = self._records(session, [ranges])
        if not records:
            raise ExecutionNotFound("There is no such execution.", execution_id=checked)
        return records[0]

    def executions(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where to go on, or None at the end.

        Parameters
        ----------
        session_id
            The session.
        after
            The first ones that follow this `seq`.
        before
            The last ones before this `seq`; `after` is then not looked at.
        limit
            The most to return.

        Raises
        ------
        SessionNotFound
            If there is none with this id.
        InvalidRequest
            If the limit is out of bounds.
        """
        checked = check_session_id(session_id)
        query.check_limit(limit)
        condition, order, seq = ("seq > ?", "ASC", after or 0)
        if before is not None:
            condition, order, seq = ("seq < ?", "DESC", before)
        sql = (
            f"SELECT ranges FROM executions WHERE session_id = ? AND {condition}"  # noqa: S608
            f" ORDER BY seq {order} LIMIT ?"
        )

        def find(connection: sqlite3.Connection) -> tuple[Session, list[str], int]:
            session = _session(connection, checked)
            rows = connection.execute(sql, (checked, seq, limit)).fetchall()
            (last,) = connection.execute(
                "SELECT max(seq) FROM executions WHERE session_id = ?", (checked,)
            ).fetchone()
            return session, [row[0] for row in rows], last or 0

        session, found, last = self._index.ask(find)
        records = self._records(session, [parse_ranges(ranges) for ranges in found])
        records.sort(key=lambda record: record.seq)
        return records, records[-1].seq if records and records[-1].seq < last else None

    def find_by_key(self, session_id: str, key: str) -> tuple[ExecutionId, Digest] | None:
        """Return the execution asked for with an idempotency key, and its body's digest."""
        checked = check_session_id(session_id)
        row: tuple[ExecutionId, Digest] | None = self._index.ask(
            lambda connection: connection.execute(
                "SELECT id, body_sha256 FROM executions WHERE session_id = ? AND key = ?",
                (checked, key),
            ).fetchone()
        )
        return row

    def search(
        self,
        q: str | None = None,
        *,
        agent: str | None = None,
        status: Status | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        has_image: bool | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> SearchResults:
        """Find executions, the newest first.

        Parameters
        ----------
        q
            Words that must all be in the source, the text output or the error; the last may be the
            start of one; double quotes hold a phrase together. None or blank: filters only.
        agent, status, session_id, has_image
            Only executions with these.
        since, until
            Bounds on the time at which they were accepted, both included: a date or a time.
        after
            The id with which the page before ended.
        limit
            The most to return.

        Raises
        ------
        InvalidRequest
            If a value is none that could be; `field` says which.
        SessionNotFound, ExecutionNotFound
            If `session_id` or `after` is none.
        """
        query.check_limit(limit)
        filters = query.filters(
            agent=agent,
            status=status,
            session_id=None if session_id is None else check_session_id(session_id),
            since=since,
            until=until,
            has_image=has_image,
        )
        match = query.match_expression(q) if q is not None and q.strip() else None
        before = None if after is None else check_execution_id(after)

        def find(connection: sqlite3.Connection) -> list[SearchHit]:
            return query.find(connection, match, filters, before, limit + 1)

        hits = self._index.ask(find)
        more = len(hits) > limit
        return SearchResults(
            hits=hits[:limit], next_after=hits[limit - 1].execution_id if more else None
        )

    def blob(self, digest: str) -> tuple[Path, str, int]:
        """Return a large payload's file, its MIME type and its size.

        Raises
        ------
        BlobNotFound
            If there is none, or it is gone.
        """
        checked = check_digest(digest)
        rows = self._index.ask(
            lambda connection: connection.execute(
                "SELECT session_id, mimetype, bytes FROM blobs WHERE digest = ?", (checked,)
            ).fetchall()
        )
        for session_id, mimetype, size in rows:
            path = self._blobs(session_id).path(checked)
            if path.is_file():
                return path, mimetype, size
        raise BlobNotFound("There is no such payload.", digest=checked)

    def journal_path(self, session_id: str) -> Path:
        """Return where a session's journal is.

        Raises
        ------
        SessionNotFound
            If there is none with this id.
        """
        path = self._session_folder(check_session_id(session_id)) / "journal.jsonl"
        if not path.is_file():
            raise SessionNotFound("There is no such session.", session_id=session_id)
        return path

    def notebook(self, session_id: str) -> Iterator[str]:
        """Yield the text of a session's notebook, cell by cell, as it is now.

        Raises
        ------
        SessionNotFound
            If there is none with this id.
        """
        path = self.journal_path(session_id)
        return journal_notebook(path, self._blobs(SessionId(session_id)))

    def _records(
        self, session: Session, places: Sequence[Sequence[Range]]
    ) -> list[ExecutionRecord]:
        store = self._blobs(session.id)
        try:
            with (store.folder.parent / "journal.jsonl").open("rb") as file:
                records = [
                    execution_record(session, lines_at(file.fileno(), ranges), store.find)
                    for ranges in places
                ]
        except OSError as error:
            raise HistoryUnavailable(
                f"The journal of this session cannot be read ({error.strerror or error}).",
                session_id=session.id,
            ) from error
        return [record for record in records if record is not None]

    def _session_folder(self, session_id: SessionId) -> Path:
        return self.folder / "sessions" / session_id

    def _blobs(self, session_id: SessionId) -> BlobStore:
        return BlobStore(self._session_folder(session_id) / "blobs")


def _session(connection: sqlite3.Connection, session_id: SessionId) -> Session:
    row = connection.execute("SELECT record FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None or row[0] is None:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return msgspec.json.decode(row[0], type=Session)
