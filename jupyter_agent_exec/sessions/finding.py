"""What is found in the history: texts, matches, payloads, whole records."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from ..journal.history import History
from ..models import SearchResults, Text, TextMatches
from ..ranges import grep, read_range
from ..records import ExecutionRecord
from ..text import transcript
from .queries import SearchQuery

T = TypeVar("T")


class Read(Protocol):
    """Reads the history in a thread, once it has been taken up."""

    def __call__(self, read: Callable[..., T], *args: Any, **named: Any) -> Awaitable[T]:
        """Read it."""


class Finding:
    """Finds things in the history.

    Parameters
    ----------
    execution
        Returns an execution as it stands.
    """

    def __init__(
        self,
        history: History,
        read: Read,
        execution: Callable[[str], Awaitable[ExecutionRecord]],
    ) -> None:
        self._history = history
        self._read = read
        self._execution = execution

    async def text(self, id: str, offset: int, limit: int) -> Text:
        """Return a range of an execution's whole text."""
        record = await self._execution(id)
        return await self._read(self._in_text, record, read_range, offset, limit)

    async def grep(self, id: str, pattern: str, offset: int, limit: int) -> TextMatches:
        """Return the lines of an execution's whole text that match."""
        record = await self._execution(id)

        def search(file: BinaryIO, offset: int, limit: int, omitted_bytes: int) -> TextMatches:
            return grep(file, pattern, offset, limit, omitted_bytes)

        return await self._read(self._in_text, record, search, offset, limit)

    async def search(self, query: SearchQuery) -> SearchResults:
        """Return executions that match, the newest first."""
        return await self._read(
            partial(
                self._history.search,
                query.q,
                agent=query.agent,
                status=query.status,
                session_id=query.session_id,
                since=query.since,
                until=query.until,
                has_image=query.has_image,
                after=query.after,
                limit=query.limit,
            )
        )

    async def blob(self, digest: str) -> tuple[Path, str, int]:
        """Return a large payload's file, MIME type and size; BlobNotFound if there is none."""
        return await self._read(self._history.blob, digest)

    async def journal(self, id: str) -> Path:
        """Return a session's journal; SessionNotFound if there is none."""
        return await self._read(self._history.journal_path, id)

    async def notebook(self, id: str) -> Iterator[str]:
        """Return a session as the text of a notebook, piece by piece; the pieces block."""
        return await self._read(self._history.notebook, id)

    def _in_text(
        self,
        record: ExecutionRecord,
        read: Callable[[BinaryIO, int, int, int], T],
        offset: int,
        limit: int,
    ) -> T:
        if record.text is None:
            data = transcript(record.outputs).encode()
            with io.BytesIO(data) as file:
                return read(file, offset, limit, 0)
        path, _, _ = self._history.blob(record.text)
        with path.open("rb") as file:
            return read(file, offset, limit, record.omitted_text_bytes)
