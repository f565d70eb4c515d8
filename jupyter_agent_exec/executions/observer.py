"""Interfaces of observers of a session's executions, and of their cells.

A session's worker calls its observers on the event loop. An observer must not fail
an execution, and must not block.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from ..errors import InvalidRequest
from ..models import Document, Execute, Placement
from ..records import CellWritten, Entry, ExecutionRecord
from ..types import CloseReason, ExecutionId
from .execution import LiveExecution
from .spec import Place

Notice: TypeAlias = Literal["active", "approvals", "kernel", "person"]
"""What is noticed in a session: an execution was added or has ended (`active`); the set of those
that await approval changed; it has another kernel, or none; a user's code in the kernel has been
recorded on disk (`person`)."""


class ExecutionObserver:
    """Is notified of events of one session's executions; override the methods you need."""

    def opened(self) -> None:
        """Handle that the session has been opened."""

    def closed(self, reason: CloseReason) -> None:
        """Handle that the session has been closed; none of its executions is left."""

    def accepted(self, execution: LiveExecution) -> None:
        """Handle an execution whose acceptance is on disk; it may run already."""

    def changed(self, execution: LiveExecution) -> None:
        """Handle a change of its status, its reason for waiting, or its outcome."""

    def output_changed(self, execution: LiveExecution) -> None:
        """Handle new output; called often."""

    def finished(self, record: ExecutionRecord) -> None:
        """Handle an execution whose final status is on disk; the record has all of its outputs."""

    def late(self, execution_id: ExecutionId) -> None:
        """Handle changed outputs of a finished execution; they are already in its record."""

    def noticed(self, what: Notice) -> None:
        """Handle something that concerns the session."""


class ExecutionCells(ExecutionObserver):
    """The cells of one session's executions; those of a session without a notebook are none."""

    def __init__(self) -> None:
        self._documents: dict[ExecutionId, Document] = {}

    async def place(self, request: Execute) -> Place | None:
        """Find the place of an execution's cell; None if it has none.

        The notebook is not changed, and nothing is recorded yet. A notebook that cannot be written
        is not an error. The execution's `document` reports it.

        Raises
        ------
        CellNotFound, DocumentChanged
            `placement` names a cell that does not exist, or that has changed.
        CellBusy
            The source would be replaced of a cell in which an execution waits or runs.
        InvalidRequest
            `placement` is inconsistent, or no source is left to run. The error names the field.
        """
        if isinstance(request.placement, Placement):
            raise InvalidRequest(
                "placement: the session's target is not a notebook.", field="placement"
            )
        if request.source is None:
            raise InvalidRequest("source: give the code to run.", field="source")
        return None

    async def current(self, execution: LiveExecution) -> Place | None:
        """Return the place of a cell whose source an execution replaces, as the notebook is now.

        None if it replaces none.

        Raises
        ------
        CellNotFound, InvalidRequest, NotebookNotFound, DocumentUnwritable
            The notebook has no such code cell, or cannot be read.
        """
        return None

    async def until_shown(self, execution: LiveExecution, timeout: float) -> None:
        """Wait up to `timeout` seconds until an execution's cell is written, or has failed."""

    async def close(self) -> None:
        """Write everything that is pending, within a time limit. Refuse further work."""

    def noted(self, entry: Entry) -> None:
        """Store the state of a cell from a journal entry."""
        if isinstance(entry, CellWritten):
            self._documents[entry.execution_id] = entry.document

    def document(self, execution_id: ExecutionId) -> Document | None:
        """Return the state of an execution's cell; None if it has none."""
        return self._documents.get(execution_id)

    def with_document(self, record: ExecutionRecord) -> ExecutionRecord:
        """Return an execution's record with the current state of its cell."""
        document = self.document(record.id)
        return record if document is None else replace(record, document=document)
