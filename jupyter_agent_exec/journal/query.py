"""What a person or an agent searches for, turned into SQL.

The words of a search are words: nothing in them is syntax, but double quotes, which hold a phrase
together. All of them must be found; the last may be the start of a word.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple, get_args

from msgspec import Struct

from ..errors import InvalidRequest
from ..models import SearchHit
from ..records import KeptImage
from ..types import ExecutionId, SessionId, Status, TargetKind, Verdict
from .ids import check_session_id, is_execution_id

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
_SNIPPET: Final = "snippet(texts, -1, '\u2068', '\u2069', '…', 24)"
_TERM: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_INDEX: Final = re.compile("[0-9]{1,9}")


class Criteria(Struct, frozen=True, kw_only=True):
    """What must be true of executions; None for anything."""

    q: str | None = None
    """Words that must all be in the source, the text output or the error; the last may be the start
    of one; double quotes hold a phrase together."""
    agent: str | None = None
    target: str | None = None
    status: str | None = None
    session_id: str | None = None
    since: str | None = None
    """Accepted at this date or time or later."""
    until: str | None = None
    """Accepted at this date or time or earlier."""
    has_image: bool | None = None
    review: str | None = None
    """The verdict; `none` for those that have run and about which nobody has said anything."""
    token: str | None = None
    """Of sessions that were opened with this agent token."""

    @property
    def words(self) -> str | None:
        """What is searched for; None if that is nothing."""
        return self.q if self.q is not None and self.q.strip() else None


class Pictured(NamedTuple):
    """An image, and the execution that it came of."""

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
    """Return the FTS5 expression for what somebody typed.

    Raises
    ------
    InvalidRequest
        If it holds nothing that could be found.
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
    """Return the conditions on rows of `executions`, named `e`, but for the words.

    Raises
    ------
    InvalidRequest
        If a value is none that could be.
    SessionNotFound
        If the session's id cannot be one.
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
    """Add the conditions that a time lies within bounds, both included.

    Raises
    ------
    InvalidRequest
        If one is no date and no time.
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
        To the index.
    criteria
        What must be true of them.
    before
        Only executions that are older than this one.
    limit
        The most to return.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is none that could be.
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
) -> list[Pictured]:
    """Return the images of executions that match: of one session in order, else the newest first.

    Parameters
    ----------
    connection
        To the index.
    criteria
        What must be true of the executions.
    after
        The execution and the output of the image before the first.
    limit
        The most to return.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is none that could be.
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
    found: list[Pictured] = []
    for id, session_id, seq, agent, title, at, *image in connection.execute(
        sql, (*wanted.values, limit)
    ):
        kept = KeptImage(**dict(zip(_IMAGE, image, strict=True)))
        found.append(Pictured(id, session_id, seq, agent, title, at, kept))
    return found


def place_of_image(pictured: Pictured) -> str:
    """Return where a page of images ends whose last this is."""
    return f"{pictured.execution_id}:{pictured.image.output}"


def image_place(text: str) -> tuple[ExecutionId, int]:
    """Return what `place_of_image` made the text of.

    Raises
    ------
    InvalidRequest
        If it did not.
    """
    id, _, output = text.partition(":")
    if not is_execution_id(id) or not _INDEX.fullmatch(output):
        raise InvalidRequest("after: no page of images ended there.", field="after")
    return ExecutionId(id), int(output)


def _origin(criteria: Criteria) -> tuple[str, str, Filters]:
    """Return the tables to look in, what numbers their rows by time, and the conditions."""
    wanted = conditions(criteria)
    if criteria.words is None:
        return "executions e", "e.number", wanted
    wanted.where.insert(0, "texts MATCH ?")
    wanted.values.insert(0, match_expression(criteria.words))
    return "texts CROSS JOIN executions e ON e.number = texts.rowid", "texts.rowid", wanted


def check_limit(limit: int) -> None:
    """Refuse a page of no size, or one that is too long.

    Raises
    ------
    InvalidRequest
        If it is out of bounds.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(
            f"limit is a whole number from 1 to {MAX_LIMIT}.", field="limit", limit=MAX_LIMIT
        )


def _moment(text: str, field: str) -> tuple[str, str]:
    """Return the first and last moment that `text` names, as entries write times."""
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
