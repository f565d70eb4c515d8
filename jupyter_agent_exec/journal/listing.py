"""What is listed of the index: sessions, and what one of them holds, page by page."""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from ..errors import InvalidRequest, SessionNotFound
from ..models import JournalEvent, Session
from ..records import KeptImage
from ..types import ExecutionId, SessionId, SessionStatus, TargetKind
from .fold import SessionState
from .ids import check_session_id
from .query import Filters, bounds
from .reading import Range
from .tables import indexed, parse_ranges

_UNREVIEWED: Final = (
    "FROM executions e WHERE e.session_id = s.id AND e.unreviewed AND e.seq > s.reviewed_up_to"
)
_COUNTED: Final = (
    f"SELECT s.record, (SELECT count(*) {_UNREVIEWED}), (SELECT count(*) FROM executions e"  # noqa: S608
    " WHERE e.session_id = s.id AND e.status = 'awaiting_approval') FROM sessions s"
)
_EVENT: Final = ("n", "type", "at", "by", "after_seq", "execution_id", "text")
_IMAGE: Final = ("output", "mimetype", "width", "height", "bytes", "sha256")


class Page(NamedTuple):
    """Some of a session's executions, in order."""

    state: SessionState
    places: list[list[Range]]
    """Where the lines of each are."""
    images: dict[ExecutionId, tuple[KeptImage, ...]]
    last_seq: int
    """Of the session's last execution."""


def state(connection: sqlite3.Connection, session_id: SessionId) -> SessionState:
    """Return what a session's entries add up to.

    Raises
    ------
    SessionNotFound
        If there is none with this id.
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
        If there is none with this id.
    """
    found = sessions(connection, Filters(["s.id = ?"], [session_id]), 1)
    if not found:
        raise SessionNotFound("There is no such session.", session_id=session_id)
    return found[0]


def sessions(connection: sqlite3.Connection, wanted: Filters, limit: int) -> list[Session]:
    """Return sessions: the open ones, then the closed, each the newest first."""
    where = " AND ".join(["s.record IS NOT NULL", *wanted.where])
    rows = connection.execute(
        f"{_COUNTED} WHERE {where} ORDER BY s.status DESC, s.id DESC LIMIT ?",
        (*wanted.values, limit),
    )
    return [
        replace(msgspec.json.decode(record, type=Session), unreviewed=unreviewed, asking=asking)
        for record, unreviewed, asking in rows
    ]


def wanted_sessions(
    *,
    status: SessionStatus | None,
    agent: str | None,
    target: TargetKind | None,
    since: str | None,
    until: str | None,
    unreviewed: bool | None,
    token: str | None,
    after: str | None,
) -> Filters:
    """Return the conditions on rows of `sessions`, named `s`.

    Raises
    ------
    InvalidRequest, SessionNotFound
        If a value is none that could be.
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
        wanted.where.append(f"{'' if unreviewed else 'NOT '}EXISTS (SELECT 1 {_UNREVIEWED})")
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
    """Return where a page ends whose last session this is: it may be closed by the next."""
    return f"{session.status}:{session.id}"


def executions(
    connection: sqlite3.Connection,
    session_id: SessionId,
    *,
    after: int | None,
    before: int | None,
    limit: int,
) -> Page:
    """Return the first executions after a `seq`, or the last before one.

    Raises
    ------
    SessionNotFound
        If there is no such session.
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
    """Return a session's entries that are no part of an execution's cell, in order.

    Raises
    ------
    SessionNotFound
        If there is no such session.
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
    """Return the images of those of a page's executions that have some."""
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
