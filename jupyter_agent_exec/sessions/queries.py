"""What may stand in the query of a route."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..models import Request
from ..types import SessionStatus, Status

Limit = Annotated[int, Meta(ge=1, le=500)]


class WaitQuery(Request, frozen=True, kw_only=True):
    """How long to wait."""

    wait: Annotated[float, Meta(ge=0, le=3600)] = 0
    """Seconds to hold the answer until the execution finishes; not above the server's own."""


class SessionsQuery(Request, frozen=True, kw_only=True):
    """Which sessions to list."""

    status: SessionStatus | None = None
    agent: str | None = None
    """Name of an agent."""
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50


class ExecutionsQuery(Request, frozen=True, kw_only=True):
    """Which of a session's executions to list."""

    after: Annotated[int, Meta(ge=0)] | None = None
    """Those that follow this `seq`; `next_after` of the page before."""
    before: Annotated[int, Meta(ge=1)] | None = None
    """The last ones before this `seq`, still in order; not together with `after`."""
    limit: Limit = 50


class TextQuery(Request, frozen=True, kw_only=True):
    """Which part of an execution's text to read."""

    offset: Annotated[int, Meta(ge=0)] = 0
    """Byte at which to begin."""
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 50_000
    """Bytes of text, or with `grep` lines, at the most."""
    grep: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    """A regular expression: only lines that match, with their numbers."""


class SearchQuery(Request, frozen=True, kw_only=True):
    """What to search the history for; without `q` the filters alone count."""

    q: Annotated[str, Meta(max_length=1000)] | None = None
    """Words that must all be there, in source, output or error; quotes hold a phrase together."""
    agent: str | None = None
    status: Status | None = None
    session_id: str | None = None
    since: str | None = None
    """RFC 3339; accepted at this time or later."""
    until: str | None = None
    """RFC 3339; accepted at this time or earlier; a date alone means its whole day."""
    has_image: bool | None = None
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50
