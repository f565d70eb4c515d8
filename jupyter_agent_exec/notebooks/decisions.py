"""What all decisions of people about a notebook have in common: how they are recorded and told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from ..errors import CellNotFound, HistoryUnavailable, NotFinished
from ..journal.discarded import DiscardedCells
from ..models import Document, Session
from ..records import SERVER, CellWritten, Entry, ExecutionRecord, Payload, timestamp
from ..sessions.publishing import Publish, Told
from ..types import FINAL_STATUSES, ExecutionId, SessionId
from .execution_cells import Placing

T = TypeVar("T")

TRIES: Final = 3
"""How often to look again at a notebook that changes at this very moment."""

PAGE: Final = 100
"""How many executions of a session are looked at together."""


class Sessions(Protocol):
    """What is asked of the sessions."""

    async def session(self, id: str) -> Session:
        """Return a session; SessionNotFound if there is none."""

    async def execution(self, id: str) -> ExecutionRecord:
        """Return an execution; ExecutionNotFound if there is none."""

    async def executions(
        self, id: str, *, after: int | None, before: int | None, limit: int
    ) -> tuple[list[ExecutionRecord], int | None]:
        """Return a session's executions in order, and where to go on."""

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Do something that blocks on the disk."""


class Deciding(Protocol):
    """What is asked of the history."""

    def decide(
        self, session_id: SessionId, entries: Sequence[Entry], payloads: Sequence[Payload] = ()
    ) -> None:
        """Record a decision, durable on return; HistoryUnavailable if it is not recorded."""

    def discarded_cells(
        self, session_id: SessionId, wanted: Collection[ExecutionId]
    ) -> DiscardedCells:
        """Return what people took out of a session's notebook."""


class DecisionsBase:
    """Base of those who carry out what people decide, in open sessions and in closed ones."""

    def __init__(
        self,
        sessions: Sessions,
        history: Deciding,
        placing: Placing,
        publish: Publish,
        *,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._placing = placing
        self._publish = publish
        self._log = log

    async def _finished(self, id: str) -> ExecutionRecord:
        """Return an execution that can be decided on.

        Raises
        ------
        ExecutionNotFound, NotFinished
        """
        record = await self._sessions.execution(id)
        if record.status not in FINAL_STATUSES:
            raise NotFinished(
                f"The execution is {record.status}; decide when it has finished.",
                execution_id=record.id,
                status=record.status,
            )
        return record

    async def _all(
        self, session_id: str, concerned: Callable[[Document], bool]
    ) -> list[ExecutionRecord]:
        """Return the executions of a session whose document is as asked."""
        found: list[ExecutionRecord] = []
        after: int | None = 0
        while after is not None:
            records, after = await self._sessions.executions(
                session_id, after=after, before=None, limit=PAGE
            )
            found += [
                record
                for record in records
                if record.status in FINAL_STATUSES
                and record.document is not None
                and concerned(record.document)
            ]
        return found

    async def _record(
        self, session_id: SessionId, entries: Sequence[Entry], payloads: Sequence[Payload] = ()
    ) -> None:
        await self._sessions.in_thread(partial(self._history.decide, session_id, entries, payloads))

    async def _tell(self, record: ExecutionRecord, document: Document) -> None:
        """Record what has become of a cell, and tell whoever watches."""
        entry = CellWritten(at=timestamp(), by=SERVER, execution_id=record.id, document=document)
        try:
            if not await self._placing.note(record.session_id, entry):
                await self._record(record.session_id, [entry])
        except HistoryUnavailable as error:
            self._log.warning("What became of a cell is not recorded: %s", error.message)
        self._placing.changed(record.session_id, record.id, document)
        told = Told(await self._sessions.session(record.session_id))
        self._publish("execution", told, record.id, status=record.status, seq=record.seq)


def no_cell(record: ExecutionRecord) -> CellNotFound:
    """Return what is raised if an execution has no cell that could be decided on."""
    return CellNotFound(
        "The execution has no cell in a notebook.", execution_id=record.id, cell_ids=[]
    )
