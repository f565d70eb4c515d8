"""What people decide about an execution's outputs in the notebook: accept them, or discard them.

A decision is recorded before the notebook is changed, and is what later rewrites of the cell go by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from ..access.scopes import Caller
from ..errors import CellNotFound, DocumentChanged, HistoryUnavailable, NotFinished
from ..models import Document, Session
from ..notebooks.applying import id_of, joined
from ..notebooks.changes import Expected, Moved, Notebook
from ..records import (
    SERVER,
    CellWritten,
    Entry,
    ExecutionRecord,
    OutputsAccepted,
    OutputsDiscarded,
    timestamp,
)
from ..types import FINAL_STATUSES, CellId, SessionId
from .placing import Placing
from .rewriting import Decision, decidable, decided

T = TypeVar("T")

TRIES = 3
"""How often to look again at a notebook that changes at this very moment."""


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

    def decide(self, session_id: SessionId, entries: Sequence[Entry]) -> None:
        """Record a decision, durable on return; HistoryUnavailable if it is not recorded."""


class Decisions:
    """Accepts and discards outputs, of open sessions and of closed ones."""

    def __init__(
        self, sessions: Sessions, history: Deciding, placing: Placing, *, log: logging.Logger
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._placing = placing
        self._log = log

    async def accept(self, id: str, caller: Caller) -> ExecutionRecord:
        """Bring an execution's original outputs into its cell, and trust that.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        return await self._decide(id, "accepted", caller)

    async def discard(self, id: str, caller: Caller) -> ExecutionRecord:
        """Take an execution's outputs out of its cell; accepting them brings them back.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        return await self._decide(id, "discarded", caller)

    async def accept_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Accept the outputs of a session of which something is held, where the cell still is.

        Raises
        ------
        SessionNotFound, NotebookNotFound, DocumentUnwritable, HistoryUnavailable
        """
        accepted: list[ExecutionRecord] = []
        after: int | None = 0
        while after is not None:
            records, after = await self._sessions.executions(
                session_id, after=after, before=None, limit=100
            )
            for record in records:
                if record.document is None or record.document.outputs != "held":
                    continue
                try:
                    accepted.append(await self.accept(record.id, caller))
                except (NotFinished, CellNotFound, DocumentChanged):
                    continue  # it runs, or is a person's by now
        return accepted

    async def _decide(self, id: str, what: Decision, caller: Caller) -> ExecutionRecord:
        record = await self._sessions.execution(id)
        if record.status not in FINAL_STATUSES:
            raise NotFinished(
                f"The execution is {record.status}; decide when it has finished.",
                execution_id=record.id,
                status=record.status,
            )
        async with self._placing.lock(record.id):  # else its cell is still being written
            record = await self._sessions.execution(id)
            session = await self._sessions.session(record.session_id)
            document = record.document
            if document is None or session.path is None:
                raise CellNotFound(
                    "The execution has no cell in a notebook.", execution_id=record.id, cell_ids=[]
                )
            cell_id, notebook = await self._look(session.path, record)
            entry = OutputsAccepted if what == "accepted" else OutputsDiscarded
            await self._record(
                record, entry(at=timestamp(), by=caller.by(), execution_id=record.id)
            )
            document = replace(document, path=session.path, outputs=what, reason=None)
            await self._write(document, cell_id, notebook, record, what)
            return await self._sessions.execution(id)

    async def _look(self, path: str, record: ExecutionRecord) -> tuple[CellId, Notebook]:
        _, notebook = await self._placing.documents.read(path)
        return decidable(notebook, record), notebook

    async def _write(
        self,
        document: Document,
        id: CellId,
        notebook: Notebook,
        record: ExecutionRecord,
        what: Decision,
    ) -> None:
        """Change the cell, which a person may be changing too."""
        for _ in range(TRIES):
            expected = Expected(cells={id: ("code", _source(notebook, id))})
            try:
                via = await self._placing.documents.apply(
                    document.path, decided(id, record, what), expected
                )
            except Moved:
                _, notebook = await self._look(document.path, record)
                continue
            await self._tell(record, replace(document, via=via, status="written"))
            return
        raise DocumentChanged("The cell is being changed; try again.", cell_id=id)

    async def _tell(self, record: ExecutionRecord, document: Document) -> None:
        entry = CellWritten(at=timestamp(), by=SERVER, execution_id=record.id, document=document)
        try:
            if not await self._placing.note(record.session_id, entry):
                await self._record(record, entry)
        except HistoryUnavailable as error:
            self._log.warning("What became of a cell is not recorded: %s", error.message)
        self._placing.changed(record.session_id, record.id, document)

    async def _record(self, record: ExecutionRecord, entry: Entry) -> None:
        await self._sessions.in_thread(partial(self._history.decide, record.session_id, [entry]))


def _source(notebook: Notebook, id: CellId) -> str:
    return next(joined(cell["source"]) for cell in notebook.cells if id_of(cell) == id)
