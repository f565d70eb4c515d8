"""The history: searches, ranges of texts, images, events, and how the server is doing."""

from __future__ import annotations

from ..types import ExecutionId, SessionId, Status
from .base import Answer, Chain


class Indexing(Answer, frozen=True, kw_only=True):
    """How far a rebuild of the history's index has come; the newest sessions are indexed first."""

    done: int
    """Sessions that are indexed."""
    total: int
    """All sessions of the history."""

    def __str__(self) -> str:
        return (
            f"The index is being rebuilt: {self.done:,} of {self.total:,} sessions so far; "
            "results may be missing."
        )


class JournalEvent(Answer, frozen=True, kw_only=True):
    """An entry of a session's journal that is not part of an execution's cell."""

    n: int
    """Its position in the journal."""
    type: str
    """As the record names it: `kernel_started`, `interrupted`, `notebook_edited`, …"""
    at: str
    by: str | None
    """Name of the person or agent; null for the server, or if it is not known."""
    after_seq: int
    """The last execution that was accepted before it; 0 if none was."""
    execution_id: ExecutionId | None
    """The execution that it is about."""
    text: str | None
    """A reason, a comment, a path: what it says in one line."""


class JournalEventList(Answer, frozen=True, kw_only=True):
    """Entries of a session's journal that are not part of executions' cells, in order."""

    events: list[JournalEvent]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class ExecutionReference(Answer, frozen=True, kw_only=True):
    """An execution of the history, and the session that it belongs to."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    agent: str
    title: str | None
    accepted_at: str


class RecordedImage(ExecutionReference, frozen=True, kw_only=True):
    """An image of the history, and the execution that it came of."""

    output: int
    """Index of the output that holds it."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    url: str


class ImageList(Answer, frozen=True, kw_only=True):
    """Images of the history: a session's in order, else the newest first."""

    images: list[RecordedImage]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
    indexing: Indexing | None = None
    """Not null while the index is rebuilt: results may be missing."""


class SearchHit(ExecutionReference, frozen=True, kw_only=True):
    """An execution that matches a search."""

    status: Status
    images: int
    source: str
    """The source's first 500 characters."""
    snippet: str
    """Text around the match; matches stand between U+2068 and U+2069."""


class SearchResults(Answer, frozen=True, kw_only=True):
    """Executions that match a search, the newest first."""

    hits: list[SearchHit]
    next_after: ExecutionId | None
    """Pass as `after` for the next page; null at the end."""
    indexing: Indexing | None = None
    """Not null while the index is rebuilt: results may be missing."""


class Text(Answer, frozen=True, kw_only=True):
    """A range of an execution's whole text."""

    text: str
    offset: int
    """Byte in the UTF-8 text at which this range starts (moved back to a character's start)."""
    next_offset: int | None
    """Where to go on; null at the end."""
    total_bytes: int
    """Bytes that can be read here."""
    omitted_bytes: int
    """Bytes that were printed beyond what is kept."""


class TextMatch(Answer, frozen=True, kw_only=True):
    """A line of an execution's text that matches."""

    line: int
    """Counted from 1."""
    offset: int
    text: str
    """The line, cut to 1,000 characters."""


class TextMatches(Answer, frozen=True, kw_only=True):
    """Lines of an execution's text that match a pattern."""

    matches: list[TextMatch]
    next_offset: int | None
    """Where to go on; null when the whole text was searched."""
    total_bytes: int
    omitted_bytes: int


class ServerStatus(Answer, frozen=True, kw_only=True):
    """How the extension is doing."""

    version: str
    history_available: bool
    open_sessions: int
    kernels: int
    running: int
    queued: int
    ledger: Chain
    search_ready: bool
    """False while the index is being rebuilt."""
