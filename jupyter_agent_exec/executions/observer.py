"""Who is told what happens to a session's executions, and what a session needs of its cells.

The queue of a session's kernel calls its observers on the event loop. An observer must not fail
an execution, and must not block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, Protocol

from ..models import Document, Placement
from ..records import ExecutionRecord
from ..types import ExecutionId

if TYPE_CHECKING:
    from .execution import LiveExecution


class ExecutionObserver:
    """Is told what happens to the executions of one session; override what you need."""

    def accepted(self, execution: LiveExecution) -> None:
        """Handle an execution whose acceptance is on disk; it may run already."""

    def changed(self, execution: LiveExecution) -> None:
        """Handle a change of the status, of what it waits for, or of its outcome."""

    def output_changed(self, execution: LiveExecution) -> None:
        """Handle new output; called often."""

    def finished(self, record: ExecutionRecord) -> None:
        """Handle an execution whose final status is on disk; the record has all of its outputs."""

    def late(self, execution_id: ExecutionId) -> None:
        """Handle a change of the outputs of a finished execution; its record has them."""

    def approvals_changed(self) -> None:
        """Handle that other executions than before wait for a user's approval."""

    def kernel_changed(self) -> None:
        """Handle that the session has another kernel, or none."""

    def person_ran(self) -> None:
        """Handle that it is on disk what a user ran in the kernel."""

    def active(self) -> None:
        """Handle that an execution was accepted, or has ended."""


class Place(Protocol):
    """Where the cell of an execution goes, as `ExecutionCells.find` returns it."""

    @property
    def source(self) -> str:
        """The source to run: the one in the request, or the cell's."""

    @property
    def replaces(self) -> str | None:
        """The source that the cell has now and is going to lose; None if there is none."""


class ExecutionCells(ExecutionObserver, ABC):
    """Shows the executions of one session as cells of its notebook."""

    @abstractmethod
    async def find(self, source: str | None, placement: Placement | Literal["end"]) -> Place:
        """Find the place of a cell before anything is recorded; the notebook is not changed.

        A notebook that cannot be written is no reason to refuse: the execution's `document` says
        so.

        Raises
        ------
        CellNotFound, DocumentChanged
            `placement` names a cell that does not exist, or that has changed.
        InvalidRequest
            `placement` contradicts itself, or leaves no source to run; names the field.
        """

    @abstractmethod
    def document(self, execution_id: ExecutionId) -> Document | None:
        """Return the state of an execution's cell; None if it has no cell."""

    @abstractmethod
    async def written(self, execution_id: ExecutionId) -> None:
        """Wait until the cell of a finished execution is acknowledged, or never will be.

        The caller sets a timeout, and cancels the wait when it is over.
        """

    @abstractmethod
    async def close(self) -> None:
        """Write what is left to write, within a time limit; take nothing after that."""
