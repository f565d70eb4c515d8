"""What is found in the history: texts, matches, payloads, whole records."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from ..auth.scopes import Caller
from ..errors import ServerStopping
from ..journal.history import History
from ..journal.query import Criteria, Pictured
from ..models import JournalEventList, SearchResults, Text, TextMatches
from ..ranges import grep, read_range
from ..records import ExecutionRecord
from ..text import transcript
from ..types import TokenId
from .queries import CriteriaQuery, EventsQuery, ImagesQuery, SearchQuery

T = TypeVar("T")


class Read(Protocol):
    """Reads the history in a thread, once it has been taken up."""

    def __call__(self, read: Callable[..., T], *args: Any, **named: Any) -> Awaitable[T]:
        """Read it."""


class Finding:
    """Finds things in the history.

    Parameters
    ----------
    long_reads
        Reads what may take long.
    execution
        Returns an execution as it stands.
    """

    def __init__(
        self,
        history: History,
        read: Read,
        long_reads: LongReads,
        execution: Callable[[str], Awaitable[ExecutionRecord]],
    ) -> None:
        self._history = history
        self._long_reads = long_reads
        self._read = read
        self._execution = execution

    async def text(self, caller: Caller, id: str, offset: int, limit: int) -> Text:
        """Return a range of an execution's whole text."""
        record = await self._execution(id)
        read = partial(self._in_text, record, read_range, offset, limit)
        return await self._long_reads.read(caller, read)

    async def grep(
        self, caller: Caller, id: str, pattern: str, offset: int, limit: int
    ) -> TextMatches:
        """Return the lines of an execution's whole text that match."""
        record = await self._execution(id)

        def search(file: BinaryIO, offset: int, limit: int, omitted_bytes: int) -> TextMatches:
            return grep(file, pattern, offset, limit, omitted_bytes)

        read = partial(self._in_text, record, search, offset, limit)
        return await self._long_reads.read(caller, read)

    async def search(self, query: SearchQuery, *, only: TokenId | None = None) -> SearchResults:
        """Return executions that match, the newest first.

        Parameters
        ----------
        only
            The agent token with which their sessions must have been opened; None is any, or none.
        """
        return await self._read(
            self._history.search, _criteria(query, only), after=query.after, limit=query.limit
        )

    async def images(
        self, query: ImagesQuery, *, only: TokenId | None = None
    ) -> tuple[list[Pictured], str | None]:
        """Return images: of one session in order, else the newest first; and where to go on.

        `only` as for `search`.
        """
        return await self._read(
            self._history.images, _criteria(query, only), after=query.after, limit=query.limit
        )

    async def events(self, id: str, query: EventsQuery) -> JournalEventList:
        """Return what is between a session's executions; SessionNotFound if there is none."""
        events, next_after = await self._read(
            self._history.events, id, after=query.after, limit=query.limit
        )
        return JournalEventList(events=events, next_after=next_after)

    async def blob(self, digest: str) -> tuple[Path, str, int]:
        """Return a large payload's file, MIME type and size; BlobNotFound if there is none."""
        return await self._read(self._history.blob, digest)

    async def journal(self, id: str) -> Path:
        """Return a session's journal; SessionNotFound if there is none."""
        return await self._read(self._history.journal_path, id)

    async def notebook(self, id: str, *, clean: bool = False) -> Iterator[str]:
        """Return a session as the text of a notebook, piece by piece; the pieces block."""
        return await self._read(partial(self._history.notebook, clean=clean), id)

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


def _criteria(query: CriteriaQuery, only: TokenId | None) -> Criteria:
    asked = {name: getattr(query, name) for name in CriteriaQuery.__struct_fields__}
    return Criteria(**asked, token=only)


THREADS: Final = 2


class LongReads:
    """Reads for one caller one thing at a time, so that nobody takes all the threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agent-exec-text")
        self._stopping = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, caller: Caller, read: Callable[[], T]) -> T:
        """Read something when the caller's reads before have ended.

        Raises
        ------
        ServerStopping
        """
        whose = caller.username if caller.token is None else caller.token.id
        async with self._locks.setdefault(whose, asyncio.Lock()):
            if self._stopping:
                raise ServerStopping("The server is stopping; nothing new is read.")
            return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def stop(self) -> None:
        """Take nothing new, and return when what is being read has been. Idempotent."""
        self._stopping = True
        await asyncio.to_thread(self._threads.shutdown)
