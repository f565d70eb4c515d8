"""The cells of a session's executions, as far as requests and answers are about them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from ..errors import InvalidRequest
from ..models import Document, Execute, Placement
from ..records import CellWritten, Entry, ExecutionRecord
from ..types import ExecutionId
from .execution import LiveExecution
from .observer import ExecutionCells, Place


class ShownCells:
    """Finds the places of cells, and tells what became of them.

    Parameters
    ----------
    cells
        None if the session's target is not a notebook.
    """

    def __init__(self, cells: ExecutionCells | None) -> None:
        self._cells = cells
        self._documents: dict[ExecutionId, Document] = {}

    async def place(self, asked: Execute) -> Place | None:
        """Find the place of an execution's cell; None if it has none.

        Raises
        ------
        InvalidRequest, CellNotFound, DocumentChanged
            Nothing is to be run.
        """
        if self._cells is None and isinstance(asked.placement, Placement):
            raise InvalidRequest(
                "placement: the session's target is not a notebook.", field="placement"
            )
        if self._cells is not None and asked.placement != "none":
            return await self._cells.find(asked.source, asked.placement)
        if asked.source is None:
            raise InvalidRequest("source: what is to be run?", field="source")
        return None

    def noted(self, entry: Entry) -> None:
        """Take note of what is recorded about a cell."""
        if isinstance(entry, CellWritten):
            self._documents[entry.execution_id] = entry.document

    def document(self, id: ExecutionId) -> Document | None:
        """Return what became of an execution's cell; None if it has none."""
        document = None if self._cells is None else self._cells.document(id)
        return document or self._documents.get(id)

    def with_document(self, record: ExecutionRecord) -> ExecutionRecord:
        """Return the record of an execution with what became of its cell since."""
        document = self.document(record.id)
        return record if document is None else replace(record, document=document)

    async def until_shown(self, execution: LiveExecution, timeout: float) -> None:
        """Wait until a finished execution's cell is in the notebook, or never will be."""
        if self._cells is not None and execution.spec.place is not None and timeout:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._cells.written(execution.id), timeout)

    async def close(self) -> None:
        """Write what is still to be written, within bounds."""
        if self._cells is not None:
            await self._cells.close()
