"""The tables of the index, and how a journal's lines are written to them.

Everything in them can be rebuilt from the journals. Each execution is one row. Its number comes
from the time in its id, so both the table and the full-text index are in the order of time.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ..models import LARGEST, Session
from ..records import Accepted, ExecutionRecord
from ..text.model_text import transcript
from ..types import FINAL_STATUSES, IMAGE_TYPES, Digest, ExecutionId, SessionId
from .blobs import BlobStore
from .fold import event_of, execution_record, session_after
from .lines import Line, Range, lines_and_ends, lines_at
from .outputs import ReadBlob, pictures_of, read_outputs

SCHEMA_VERSION: Final = 12
CHUNK_BYTES: Final = 1 << 18
"""Approximate size of the part of a journal that is indexed at once."""
_TEXT_CHARACTERS: Final = 20_000
_BASE32: Final = {c: n for n, c in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}

parse_ranges: Final = msgspec.json.Decoder(list[Range]).decode
"""Returns the ranges in an execution's row."""
_NOT_RUN: Final = ("cancelled", "rejected")

_TABLES: Final = frozenset({"sessions", "executions", "blobs", "texts", "images", "events"})
_OF_EXECUTIONS: Final = (("executions", "number"), ("texts", "rowid"), ("images", "number"))
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, agent TEXT, target TEXT, status TEXT, opened_at TEXT,
    token TEXT, last_seq INTEGER NOT NULL,
    size INTEGER NOT NULL, record BLOB, proposed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_proposing ON sessions (id) WHERE proposed > 0;
CREATE INDEX sessions_by_status ON sessions (status, id);
CREATE INDEX sessions_of_token ON sessions (token) WHERE token IS NOT NULL;
CREATE TABLE executions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL,
    seq INTEGER NOT NULL, execution_count INTEGER, status TEXT NOT NULL, agent TEXT NOT NULL,
    target TEXT NOT NULL,
    title TEXT, accepted_at TEXT NOT NULL, images INTEGER NOT NULL, source TEXT NOT NULL,
    review TEXT, unreviewed INTEGER NOT NULL,
    ranges TEXT NOT NULL, key TEXT);
CREATE INDEX executions_of_session ON executions (session_id, seq);
CREATE INDEX executions_of_agent ON executions (agent, number);
CREATE INDEX executions_by_status ON executions (status, number);
CREATE INDEX executions_by_key ON executions (session_id, key) WHERE key IS NOT NULL;
CREATE INDEX executions_with_images ON executions (number) WHERE images > 0;
CREATE INDEX executions_unreviewed ON executions (session_id, seq) WHERE unreviewed;
CREATE INDEX executions_asking ON executions (session_id) WHERE status = 'awaiting_approval';
CREATE TABLE images (
    number INTEGER, output INTEGER, image BLOB NOT NULL,
    PRIMARY KEY (number, output)) WITHOUT ROWID;
CREATE TABLE events (
    session_id TEXT, n INTEGER, event BLOB NOT NULL,
    PRIMARY KEY (session_id, n)) WITHOUT ROWID;
CREATE TABLE blobs (
    digest TEXT, session_id TEXT, mimetype TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (digest, session_id)) WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5 (source, output, purpose);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class _Rows(NamedTuple):
    """The rows of an execution."""

    number: int
    execution: tuple[str | int | None, ...]
    texts: tuple[int, str, str, str]
    images: list[tuple[int, int, bytes]]


def connect(path: Path | None) -> sqlite3.Connection:
    """Open the index and create its tables if it has none. None opens one in memory.

    Raises
    ------
    sqlite3.DatabaseError
        If it is damaged, has another version, or cannot be opened or written.
    """
    if path is not None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path or ":memory:", timeout=10, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = OFF")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(_SCHEMA)
        elif version != SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"the index has version {version}")
        elif _TABLES - {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}:
            raise sqlite3.DatabaseError("the index lacks a table")
    except BaseException:
        connection.close()
        raise
    return connection


def indexed_sizes(connection: sqlite3.Connection) -> dict[SessionId, int]:
    """Return how many bytes of each session's journal are indexed."""
    return dict(connection.execute("SELECT id, size FROM sessions"))


def take_in(
    connection: sqlite3.Connection,
    folder: Path,
    session_id: SessionId,
    until: int | None = None,
    *,
    log: logging.Logger,
) -> int | None:
    """Index the next chunk of a journal; return where to continue, or None at the end.

    If the journal is shorter than its indexed part, it is indexed again from its start.

    Parameters
    ----------
    connection
        A connection in a transaction, which keeps other servers from writing.
    folder
        The session's folder.
    session_id
        The session.
    until
        The byte at which to stop; None means the current end of the journal.
    log
        Gets the error of an execution that cannot be indexed.
    """
    path = folder / "journal.jsonl"
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0
    start, session, last_seq = indexed(connection, session_id)
    if size < start:
        forget(connection, session_id)
        start, session, last_seq = 0, None, 0
    if until is not None:
        size = min(size, until)
    if size <= start:
        return None
    store = BlobStore(folder / "blobs")
    ranges: dict[ExecutionId, list[Line]] = {}
    end = start
    for line, end in lines_and_ends(path, start, size):
        if line is not None:
            session = session_after(session, line)
            if isinstance(line.entry, Accepted):
                last_seq = line.entry.seq
            for execution_id in line.entry.about:
                ranges.setdefault(execution_id, []).append(line)
            if session is not None:
                _put_event(connection, session, last_seq, line, store)
        if end - start >= CHUNK_BYTES:
            break
    else:
        size = end  # what follows is the beginning of a line that is being written
    if end == start:
        return None
    if session is not None:
        with path.open("rb") as file:
            _put_executions(connection, session, ranges, file.fileno(), store, log)
    _put_session(connection, session_id, session, last_seq, end)
    return size if end < size else None


def forget(connection: sqlite3.Connection, session_id: SessionId) -> None:
    """Remove a session from the index."""
    for table, column in (("texts", "rowid"), ("images", "number")):
        connection.execute(
            f"DELETE FROM {table} WHERE {column} IN"  # noqa: S608
            " (SELECT number FROM executions WHERE session_id = ?)",
            (session_id,),
        )
    for table, column in (
        ("executions", "session_id"),
        ("events", "session_id"),
        ("blobs", "session_id"),
        ("sessions", "id"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))  # noqa: S608


def merge_texts(connection: sqlite3.Connection) -> None:
    """Leave nothing of removed rows in the full-text index."""
    connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")


def vacuum(connection: sqlite3.Connection) -> None:
    """Leave nothing of what was removed in the file."""
    connection.execute("VACUUM")


def indexed(
    connection: sqlite3.Connection, session_id: SessionId
) -> tuple[int, Session | None, int]:
    """Return how many bytes of a session's journal are indexed, the session, and its last `seq`."""
    row = connection.execute(
        "SELECT size, record, last_seq FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        return 0, None, 0
    size, record, last_seq = row
    session = None if record is None else msgspec.json.decode(record, type=Session)
    return size, session, last_seq


def _put_session(
    connection: sqlite3.Connection,
    session_id: SessionId,
    session: Session | None,
    last_seq: int,
    size: int,
) -> None:
    columns: tuple[str | bytes | int | None, ...]
    columns = (None, None, None, None, None, 0, None, 0)
    if session is not None:
        columns = (
            session.agent.name, target_kind(session), session.status, session.opened_at,
            None if session.token is None else session.token.id, last_seq,
            msgspec.json.encode(session), session.proposed,
        )  # fmt: skip
    connection.execute(
        "INSERT OR REPLACE INTO sessions (id, agent, target, status, opened_at, token, last_seq,"
        " record, proposed, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, *columns, size),
    )


def _put_event(
    connection: sqlite3.Connection, session: Session, last_seq: int, line: Line, store: BlobStore
) -> None:
    event = event_of(line, last_seq, store)
    if event is not None:
        event = replace(event, text=event.text and _plain(event.text))
        connection.execute(
            "INSERT OR REPLACE INTO events VALUES (?, ?, ?)",
            (session.id, event.n, msgspec.json.encode(event)),
        )


def _put_executions(
    connection: sqlite3.Connection,
    session: Session,
    new: Mapping[ExecutionId, Sequence[Line]],
    journal_fd: int,
    store: BlobStore,
    log: logging.Logger,
) -> None:
    """Write the rows of executions with these new lines, in few statements.

    At each statement this thread waits for the others, which hold the interpreter meanwhile. An
    execution that cannot be indexed is left as it was, so that those that follow are listed.
    """
    earlier: dict[ExecutionId, tuple[int, str]] = {
        id: (number, ranges)
        for id, number, ranges in connection.execute(
            "SELECT id, number, ranges FROM executions"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (_as_json(list(new)),),
        )
    }
    numbers = _free_numbers(connection, [id for id in new if id not in earlier])
    rows: list[_Rows] = []
    for execution_id, lines in new.items():
        number, ranges = earlier.get(execution_id) or (numbers[execution_id], "[]")
        all_lines = [*lines_at(journal_fd, parse_ranges(ranges)), *lines]
        try:
            made = _rows(session, execution_id, number, all_lines, store)
        except Exception:
            log.exception("The execution %s cannot be indexed", execution_id)
            continue
        if made is not None:
            rows.append(made)
            _put_blobs(connection, session.id, lines)
    replaced = {number for number, _ in earlier.values()}
    for each in rows:
        if each.number in replaced:
            for table, column in _OF_EXECUTIONS:
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (each.number,))  # noqa: S608
    # No "OR REPLACE": it makes a savepoint, at which SQLite writes all new words of the full text.
    connection.executemany(
        "INSERT INTO executions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [each.execution for each in rows],
    )
    connection.executemany(
        "INSERT INTO texts (rowid, source, output, purpose) VALUES (?, ?, ?, ?)",
        [each.texts for each in rows],
    )
    images = [image for each in rows for image in each.images]
    if images:
        connection.executemany("INSERT INTO images VALUES (?, ?, ?)", images)


def _rows(
    session: Session,
    execution_id: ExecutionId,
    number: int,
    lines: Sequence[Line],
    store: BlobStore,
) -> _Rows | None:
    """Return what the index has of an execution with these lines; None if it has no record."""
    record = execution_record(session, lines, _searchable(store, lines))
    if record is None:
        return None
    accepted = next(line.entry for line in lines if isinstance(line.entry, Accepted))
    review = None if record.review is None else record.review.verdict or "comment"
    purpose = record.claim and record.claim.purpose
    source = _plain(record.source[:_TEXT_CHARACTERS])
    return _Rows(
        number,
        (
            number, execution_id, session.id, record.seq, _held(record.execution_count),
            record.status, record.agent.name, target_kind(session), session.title,
            record.accepted_at, _images(record), _plain(record.source[:500]), review,
            review is None and _has_run(record), _as_json([line.at for line in lines]),
            accepted.idempotency_key,
        ),
        (number, source, _output_text(record), _plain(purpose or "")),
        [
            (number, image.output, msgspec.json.encode(image))
            for image in (pictures_of(record.blobs, store) if record.blobs else ())
        ],
    )  # fmt: skip


def _held(count: int | None) -> int | None:
    """Return an execution count; None if it is one that the index cannot hold, as in 0.1."""
    return count if count is not None and abs(count) <= LARGEST else None


def _put_blobs(connection: sqlite3.Connection, session_id: SessionId, new: Sequence[Line]) -> None:
    rows: list[tuple[Digest, SessionId, str, int]] = []
    for line in new:
        rows += [(r.sha256, session_id, r.mimetype, r.bytes) for r in line.entry.stored]
    if rows:
        connection.executemany("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?)", rows)


def _searchable(store: BlobStore, all_lines: Sequence[Line]) -> ReadBlob:
    """Return a reader that returns the start of large texts, and nothing for images."""
    refs = {ref.sha256: ref for line in all_lines for ref in line.entry.stored}

    def read(digest: Digest) -> bytes | None:
        ref = refs.get(digest)
        limit = -1
        if ref is not None:
            if ref.encoding == "base64" or ref.mimetype in IMAGE_TYPES:
                return None
            if ref.encoding == "text":
                limit = 4 * _TEXT_CHARACTERS
        try:
            with store.path(digest).open("rb") as file:
                data = file.read(limit)
        except OSError:
            return None
        return data if limit < 0 else data.decode("utf-8", "ignore").encode("utf-8")

    return read


def _images(record: ExecutionRecord) -> int:
    """Return how many outputs show an image; an image in two formats counts once."""
    return len({ref.at[0] for ref in record.blobs if ref.at[-1] in IMAGE_TYPES})


def target_kind(session: Session) -> str:
    """Return the kind of a session's target."""
    return str(session.target.__struct_config__.tag)


def _has_run(record: ExecutionRecord) -> bool:
    return record.status in FINAL_STATUSES and record.status not in _NOT_RUN


def _output_text(record: ExecutionRecord) -> str:
    return _plain(transcript(read_outputs(record))[:_TEXT_CHARACTERS])


def _plain(text: str) -> str:
    """Return text that SQLite can store, without the characters that mark matches."""
    if text.isascii():
        return text.replace("\0", "")
    for mark in ("\u2068", "\u2069", "\0"):
        text = text.replace(mark, "")
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()


def _free_numbers(
    connection: sqlite3.Connection, ids: Sequence[ExecutionId]
) -> dict[ExecutionId, int]:
    """Return numbers for new rows: the ids' times, then three of their random characters."""
    free: dict[ExecutionId, int] = {}
    wanted = {id: _number(id) for id in ids}
    while wanted:
        found = connection.execute(
            "SELECT number FROM executions WHERE number IN (SELECT value FROM json_each(?))",
            (_as_json(list(wanted.values())),),
        )
        taken = {*free.values(), *(number for (number,) in found)}
        for id, number in wanted.items():
            if number not in taken:
                free[id] = number
                taken.add(number)
        wanted = {id: number + 1 for id, number in wanted.items() if id not in free}
    return free


def _number(execution_id: ExecutionId) -> int:
    ulid = execution_id.removeprefix("x_")
    number = 0
    for character in ulid[:10] + ulid[-3:]:
        number = number << 5 | _BASE32.get(character, 0)
    return number & ((1 << 63) - 1)
