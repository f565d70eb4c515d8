"""The queries of routes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal

from msgspec import Meta

from .errors import InvalidRequest
from .models import Request
from .types import SessionStatus, Status, TargetKind, Verdict

Limit = Annotated[int, Meta(ge=1, le=500)]
Match = Annotated[str, Meta(max_length=200)]
"""List only names that contain this text, ignoring case; all names if it is empty."""
LARGEST = 2**63 - 1
"""The largest number that the index can hold."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class StreamQuery(Request, frozen=True, kw_only=True):
    """How to show an execution."""

    inert: bool = False
    """Whether `cell` has an inert copy of the outputs, as in the notebook: sanitised HTML, and
    nothing that runs. `metadata.agent_exec.held` names the MIME types that were left out."""


class WaitQuery(StreamQuery, frozen=True, kw_only=True):
    """How long to wait, and how to show the execution."""

    wait: Annotated[float, Meta(ge=0, le=3600)] = 0
    """Seconds to hold the answer until the execution finishes, or its code requests input. The
    server may have a lower limit."""
    asked_at: str | None = None
    """Id of the input request that the client has seen. Only another one ends the wait."""


class ExportQuery(Request, frozen=True, kw_only=True):
    """Which notebook to make of a session."""

    clean: bool = False
    """Whether to write it for git, nbdime, jupytext and papermill: indented, without our metadata
    in cells, and with the tag `raises-exception` on cells that raised. The record stays in the
    history: a cell's id is that of its execution."""


class SessionsQuery(Request, frozen=True, kw_only=True):
    """Which sessions to list."""

    status: SessionStatus | None = None
    agent: str | None = None
    """Name of an agent."""
    target: TargetKind | None = None
    since: str | None = None
    """RFC 3339; opened at this time or later."""
    until: str | None = None
    """RFC 3339; opened at this time or earlier; a date alone means its whole day."""
    unreviewed: bool | None = None
    """Whether the session has finished executions without a review."""
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50


class ExecutionsQuery(Request, frozen=True, kw_only=True):
    """Which of a session's executions to list."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    """List executions after this `seq`; `next_after` of the page before."""
    before: Annotated[int, Meta(ge=1, le=LARGEST)] | None = None
    """List the last executions before this `seq`, in order; not together with `after`."""
    limit: Limit = 50
    inert: bool = False
    """Whether each `cell` has an inert copy of the outputs."""
    outputs: Literal["full", "brief"] = "full"
    """`brief` leaves out `text`, and images and large values in outputs, which `left_out` lists. A
    request for a single execution returns everything."""


class EventsQuery(Request, frozen=True, kw_only=True):
    """Which of a session's events to list."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    """List events after the entry with this `n`; `next_after` of the page before."""
    limit: Limit = 50


class TextQuery(Request, frozen=True, kw_only=True):
    """Which part of an execution's text to read."""

    offset: Annotated[int, Meta(ge=0)] = 0
    """Byte at which to begin."""
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 50_000
    """Maximum bytes of text; with `grep`, maximum lines."""


class SearchQuery(Request, frozen=True, kw_only=True):
    """Which executions to find. A missing condition matches all."""

    q: Annotated[str, Meta(max_length=1000)] | None = None
    """Words that must all occur in source, output or error. The last may be the start of a word.
    Quotes hold a phrase together."""
    agent: str | None = None
    target: TargetKind | None = None
    status: Status | None = None
    session_id: str | None = None
    since: str | None = None
    """RFC 3339; accepted at this time or later."""
    until: str | None = None
    """RFC 3339; accepted at this time or earlier; a date alone means its whole day."""
    has_image: bool | None = None
    review: Verdict | Literal["none"] | None = None
    """The last verdict; `none` for executions that have run and have no review."""
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50


class VariablesQuery(Request, frozen=True, kw_only=True):
    """Which variables to list."""

    match: Match = ""
    limit: Limit = 500


class PackagesQuery(Request, frozen=True, kw_only=True):
    """Which packages to list."""

    match: Match = ""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 500


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
