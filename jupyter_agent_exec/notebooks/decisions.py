"""Users' decisions about agents' outputs in their notebooks: accept, discard, restore.

A decision is recorded before the notebook is changed. Later updates of the cell respect it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import (
    CellNotFound,
    DocumentChanged,
    HistoryUnavailable,
    NotFinished,
)
from ..journal.history import History
from ..models import Document
from ..records import (
    SERVER,
    By,
    CellWritten,
    ExecutionRecord,
    OutputsAccepted,
    timestamp,
)
from ..sessions.activity import Activity
from ..sessions.session_history import SessionHistory
from ..types import FINAL_STATUSES
from .execution_cells import NotebookWriter
from .finished_cells import cell_to_decide_on, finished_cell


class DecisionsBase:
    """Base of the decisions about outputs and about whole cells, also in closed sessions.

    Decisions about one execution raise ExecutionNotFound, NotFinished, CellNotFound,
    DocumentChanged, NotebookNotFound, DocumentUnwritable or HistoryUnavailable. Decisions about a
    session skip executions for which no decision is possible, and raise SessionNotFound,
    NotebookNotFound, DocumentUnwritable or HistoryUnavailable.
    """

    def __init__(
        self,
        sessions: SessionHistory,
        history: History,
        writer: NotebookWriter,
        activity: Activity,
        *,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._history = history
        self._writer = writer
        self._activity = activity
        self._log = log

    async def _finished(self, id: str) -> ExecutionRecord:
        """Return an execution, and check that it has finished.

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
        """Return the finished executions of a session whose document matches."""
        return [
            record
            async for record in self._sessions.all_executions(session_id)
            if record.status in FINAL_STATUSES
            and record.document is not None
            and concerned(record.document)
        ]

    async def _tell(self, record: ExecutionRecord, document: Document) -> None:
        """Record and publish the state of a cell."""
        cells = self._writer.of(record.session_id)
        try:
            if cells is not None:
                await cells.tell(record.id, document)
            else:
                entry = CellWritten(
                    at=timestamp(), by=SERVER, execution_id=record.id, document=document
                )
                self._writer.settle(document.path, document.via)
                await self._sessions.decide(record.session_id, [entry])
        except HistoryUnavailable as error:
            self._log.warning("What became of a cell is not recorded: %s", error.message)
        session = await self._sessions.session(record.session_id)
        self._activity.publish(
            "execution",
            session.id,
            record.id,
            length=session.chain.length,
            status=record.status,
            seq=record.seq,
        )


def no_cell(record: ExecutionRecord) -> CellNotFound:
    """Return the error for an execution that has no cell."""
    return CellNotFound(
        "The execution has no cell in a notebook.", execution_id=record.id, cell_ids=[]
    )


class OutputDecisions(DecisionsBase):
    """Accepts and discards outputs, and restores the previous ones."""

    async def accept(self, id: str, caller: Caller) -> ExecutionRecord:
        """Put an execution's original outputs into its cell, and trust the cell."""
        return await self._decide(id, caller.by())

    async def accept_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Accept all held outputs of a session whose cells still exist."""
        held = await self._all(session_id, lambda document: document.outputs == "held")
        return await self._each(held, self.accept, caller)

    async def _each(
        self,
        records: Iterable[ExecutionRecord],
        decide: Callable[[str, Caller], Awaitable[ExecutionRecord]],
        caller: Caller,
    ) -> list[ExecutionRecord]:
        decided: list[ExecutionRecord] = []
        for record in records:
            try:
                decided.append(await decide(record.id, caller))
            except (NotFinished, CellNotFound, DocumentChanged):
                continue  # the user has changed the cell
        return decided

    async def _decide(self, id: str, by: By) -> ExecutionRecord:
        record = await self._finished(id)
        async with self._writer.lock(record.id):  # no write to the cell is under way
            record = await self._sessions.execution(id)
            session = await self._sessions.session(record.session_id)
            document = record.document
            if document is None or session.path is None:
                raise no_cell(record)
            _, notebook = await self._writer.documents.read(session.path)
            cell_to_decide_on(notebook, record)
            entry = OutputsAccepted(at=timestamp(), by=by, execution_id=record.id)
            await self._sessions.decide(session.id, [entry])
            record = await self._sessions.execution(id)
            shown = await finished_cell(record)
            handle = await self._writer.documents.revise(
                session.path,
                lambda notebook, _: shown.changes_of(cell_to_decide_on(notebook, record)),
            )
            document = replace(
                document, path=session.path, via=handle.via, outputs=shown.what, reason=None
            )
            await self._tell(record, document)
            return await self._sessions.execution(id)
