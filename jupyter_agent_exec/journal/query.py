"""Search and list the index page by page, with SQL.

The words of a search are plain words. The only syntax is double quotes, which hold a phrase
together. All of the words must be found; the last one may be the start of a word.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import InvalidRequest, SessionNotFound
from ..models import JournalEvent, SearchHit, Session
from ..records import KeptImage
from ..types import ExecutionId, SessionId, SessionStatus, Status, TargetKind, Verdict
from .fold import SessionState
from .ids import check_session_id, is_execution_id
from .lines import Range
from .reruns import AGENT_NAME
from .tables import indexed, parse_ranges

MAX_LIMIT: Final = 500
_MAX_QUERY: Final = 1000
_HIT: Final = (
    "execution_id",
    "session_id",
    "seq",
    "status",
    "agent",
    "title",
    "accepted_at",
    "images",
    "source",
    "snippet",
)
_IMAGE: Final = ("output", "mimetype", "width", "height", "bytes", "sha256")
_CLOSED: Final = {
    "status": get_args(Status),
    "target": get_args(TargetKind),
    "review": (*get_args(Verdict), "none"),
}
_REVIEW: Final = (
    "coalesce(e.review, (SELECT s.review FROM sessions s"
    " WHERE s.id = e.session_id AND e.seq <= s.reviewed_up_to))"
)
_UNREVIEWED: Final = (
    "e.unreviewed AND e.seq > (SELECT s.reviewed_up_to FROM sessions s WHERE s.id = e.session_id)"
)
_RERUN_OF: Final = (
    "s.agent = ? AND EXISTS (SELECT 1 FROM events r WHERE r.session_id = s.id"
    " AND r.type = 'rerun_begun' AND (? IN (s.id, r.text) OR r.text ="
    " (SELECT q.text FROM events q WHERE q.session_id = ? AND q.type = 'rerun_begun')))"
)
_SNIPPET: Final = "snippet(texts, -1, '\u2068', '\u2069', '…', 24)"
_TERM: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_INDEX: Final = re.compile("[0-9]{1,9}")


class Criteria(Struct, frozen=True, kw_only=True):
    """The conditions that executions must meet; a field that is None sets no condition."""

    q: str | None = None
    """Words that must all be in the source, the text output or the error. The last may be the
    start of a word. Double quotes hold a phrase together."""
    agent: str | None = None
    target: str | None = None
    status: str | None = None
    session_id: str | None = None
    since: str | None = None
    """Accepted at or after this date or time."""
    until: str | None = None
    """Accepted at or before this date or time."""
    has_image: bool | None = None
    review: str | None = None
    """The verdict; `none` for executions that have run and have no review."""
    token: str | None = None
    """The agent token with which the session was opened."""

    @property
    def words(self) -> str | None:
        """The words to search for; None if there are none."""
        return self.q if self.q is not None and self.q.strip() else None


class ExecutionImage(NamedTuple):
    """An image, and its execution."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    agent: str
    title: str | None
    accepted_at: str
    image: KeptImage


class Filters(NamedTuple):
    """Conditions on executions, as SQL."""

    where: list[str]
    values: list[str | int | None]


def match_expression(q: str) -> str:
    """Return the FTS5 expression for the text that a user typed.

    Raises
    ------
    InvalidRequest
        If the text has nothing to search for.
    """
    if len(q) > _MAX_QUERY:
        raise InvalidRequest(
            f"A search has at most {_MAX_QUERY} characters.", field="q", limit=_MAX_QUERY
        )
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


def conditions(criteria: Criteria) -> Filters:
    """Return the conditions on rows of `executions`, named `e`, except for the search words.

    Raises
    ------
    InvalidRequest
        If a value is not valid.
    SessionNotFound
        If the session's id is not a valid id.
    """
    for field, allowed in _CLOSED.items():
        value = getattr(criteria, field)
        if value is not None and value not in allowed:
            raise InvalidRequest(
                f"{field}: there is no {value!r}.", field=field, allowed=sorted(allowed)
            )
    if criteria.session_id is not None:
        check_session_id(criteria.session_id)
    wanted = Filters([], [])
    for column in ("agent", "target", "status", "session_id"):
        value = getattr(criteria, column)
        if value is not None:
            wanted.where.append(f"e.{column} = ?")
            wanted.values.append(value.encode("utf-8", "replace").decode("utf-8"))
    if criteria.token is not None:
        wanted.where.append("e.session_id IN (SELECT id FROM sessions WHERE token = ?)")
        wanted.values.append(criteria.token)
    if criteria.has_image is not None:
        wanted.where.append("e.images > 0" if criteria.has_image else "e.images = 0")
    if criteria.review == "none":
        wanted.where.append(_UNREVIEWED)
    elif criteria.review is not None:
        wanted.where.append(f"{_REVIEW} = ?")
        wanted.values.append(criteria.review)
    bounds(wanted, "e.accepted_at", criteria.since, criteria.until)
    return wanted


def bounds(wanted: Filters, column: str, since: str | None, until: str | None) -> None:
    """Add the condition that a time lies within bounds, both included.

    Raises
    ------
    InvalidRequest
        If a bound is neither a date nor a time.
    """
    if since is not None:
        wanted.where.append(f"{column} >= ?")
        wanted.values.append(_moment(since, "since")[0])
    if until is not None:
        wanted.where.append(f"{column} <= ?")
        wanted.values.append(_moment(until, "until")[1])


def find(
    connection: sqlite3.Connection, criteria: Criteria, before: ExecutionId | None, limit: int
) -> list[SearchHit]:
    """Return the newest executions that match.

    Parameters
    ----------
    connection
        The connection to the index.
    criteria
        The conditions that they must meet.
    before
        Return only executions that are older than this one.
    limit
        The maximum number of executions.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is not valid.
    """
    origin, order, wanted = _origin(criteria)
    snippet = "''" if criteria.words is None else _SNIPPET
    if before is not None:
        wanted.where.append("e.number < coalesce((SELECT number FROM executions WHERE id = ?), 0)")
        wanted.values.append(before)
    sql = (
        "SELECT e.id, e.session_id, e.seq, e.status, e.agent, e.title, e.accepted_at, e.images,"  # noqa: S608
        f" e.source, {snippet} FROM {origin} WHERE {' AND '.join(wanted.where) or '1'}"
        f" ORDER BY {order} DESC LIMIT ?"
    )
    rows = connection.execute(sql, (*wanted.values, limit)).fetchall()
    return [SearchHit(**dict(zip(_HIT, row, strict=True))) for row in rows]


def find_images(
    connection: sqlite3.Connection,
    criteria: Criteria,
    after: tuple[ExecutionId, int] | None,
    limit: int,
) -> list[ExecutionImage]:
    """Return images: those of one session in order, otherwise the newest first.

    Parameters
    ----------
    connection
        The connection to the index.
    criteria
        The conditions that the images' executions must meet.
    after
        The execution and the output of the last image of the previous page.
    limit
        The maximum number of images.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is not valid.
    """
    origin, order, wanted = _origin(criteria)
    wanted.where.append("e.images > 0")
    column, name, direction, beyond = order, "number", "DESC", "<"
    if criteria.session_id is not None:
        column, name, direction, beyond = "e.seq", "seq", "ASC", ">"
    if after is not None:
        execution_id, output = after
        known = f"(SELECT {name} FROM executions WHERE id = ?)"  # noqa: S608
        wanted.where.append(f"({column} {beyond} {known} OR {column} = {known} AND i.output > ?)")
        wanted.values.extend((execution_id, execution_id, output))
    sql = (
        "SELECT e.id, e.session_id, e.seq, e.agent, e.title, e.accepted_at,"  # noqa: S608
        " i.output, i.mimetype, i.width, i.height, i.bytes, i.digest"
        f" FROM {origin} CROSS JOIN images i ON i.number = e.number"
        f" WHERE {' AND '.join(wanted.where)} ORDER BY {column} {direction}, i.output LIMIT ?"
    )
    found: list[ExecutionImage] = []
    for id, session_id, seq, agent, title, at, *image in connection.execute(
        sql, (*wanted.values, limit)
    ):
        kept = KeptImage(**dict(zip(_IMAGE, image, strict=True)))
        found.append(ExecutionImage(id, session_id, seq, agent, title, at, kept))
    return found


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


def _origin(criteria: Criteria) -> tuple[str, str, Filters]:
    """Return the tables to search, the column that orders rows by time, and the conditions."""
    wanted = conditions(criteria)
    if criteria.words is None:
        return "executions e", "e.number", wanted
    wanted.where.insert(0, "texts MATCH ?")
    wanted.values.insert(0, match_expression(criteria.words))
    return "texts CROSS JOIN executions e ON e.number = texts.rowid", "texts.rowid", wanted


def check_limit(limit: int) -> None:
    """Check the size of a page.

    Raises
    ------
    InvalidRequest
        If the limit is less than 1 or too large.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(
            f"limit is a whole number from 1 to {MAX_LIMIT}.", field="limit", limit=MAX_LIMIT
        )


def _moment(text: str, field: str) -> tuple[str, str]:
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


_UNREVIEWED_OF: Final = (
    "FROM executions e WHERE e.session_id = s.id AND e.unreviewed AND e.seq > s.reviewed_up_to"
)
_COUNTED: Final = (
    f"SELECT s.record, (SELECT count(*) {_UNREVIEWED_OF}), (SELECT count(*) FROM executions e"  # noqa: S608
    " WHERE e.session_id = s.id AND e.status = 'awaiting_approval') FROM sessions s"
)
_EVENT: Final = ("n", "type", "at", "by", "by_kind", "after_seq", "execution_id", "text")


class Page(NamedTuple):
    """Some of a session's executions, in order."""

    state: SessionState
    places: list[list[Range]]
    """For each execution, where its lines are in the journal."""
    images: dict[ExecutionId, tuple[KeptImage, ...]]
    last_seq: int
    """The `seq` of the session's last execution."""


def state(connection: sqlite3.Connection, session_id: SessionId) -> SessionState:
    """Return the state of a session: the sum of its entries.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    _, found = indexed(connection, session_id)
    if found is None:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return found


def session(connection: sqlite3.Connection, session_id: SessionId) -> Session:
    """Return a session.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    found = sessions(connection, Filters(["s.id = ?"], [session_id]), 1)
    if not found:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return found[0]


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
    found: dict[SessionId, set[str]] = {}
    for session_id, status in rows:
        found.setdefault(session_id, set()).add(status)
    return {id: frozenset(each) for id, each in found.items()}


def sessions_with_proposals(connection: sqlite3.Connection) -> list[Session]:
    """Return the sessions that have open proposed edits, the oldest first."""
    rows = connection.execute("SELECT record FROM sessions WHERE proposed > 0 ORDER BY id")
    return [msgspec.json.decode(record, type=Session) for (record,) in rows]


def wanted_sessions(
    *,
    status: SessionStatus | None,
    agent: str | None,
    target: TargetKind | None,
    since: str | None,
    until: str | None,
    unreviewed: bool | None,
    rerun_of: str | None,
    token: str | None,
    after: str | None,
) -> Filters:
    """Return the conditions on rows of `sessions`, named `s`.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is not valid.
    """
    wanted = Filters([], [])
    for column, value in (
        ("status", status),
        ("agent", agent),
        ("target", target),
        ("token", token),
    ):
        if value is not None:
            wanted.where.append(f"s.{column} = ?")
            wanted.values.append(value.encode("utf-8", "replace").decode("utf-8"))
    bounds(wanted, "s.opened_at", since, until)
    if unreviewed is not None:
        wanted.where.append(f"{'' if unreviewed else 'NOT '}EXISTS (SELECT 1 {_UNREVIEWED_OF})")
    if rerun_of is not None:
        wanted.where.append(_RERUN_OF)
        wanted.values.extend((AGENT_NAME, rerun_of, rerun_of))
    if after is not None:
        group, _, id = after.rpartition(":")
        wanted.where.append(
            "(s.status, s.id) < (coalesce(?, (SELECT status FROM sessions WHERE id = ?)), ?)"
        )
        if group not in (*get_args(SessionStatus), ""):
            raise InvalidRequest("after: no page of sessions ended there.", field="after")
        wanted.values.extend((group or None, check_session_id(id), id))
    return wanted


def place_of(session: Session) -> str:
    """Return where a page ends whose last session this is. The session may be closed later."""
    return f"{session.status}:{session.id}"


def executions(
    connection: sqlite3.Connection,
    session_id: SessionId,
    *,
    after: int | None,
    before: int | None,
    limit: int,
) -> Page:
    """Return the first executions after a `seq`, or the last ones before it.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    condition, order, seq = ("seq > ?", "ASC", after or 0)
    if before is not None:
        condition, order, seq = ("seq < ?", "DESC", before)
    rows = connection.execute(
        f"SELECT seq, ranges, images FROM executions WHERE session_id = ? AND {condition}"  # noqa: S608
        f" ORDER BY seq {order} LIMIT ?",
        (session_id, seq, limit),
    ).fetchall()
    rows.sort()
    (last,) = connection.execute(
        "SELECT max(seq) FROM executions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return Page(
        state=state(connection, session_id),
        places=[parse_ranges(ranges) for _, ranges, _ in rows],
        images=_images(connection, session_id, [seq for seq, _, images in rows if images]),
        last_seq=last or 0,
    )


def events(
    connection: sqlite3.Connection, session_id: SessionId, after: int | None, limit: int
) -> list[JournalEvent]:
    """Return a session's entries that are not part of an execution's cell, in order.

    Raises
    ------
    SessionNotFound
        If no session has this id.
    """
    state(connection, session_id)
    rows = connection.execute(
        f"SELECT {', '.join(_EVENT)} FROM events WHERE session_id = ? AND n > ?"  # noqa: S608
        " ORDER BY n LIMIT ?",
        (session_id, -1 if after is None else after, limit),
    )
    return [JournalEvent(**dict(zip(_EVENT, row, strict=True))) for row in rows]


def _images(
    connection: sqlite3.Connection, session_id: SessionId, seqs: list[int]
) -> dict[ExecutionId, tuple[KeptImage, ...]]:
    """Return the images of a page's executions, for executions that have images."""
    if not seqs:
        return {}
    rows = connection.execute(
        "SELECT e.id, i.output, i.mimetype, i.width, i.height, i.bytes, i.digest"
        " FROM executions e CROSS JOIN images i ON i.number = e.number"
        " WHERE e.session_id = ? AND e.seq BETWEEN ? AND ? ORDER BY e.seq, i.output",
        (session_id, seqs[0], seqs[-1]),
    )
    found: dict[ExecutionId, tuple[KeptImage, ...]] = {}
    for id, *image in rows:
        kept = KeptImage(**dict(zip(_IMAGE, image, strict=True)))
        found[id] = (*found.get(id, ()), kept)
    return found
