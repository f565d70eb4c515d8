"""What a session with a notebook tells of its executions, so that their cells appear there.

Interfaces only. The session calls `Cells` on the event loop; nothing here may fail an execution
once it has been accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ..models import Document, OutputChange, Placement, WaitingFor
from ..records import By, Entry, ExecutionRecord, Payload
from ..types import ExecutionId, SessionId, Status


class Shown(Protocol):
    """An execution that has been accepted and has not finished, as its cell shows it."""

    id: ExecutionId
    source: str
    by: By
    status: Status

    @property
    def may_run(self) -> bool:
        """Whether people let it run."""

    @property
    def is_paused(self) -> bool:
        """Whether it was not sent yet, and waits since all agents are paused."""

    @property
    def waiting_for(self) -> WaitingFor | None:
        """Behind whom it waits; None if it does not."""

    def standing(self) -> ExecutionRecord:
        """Return what is known of it, but for its outputs."""

    def changes(self, version: int) -> tuple[int, list[OutputChange]]:
        """Return the version of its outputs, and how they changed since `version`; 0 is none."""


class Place(Protocol):
    """Where an execution's cell goes, as found by `Cells.find`."""

    @property
    def source(self) -> str:
        """What is to be run: what was asked, or what the cell holds."""

    @property
    def replaces(self) -> str | None:
        """The source that a cell has and is to lose; None if none does."""


class Cells(Protocol):
    """The cells of one session's executions in its notebook."""

    async def find(self, source: str | None, placement: Placement | Literal["end"]) -> Place:
        """Find the place of a cell, before anything is recorded; the document stays as it is.

        A notebook that cannot be written is no reason to refuse: the execution's `document` tells.

        Raises
        ------
        CellNotFound, DocumentChanged
            `placement` names a cell that is not there, or is not as it was: nothing is accepted.
        InvalidRequest
            `placement` contradicts itself, or leaves no source to run; names the field.
        """

    def accepted(self, execution: Shown, place: Place) -> None:
        """Take note that an execution's acceptance is on disk: its cell may appear."""

    def changed(self, execution: Shown) -> None:
        """Take note that its status, what it waits for, or its outputs changed; called often."""

    def finished(self, record: ExecutionRecord) -> None:
        """Take note that an execution has its final status, and all of its outputs."""

    def late(self, execution_id: ExecutionId) -> None:
        """Take note that outputs of a finished execution changed; its record has them."""

    def document(self, execution_id: ExecutionId) -> Document | None:
        """Return what became of a cell; None for an execution that has none to be placed."""

    async def written(self, execution_id: ExecutionId) -> None:
        """Wait until a finished execution's cell is acknowledged, or never will be.

        The caller sets a bound, and cancels the wait when it is over.
        """

    async def close(self) -> None:
        """Write what is still to be written, within bounds; take nothing after that."""


class CellsOwner(Protocol):
    """What cells may ask of the session that they belong to."""

    @property
    def id(self) -> SessionId:
        """The session."""

    @property
    def path(self) -> str | None:
        """Contents path of its notebook now."""

    async def note(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what has happened; kept if that cannot be written now."""

    async def recorded(self, execution_id: ExecutionId) -> ExecutionRecord:
        """Return a finished execution as it is in the history, late output included."""

    def document_changed(self, execution_id: ExecutionId) -> None:
        """Tell whoever watches that `Cells.document` has another answer."""


class MakeCells(Protocol):
    """Makes the cells of a session whose target is a notebook."""

    def __call__(self, owner: CellsOwner) -> Cells:
        """Return cells that nothing has been placed in yet."""
