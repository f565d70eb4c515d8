"""Users' decisions to accept agents' outputs in their notebooks.

A decision is recorded before the notebook is changed. Later updates of the cell respect it.
"""

from __future__ import annotations

import logging

from ..auth.scopes import Caller
from ..errors import CellNotFound, DocumentChanged, HistoryUnavailable, NotFinished
from ..models import Document
from ..records import SERVER, CellWritten, ExecutionRecord, OutputsAccepted, timestamp
from ..sessions.activity import Activity
from ..sessions.session_history import SessionHistory
from ..types import FINAL_STATUSES
from .execution_cells import NotebookWriter
from .finished_cells import cell_shown, show_finished


class OutputDecisions:
    """Accepts outputs, also in closed sessions."""

    def __init__(
        self,
        sessions: SessionHistory,
        writer: NotebookWriter,
        activity: Activity,
        *,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._writer = writer
        self._activity = activity
        self._log = log

    async def accept_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Accept all held outputs of a session whose cells still show them.

        Raises
        ------
        SessionNotFound, NotebookNotFound, DocumentUnwritable, HistoryUnavailable
        """
        accepted: list[ExecutionRecord] = []
        async for record in self._sessions.all_executions(session_id):
            if record.document is not None and record.document.outputs == "held":
                try:
                    accepted.append(await self.accept(record.id, caller))
                except (NotFinished, CellNotFound, DocumentChanged):
                    continue  # it still runs, or the user has changed the cell
        return accepted

    async def accept(self, id: str, caller: Caller) -> ExecutionRecord:
        """Put an execution's original outputs into its cell, and trust the cell.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        record = await self._finished(id)
        async with self._writer.lock(record.id):  # no write to the cell is under way
            record = await self._sessions.execution(id)
            session = await self._sessions.session(record.session_id)
            if record.document is None or session.path is None:
                raise CellNotFound(
                    "The execution has no cell in a notebook.", execution_id=record.id, cell_ids=[]
                )
            _, notebook = await self._writer.documents.read(session.path)
            cell_shown(notebook, record)
            entry = OutputsAccepted(at=timestamp(), by=caller.by(), execution_id=record.id)
            await self._sessions.decide(session.id, [entry])
            record = await self._sessions.execution(id)
            document = await show_finished(
                self._writer.documents, session.path, record, unedited=False
            )
            await self._tell(record, document)
            return await self._sessions.execution(id)

    async def _finished(self, id: str) -> ExecutionRecord:
        record = await self._sessions.execution(id)
        if record.status not in FINAL_STATUSES:
            raise NotFinished(
                f"The execution is {record.status}; decide when it has finished.",
                execution_id=record.id,
                status=record.status,
            )
        return record

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
        self._activity.publish_execution(record, session.chain.length)
