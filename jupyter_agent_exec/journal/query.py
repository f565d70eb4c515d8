"""What a person or an agent searches for, turned into SQL.

The words of a search are words: nothing in them is syntax, but double quotes, which hold a phrase
together. All of them must be found; the last may be the start of a word.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from ..errors import InvalidRequest
from ..models import SearchHit
from ..types import FINAL_STATUSES, ExecutionId, SessionId, Status

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
_STATUSES: Final[frozenset[str]] = FINAL_STATUSES | {"awaiting_approval", "queued", "running"}
_TERM: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class Filters(NamedTuple):
    """Conditions on executions, as SQL."""

    where: list[str]
    values: list[str | int]


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


def filters(
    *,
    agent: str | None,
    status: Status | None,
    session_id: SessionId | None,
    since: str | None,
    until: str | None,
    has_image: bool | None,
) -> Filters:
    """Return the conditions on rows of `executions`, named `e`.

    Raises
    ------
    InvalidRequest
        If a value is none that could be.
    """
    where: list[str] = []
    values: list[str | int] = []
    for column, value in (("agent", agent), ("status", status), ("session_id", session_id)):
        if value is not None:
            where.append(f"e.{column} = ?")
            values.append(value.encode("utf-8", "replace").decode("utf-8"))
    if status is not None and status not in _STATUSES:
        raise InvalidRequest(
            f"There is no status {status!r}.", field="status", allowed=sorted(_STATUSES)
        )
    if since is not None:
        where.append("e.accepted_at >= ?")
        values.append(_moment(since, "since")[0])
    if until is not None:
        where.append("e.accepted_at <= ?")
        values.append(_moment(until, "until")[1])
    if has_image is not None:
        where.append("e.images > 0" if has_image else "e.images = 0")
    return Filters(where, values)


def find(
    connection: sqlite3.Connection,
    match: str | None,
    conditions: Filters,
    before: ExecutionId | None,
    limit: int,
) -> list[SearchHit]:
    """Return the newest executions that match.

    Parameters
    ----------
    connection
        To the index.
    match
        What the full text must match, as FTS5 has it; None for anything.
    conditions
        Of `filters`.
    before
        Only executions that are older than this one.
    limit
        The most to return.
    """
    where, values = list(conditions.where), list(conditions.values)
    if before is not None:
        where.append("e.number < coalesce((SELECT number FROM executions WHERE id = ?), 0)")
        values.append(before)
    origin, snippet = "executions e", "''"
    if match is not None:
        origin = "texts CROSS JOIN executions e ON e.number = texts.rowid"
        snippet = "snippet(texts, -1, '\u2068', '\u2069', '…', 24)"
        where.insert(0, "texts MATCH ?")
        values.insert(0, match)
    order = "e.number" if match is None else "texts.rowid"
    sql = (
        "SELECT e.id, e.session_id, e.seq, e.status, e.agent, e.title, e.accepted_at, e.images,"  # noqa: S608
        f" e.source, {snippet} FROM {origin} WHERE {' AND '.join(where) or '1'}"
        f" ORDER BY {order} DESC LIMIT ?"
    )
    rows = connection.execute(sql, (*values, limit)).fetchall()
    return [SearchHit(**dict(zip(_HIT, row, strict=True))) for row in rows]


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
            start = datetime.combine(date.fromisoformat(text), time(), timezone.utc)
            return _stamp(start), _stamp(start + timedelta(days=1, milliseconds=-1))
        parsed = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))
        stamp = _stamp(parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{field} is a date (2026-11-21) or a time (2026-11-21T09:00:00Z).", field=field
        ) from None
    return stamp, stamp


def _stamp(moment: datetime) -> str:
    utc = moment.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    return utc.replace("+00:00", "Z")
