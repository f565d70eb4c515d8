"""Read the history: sessions, executions, payloads, search. All of it blocks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec import MsgspecError
from msgspec.structs import replace

from ..errors import BlobNotFound, ExecutionNotFound, HistoryUnavailable, SessionNotFound
from ..models import (
    EventsQuery,
    ExecutionsQuery,
    HeadSignature,
    JournalEvent,
    Progress,
    SearchQuery,
    SearchResults,
    Session,
    SessionList,
    SessionsQuery,
)
from ..records import Accepted, ExecutionRecord, commitment
from ..types import Digest, ExecutionId, Output, SessionId, TokenId
from . import query
from .blobs import BlobStore
from .findings import Outcome
from .fold import execution_record, requirements
from .ids import check_digest, check_execution_id, check_session_id
from .index import Index
from .journal import signatures_of
from .lines import Line, Range, lines, lines_at
from .notebook import (
    Foreword,
    journal_notebook,
)
from .proposals import RecordedProposal, SessionChanges, SessionProposals
from .query import ExecutionImage
from .signatures import Signatures
from .tables import parse_ranges
from .verify import verify_journal

T = TypeVar("T")
AfterT = TypeVar("AfterT", bound=str)


class ImagePage(NamedTuple):
    """A page of images."""

    images: list[ExecutionImage]
    next_after: str | None
    """Where the next page begins; None on the last page."""


class HeldOutputs(list[Output]):
    """Outputs that are sent to several, perhaps slow, clients from one copy."""

    def in_one_copy(
        self, id: ExecutionId, held: WeakValueDictionary[ExecutionId, HeldOutputs]
    ) -> HeldOutputs:
        """Return the copy held for an execution if it is equal; otherwise hold and return this."""
        kept = held.get(id)
        if kept == self:
            return kept
        held[id] = self
        return self


class HistoryReader:
    """The recorded contents of a history's folder. Thread-safe.

    While the index is rebuilt, methods that need it wait up to ten seconds and then raise
    `HistoryUnavailable`. `notebook` and `journal_path` need no index.

    Parameters
    ----------
    folder
        The history's folder.
    index
        The index of the same folder.
    """

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self._index = index
        self._held: WeakValueDictionary[ExecutionId, HeldOutputs] = WeakValueDictionary()
        self._proposals: dict[SessionId, SessionProposals] = {}
        self._reading_proposals = threading.Lock()
        self.signatures = Signatures()
        """What signs the record. Set it before the start."""

    @property
    def ready(self) -> bool:
        """Whether the index is complete."""
        return self._index.ready

    @property
    def indexing(self) -> Progress | None:
        """How far a rebuild of the index is; None if it is complete."""
        return self._index.progress

    def until_ready(self) -> Future[None]:
        """Return a future that is done when the index is complete, or is stopped."""
        return self._index.until_ready()

    def session(self, session_id: str) -> Session:
        """Return a session.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        checked = check_session_id(session_id)
        session = self._index.ask(lambda connection: query.session(connection, checked))
        kept: list[HeadSignature] = []
        with suppress(OSError, MsgspecError):  # `verify` reports what cannot be read
            kept = signatures_of(self._session_folder(checked) / "journal.jsonl")
        newest = max(kept, key=lambda each: each.at, default=None)
        return replace(session, chain=replace(session.chain, signature=newest))

    def sessions(self, wanted: SessionsQuery, *, token: TokenId | None = None) -> SessionList:
        """Return sessions: the open ones first, then the closed, each the newest first.

        Parameters
        ----------
        token
            Return only sessions that were opened with this agent token.

        Raises
        ------
        InvalidRequest
            If a value is not valid; `field` names it.
        SessionNotFound
            If no page can have ended at `after`.
        """
        sessions, next_after = self._page(
            lambda connection: query.find_sessions(connection, wanted, token),
            wanted.limit,
            query.place_of,
        )
        return SessionList(sessions=sessions, next_after=next_after)

    def execution(self, execution_id: str) -> ExecutionRecord:
        """Return an execution.

        Raises
        ------
        ExecutionNotFound
            If no execution has this id.
        """
        checked = check_execution_id(execution_id)

        def find(connection: sqlite3.Connection) -> tuple[Session, list[Range]]:
            session_id, ranges = query.place_of_execution(connection, checked)
            return query.outline(connection, session_id), ranges

        session, ranges = self._index.ask(find)
        records = self._records(session, [ranges])
        if not records:
            raise ExecutionNotFound("There is no such execution.", execution_id=checked)
        outputs = HeldOutputs(records[0].outputs).in_one_copy(checked, self._held)
        return replace(records[0], outputs=outputs)

    def session_of(self, execution_id: str) -> SessionId:
        """Return the id of an execution's session.

        Raises
        ------
        ExecutionNotFound
            If no execution has this id.
        """
        checked = check_execution_id(execution_id)
        return self._index.ask(lambda connection: query.place_of_execution(connection, checked)[0])

    def executions(
        self, session_id: str, wanted: ExecutionsQuery
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where to go on, or None at the end.

        `outputs` says whether to leave out the large parts of their outputs, and not read them.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        checked = check_session_id(session_id)
        page = self._index.ask(lambda connection: query.executions(connection, checked, wanted))
        brief = wanted.outputs == "brief"
        records = self._records(page.session, page.places, brief=brief)
        if brief:
            records = [
                replace(record, brief=replace(record.brief, images=page.images.get(record.id, ())))
                for record in records
                if record.brief is not None
            ]
        return records, page.end if page.end < page.last_seq else None

    def events(self, session_id: str, wanted: EventsQuery) -> tuple[list[JournalEvent], int | None]:
        """Return a session's entries that are not part of an execution's cell, in order.

        Also return the `n` after which to go on, or None at the end.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        checked, limit = check_session_id(session_id), wanted.limit
        events = self._index.ask(lambda connection: query.events(connection, checked, wanted))
        return events[:limit], events[limit - 1].n if len(events) > limit else None

    def find_by_key(
        self, session_id: str, key: str, body: Digest
    ) -> tuple[ExecutionId, bool] | None:
        """Return the execution that has an idempotency key, and whether its request was the same.

        Parameters
        ----------
        body
            The digest of the request.
        """
        checked = check_session_id(session_id)
        row: tuple[ExecutionId, str] | None = self._index.ask(
            lambda connection: connection.execute(
                "SELECT id, ranges FROM executions WHERE session_id = ? AND key = ?",
                (checked, key),
            ).fetchone()
        )
        if row is None:
            return None
        for line in self._lines(checked, parse_ranges(row[1])):
            if isinstance(line.entry, Accepted) and (named := line.entry.body_sha256) is not None:
                salt = line.salts.get(named)
                return row[0], salt is not None and named == commitment(salt, body.encode())
        return row[0], False

    def search(self, wanted: SearchQuery, *, token: TokenId | None = None) -> SearchResults:
        """Find executions, the newest first.

        Parameters
        ----------
        token
            Find only executions of sessions that were opened with this agent token.

        Raises
        ------
        InvalidRequest
            If a value is not valid; `field` names it.
        SessionNotFound, ExecutionNotFound
            If the session's id, or `after`, is no id.
        """
        hits, next_after = self._page(
            lambda connection: query.find(connection, wanted, token),
            wanted.limit,
            lambda hit: hit.execution_id,
        )
        return SearchResults(hits=hits, next_after=next_after)

    def images(self, wanted: SearchQuery, *, token: TokenId | None = None) -> ImagePage:
        """Find images: those of one session in order, otherwise the newest first.

        Parameters and errors as for `search`.
        """
        return ImagePage(
            *self._page(
                lambda connection: query.find_images(connection, wanted, token),
                wanted.limit,
                query.place_of_image,
            )
        )

    def blob(self, digest: str) -> tuple[Path, str, int]:
        """Return a large payload's file, its MIME type and its size.

        Raises
        ------
        BlobNotFound
            If it never existed, or no longer exists.
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

    def has_blob(self, digest: str, token: str) -> bool:
        """Return whether a payload belongs to a session that was opened with an agent token.

        Raises
        ------
        BlobNotFound
            If no session has a payload with this digest.
        """
        checked = check_digest(digest)
        rows = self._index.ask(
            lambda connection: connection.execute(
                "SELECT DISTINCT s.token IS ? FROM blobs b JOIN sessions s ON s.id = b.session_id"
                " WHERE b.digest = ?",
                (token, checked),
            ).fetchall()
        )
        if not rows:
            raise BlobNotFound("There is no such payload.", digest=checked)
        return (1,) in rows

    def journal_path(self, session_id: str) -> Path:
        """Return the path of a session's journal.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        path = self._session_folder(check_session_id(session_id)) / "journal.jsonl"
        if not path.is_file():
            raise SessionNotFound("There is no such session.", session_id=session_id)
        return path

    def notebook(
        self, session_id: str, *, clean: bool = False, foreword: Foreword | None = None
    ) -> Iterator[str]:
        """Yield the text of a session's notebook, cell by cell, in its current state.

        With `clean`, the notebook is as nbformat writes it, and only the metadata that lead to the
        record are added. With a foreword, none are, and nothing is signed.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        path = self.journal_path(session_id)
        blobs = self._blobs(SessionId(session_id))
        if foreword is not None:
            return journal_notebook(path, blobs, foreword=foreword)
        sign = self.signatures.of_exports
        if sign is not None and verify_journal(path).outcome not in (Outcome.WHOLE, Outcome.TORN):
            sign = None  # nothing is signed that is not as it was written
        return journal_notebook(path, blobs, clean=clean, sign=sign)

    def requirements(self, session_id: str) -> str:
        """Return what a session's kernel had installed at last, as a `requirements.txt`.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        """
        path = self.journal_path(session_id)
        return requirements(lines(path), self._blobs(SessionId(session_id)))

    def proposals(self, session_id: SessionId) -> list[RecordedProposal]:
        """Return a session's proposed edits, the oldest first, and what became of them.

        Raises
        ------
        SessionNotFound
            If no session has this id.
        HistoryUnavailable
            If its journal cannot be read.
        """
        path = self.journal_path(session_id)
        with reading(session_id), self._reading_proposals:
            return self._proposals.setdefault(session_id, SessionProposals(path)).read()

    def changes(self, session_id: SessionId) -> SessionChanges:
        """Return what a session changed in its notebook; raises as `proposals`."""
        path = self.journal_path(session_id)
        with reading(session_id):
            return SessionChanges(path)

    def sessions_with_proposals(self) -> list[Session]:
        """Return the sessions that have open proposed edits, the oldest first."""
        return self._index.ask(query.sessions_with_proposals)

    def _page(
        self,
        find: Callable[[sqlite3.Connection], list[T]],
        limit: int,
        place_of: Callable[[T], AfterT],
    ) -> tuple[list[T], AfterT | None]:
        """Return a page of what the index has, and where the next begins.

        Parameters
        ----------
        find
            Returns one more than `limit` if there are more.
        place_of
            Returns the place where a page ends with this one.
        """
        found = self._index.ask(find)
        more = len(found) > limit
        return found[:limit], place_of(found[limit - 1]) if more else None

    def _records(
        self, session: Session, places: Sequence[Sequence[Range]], *, brief: bool = False
    ) -> list[ExecutionRecord]:
        id, find = session.id, self._blobs(session.id).find
        records = [
            execution_record(session, self._lines(id, ranges), find, brief=brief)
            for ranges in places
        ]
        return [record for record in records if record is not None]

    def _lines(self, session_id: SessionId, ranges: Sequence[Range]) -> list[Line]:
        journal = self._session_folder(session_id) / "journal.jsonl"
        with reading(session_id), journal.open("rb") as file:
            return lines_at(file.fileno(), ranges)

    def _session_folder(self, session_id: SessionId) -> Path:
        return self.folder / "sessions" / session_id

    def _blobs(self, session_id: SessionId) -> BlobStore:
        return BlobStore(self._session_folder(session_id) / "blobs")


@contextmanager
def reading(session_id: SessionId) -> Iterator[None]:
    """Raise HistoryUnavailable if a session's journal cannot be read."""
    try:
        yield
    except OSError as error:
        raise HistoryUnavailable(
            f"The journal of this session cannot be read ({error.strerror or error}).",
            session_id=session_id,
        ) from error
