"""Search and list the index page by page, with SQL.

The words of a search are plain words. The only syntax is double quotes, which hold a phrase
together. All of the words must be found; the last one may be the start of a word.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from ..errors import ExecutionNotFound, InvalidRequest, SessionNotFound
from ..models import (
    EventsQuery,
    ExecutionReference,
    ExecutionsQuery,
    JournalEvent,
    SearchHit,
    SearchQuery,
    Session,
    SessionsQuery,
)
from ..records import KeptImage
from ..types import ExecutionId, SessionId, SessionStatus, TokenId
from .ids import check_execution_id, check_session_id, is_execution_id
from .lines import Range
from .tables import indexed, parse_ranges

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_REFERENCE: Final = "e.id AS execution_id, e.session_id, e.seq, e.agent, e.title, e.accepted_at"
_SNIPPET: Final = "snippet(texts, -1, '\u2068', '\u2069', '…', 24)"
_TERM: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')
_INDEX: Final = re.compile("[0-9]{1,9}")
_decode_image: Final = msgspec.json.Decoder(KeptImage).decode
_decode_event: Final = msgspec.json.Decoder(JournalEvent).decode


class ExecutionImage(ExecutionReference, frozen=True, kw_only=True):
    """An image, and its execution."""

    image: KeptImage


class Filters(NamedTuple):
    """Conditions on executions, as SQL."""

    where: list[str]
    values: list[str | int | None]

    def add(self, condition: str, *values: str | int | None) -> None:
        """Add a condition, with the values of its parameters."""
        self.where.append(condition)
        self.values.extend(values)


def match_expression(q: str) -> str:
    """Return the FTS5 expression for the text that a user typed.

    Raises
    ------
    InvalidRequest
        If the text has nothing to search for.
    """
    terms: list[str] = []
    for match in _TERM.finditer(q.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")):
        phrase, word = match.groups()
        text = phrase if word is None else word
        if any(character.isalnum() for character in text):
            open_ended = word is not None and match.end() == len(q)
            terms.append(f'"{text}"' + ("*" if open_ended else ""))
    if not terms:
        raise InvalidRequest("The search holds no word or number to look for.", field="q")
    return " AND ".join(terms)


def _where(columns: Mapping[str, str | None]) -> Filters:
    """Return the condition that columns have these values; None matches all."""
    wanted = Filters([], [])
    for column, value in columns.items():
        if value is not None:
            wanted.add(f"{column} = ?", value.encode("utf-8", "replace").decode("utf-8"))
    return wanted


def conditions(query: SearchQuery, token: TokenId | None) -> Filters:
    """Return the conditions on rows of `executions`, named `e`, except for the search words.

    Raises
    ------
    InvalidRequest
        If a value is not valid.
    SessionNotFound
        If the session's id is not a valid id.
    """
    if query.session_id is not None:
        check_session_id(query.session_id)
    columns = ("agent", "target", "status", "session_id")
    wanted = _where({f"e.{column}": getattr(query, column) for column in columns})
    if token is not None:
        wanted.add("e.session_id IN (SELECT id FROM sessions WHERE token = ?)", token)
    if query.has_image is not None:
        wanted.add("e.images > 0" if query.has_image else "e.images = 0")
    if query.review == "none":
        wanted.add("e.unreviewed")
    elif query.review is not None:
        wanted.add("e.review = ?", query.review)
    bounds(wanted, "e.accepted_at", query.since, query.until)
    return wanted


def moment(text: str, field: str) -> tuple[str, str]:
    """Return the first and the last moment of `text`, in the format that entries use for times."""
    try:
        if _DATE.fullmatch(text):
            start = datetime.combine(date.fromisoformat(text), time(), UTC)
            return _stamp(start), _stamp(start + timedelta(days=1, milliseconds=-1))
        parsed = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))
        stamp = _stamp(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{field} is a date (2026-11-21) or a time (2026-11-21T09:00:00Z).", field=field
        ) from None
    return stamp, stamp


def _stamp(moment: datetime) -> str:
    utc = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return utc.replace("+00:00", "Z")


def bounds(wanted: Filters, column: str, since: str | None, until: str | None) -> None:
    """Add the condition that a time lies within bounds, both included.

    Raises
    ------
    InvalidRequest
        If a bound is neither a date nor a time.
    """
    if since is not None:
        wanted.add(f"{column} >= ?", moment(since, "since")[0])
    if until is not None:
        wanted.add(f"{column} <= ?", moment(until, "until")[1])


def find(
    connection: sqlite3.Connection, query: SearchQuery, token: TokenId | None
) -> list[SearchHit]:
    """Return the newest executions that match, one more than the page holds if there are more.

    Parameters
    ----------
    connection
        The connection to the index.
    token
        Find only executions of sessions that were opened with this agent token.

    Raises
    ------
    InvalidRequest, SessionNotFound, ExecutionNotFound
        If a value is not valid.
    """
    origin, order, wanted = _origin(query, token)
    snippet = "''" if _words(query) is None else _SNIPPET
    if query.after is not None:
        before = "(SELECT number FROM executions WHERE id = ?)"
        wanted.add(f"e.number < coalesce({before}, 0)", check_execution_id(query.after))
    sql = (
        f"SELECT {_REFERENCE}, e.execution_count, e.status, e.images, e.source,"  # noqa: S608
        f" {snippet} AS snippet FROM {origin} WHERE {' AND '.join(wanted.where) or '1'}"
        f" ORDER BY {order} DESC LIMIT ?"
    )
    rows = connection.execute(sql, (*wanted.values, query.limit + 1))
    return [SearchHit(**row) for row in _named(rows)]


def find_images(
    connection: sqlite3.Connection, query: SearchQuery, token: TokenId | None
) -> list[ExecutionImage]:
    """Return images: those of one session in order, otherwise the newest first.

    Parameters and errors as for `find`.
    """
    origin, order, wanted = _origin(query, token)
    wanted.add("e.images > 0")
    column, name, direction, beyond = order, "number", "DESC", "<"
    if query.session_id is not None:
        column, name, direction, beyond = "e.seq", "seq", "ASC", ">"
    if query.after is not None:
        execution_id, output = image_place(query.after)
        start = f"(SELECT {name} FROM executions WHERE id = ?)"  # noqa: S608
        condition = f"({column} {beyond} {start} OR {column} = {start} AND i.output > ?)"
        wanted.add(condition, execution_id, execution_id, output)
    sql = (
        f"SELECT {_REFERENCE}, i.image FROM {origin}"  # noqa: S608
        " CROSS JOIN images i ON i.number = e.number"
        f" WHERE {' AND '.join(wanted.where)} ORDER BY {column} {direction}, i.output LIMIT ?"
    )
    rows = connection.execute(sql, (*wanted.values, query.limit + 1))
    return [ExecutionImage(**{**row, "image": _decode_image(row["image"])}) for row in _named(rows)]


def _named(rows: sqlite3.Cursor) -> Iterator[dict[str, Any]]:
    """Return rows with the names of their columns."""
    names = [column[0] for column in rows.description]
    return (dict(zip(names, row, strict=True)) for row in rows)


def place_of_image(pictured: ExecutionImage) -> str:
    """Return the place where a page that ends with this image ends."""
    return f"{pictured.execution_id}:{pictured.image.output}"


def image_place(text: str) -> tuple[ExecutionId, int]:
    """Parse the text that `place_of_image` made.

    Raises
    ------
    InvalidRequest
        If it is not such a text.
    """
    id, _, output = text.partition(":")
    if not is_execution_id(id) or not _INDEX.fullmatch(output):
        raise InvalidRequest("after: no page of images ended there.", field="after")
    return ExecutionId(id), int(output)


def _words(query: SearchQuery) -> str | None:
    """Return the words to search for; None if there are none."""
    return query.q if query.q is not None and query.q.strip() else None


def _origin(query: SearchQuery, token: TokenId | None) -> tuple[str, str, Filters]:
    """Return the tables to search, the column that orders rows by time, and the conditions."""
    wanted, words = conditions(query, token), _words(query)
    if words is None:
        return "executions e", "e.number", wanted
    wanted.add("texts MATCH ?", match_expression(words))
    if query.session_id is not None:  # otherwise all matches in all sessions are looked at
        numbers = "FROM executions WHERE session_id = ?)"
        wanted.add(
            f"texts.rowid BETWEEN (SELECT min(number) {numbers} AND (SELECT max(number) {numbers}",
            query.session_id,
            query.session_id,
        )
    return "texts CROSS JOIN executions e ON e.number = texts.rowid", "texts.rowid", wanted


_UNREVIEWED: Final = "FROM executions e WHERE e.session_id = s.id AND e.unreviewed"
_COUNTED: Final = (
    f"SELECT s.record, (SELECT count(*) {_UNREVIEWED}), (SELECT count(*) FROM executions e"  # noqa: S608
    " WHERE e.session_id = s.id AND e.status = 'awaiting_approval') FROM sessions s"
)


class Page(NamedTuple):
    """Some of a session's executions, in order."""

    session: Session
    places: list[list[Range]]
    """For each execution, where its lines are in the journal."""
    images: dict[ExecutionId, tuple[KeptImage, ...]]
    end: int
    """The `seq` of the last of them, or of the session's last if there are none."""
    last_seq: int
    """The `seq` of the session's last execution."""


def outline(connection: sqlite3.Connection, session_id: SessionId) -> Session:
    """Return a session as its entries add up to, without the counts that `session` adds.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    _, session, _ = indexed(connection, session_id)
    if session is None:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return session


def place_of_execution(
    connection: sqlite3.Connection, id: ExecutionId
) -> tuple[SessionId, list[Range]]:
    """Return an execution's session, and where its lines are in the journal.

    Raises
    ------
    ExecutionNotFound
        If no execution has this id.
    """
    row = connection.execute(
        "SELECT session_id, ranges FROM executions WHERE id = ?", (id,)
    ).fetchone()
    if row is None:
        raise ExecutionNotFound("There is no such execution.", execution_id=id)
    return row[0], parse_ranges(row[1])


def session(connection: sqlite3.Connection, session_id: SessionId) -> Session:
    """Return a session.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    matching = sessions(connection, Filters(["s.id = ?"], [session_id]), 1)
    if not matching:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return matching[0]


def sessions(connection: sqlite3.Connection, wanted: Filters, limit: int) -> list[Session]:
    """Return sessions: the open ones, then the closed ones, each the newest first."""
    where = " AND ".join(["s.record IS NOT NULL", *wanted.where])
    rows = connection.execute(
        f"{_COUNTED} WHERE {where} ORDER BY s.status DESC, s.id DESC LIMIT ?",
        (*wanted.values, limit),
    )
    return [
        replace(msgspec.json.decode(record, type=Session), unreviewed=unreviewed, asking=asking)
        for record, unreviewed, asking in rows
    ]


def all_sessions(connection: sqlite3.Connection) -> list[Session]:
    """Return all sessions."""
    rows = connection.execute("SELECT record FROM sessions WHERE record IS NOT NULL").fetchall()
    return [msgspec.json.decode(record, type=Session) for (record,) in rows]


def statuses(connection: sqlite3.Connection) -> dict[SessionId, frozenset[str]]:
    """Return the statuses that each session's executions have."""
    rows = connection.execute("SELECT DISTINCT session_id, status FROM executions")
    statuses: dict[SessionId, set[str]] = {}
    for session_id, status in rows:
        statuses.setdefault(session_id, set()).add(status)
    return {id: frozenset(each) for id, each in statuses.items()}


def sessions_with_proposals(connection: sqlite3.Connection) -> list[Session]:
    """Return the sessions that have open proposed edits, the oldest first."""
    rows = connection.execute("SELECT record FROM sessions WHERE proposed > 0 ORDER BY id")
    return [msgspec.json.decode(record, type=Session) for (record,) in rows]


def find_sessions(
    connection: sqlite3.Connection, query: SessionsQuery, token: TokenId | None
) -> list[Session]:
    """Return the sessions that match, one more than the page holds if there are more.

    Parameters
    ----------
    connection
        The connection to the index.
    token
        Find only sessions that were opened with this agent token.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is not valid.
    """
    wanted = _where(
        {
            "s.status": query.status,
            "s.agent": query.agent,
            "s.target": query.target,
            "s.token": token,
        }
    )
    bounds(wanted, "s.opened_at", query.since, query.until)
    if query.unreviewed is not None:
        negated = "" if query.unreviewed else "NOT "
        wanted.add(f"{negated}EXISTS (SELECT 1 {_UNREVIEWED})")
    if query.after is not None:
        group, _, id = query.after.rpartition(":")
        if group not in (*get_args(SessionStatus), ""):
            raise InvalidRequest("after: no page of sessions ended there.", field="after")
        wanted.add(
            "(s.status, s.id) < (coalesce(?, (SELECT status FROM sessions WHERE id = ?)), ?)",
            group or None,
            check_session_id(id),
            id,
        )
    return sessions(connection, wanted, query.limit + 1)


def place_of(session: Session) -> str:
    """Return where a page ends whose last session this is. The session may be closed later."""
    return f"{session.status}:{session.id}"


def executions(
    connection: sqlite3.Connection, session_id: SessionId, query: ExecutionsQuery
) -> Page:
    """Return the first executions after a `seq`, or the last ones before it.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    condition, order, seq = "seq > ?", "ASC", query.after or 0
    if query.before is not None:
        condition, order, seq = "seq < ?", "DESC", query.before
    rows = connection.execute(
        f"SELECT seq, ranges, images FROM executions WHERE session_id = ? AND {condition}"  # noqa: S608
        f" ORDER BY seq {order} LIMIT ?",
        (session_id, seq, query.limit),
    ).fetchall()
    rows.sort()
    (last,) = connection.execute(
        "SELECT max(seq) FROM executions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return Page(
        session=outline(connection, session_id),
        places=[parse_ranges(ranges) for _, ranges, _ in rows],
        images=_images(connection, session_id, [seq for seq, _, images in rows if images]),
        end=rows[-1][0] if rows else last or 0,
        last_seq=last or 0,
    )


def events(
    connection: sqlite3.Connection, session_id: SessionId, query: EventsQuery
) -> list[JournalEvent]:
    """Return a session's entries that are not part of an execution's cell, in order.

    Return one more than the page holds if there are more.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    outline(connection, session_id)
    rows = connection.execute(
        "SELECT event FROM events WHERE session_id = ? AND n > ? ORDER BY n LIMIT ?",
        (session_id, -1 if query.after is None else query.after, query.limit + 1),
    )
    return [_decode_event(event) for (event,) in rows]


def _images(
    connection: sqlite3.Connection, session_id: SessionId, seqs: list[int]
) -> dict[ExecutionId, tuple[KeptImage, ...]]:
    """Return the images of a page's executions, for executions that have images."""
    if not seqs:
        return {}
    rows = connection.execute(
        "SELECT e.id, i.image FROM executions e CROSS JOIN images i ON i.number = e.number"
        " WHERE e.session_id = ? AND e.seq BETWEEN ? AND ? ORDER BY e.seq, i.output",
        (session_id, seqs[0], seqs[-1]),
    )
    images: dict[ExecutionId, tuple[KeptImage, ...]] = {}
    for id, image in rows:
        images[id] = (*images.get(id, ()), _decode_image(image))
    return images
