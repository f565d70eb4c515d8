"""What can be done to a notebook, in steps that every way to a document knows.

The same steps, as JSON, go to a JupyterLab tab over its WebSocket. Positions and cells are named by
cell id, never by index: a person may be typing meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from ..models import OutputChange
from ..types import CellId, Via


class Position(Struct, frozen=True, kw_only=True):
    """After or before a cell; at the end if neither is said, or if that cell is gone."""

    after: CellId | None = None
    before: CellId | None = None


class PutCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="put"):
    """Insert a cell. If one with its id is there already, nothing happens: it was put before."""

    cell: dict[str, Any]
    """An nbformat 4.5 cell without outputs."""
    at: Position


class MoveCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="move"):
    """Move a cell."""

    cell_id: CellId
    at: Position


class DeleteCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Take a cell out; nothing happens if it is gone."""

    cell_id: CellId


class SetSource(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_source"):
    """Give a cell another source."""

    cell_id: CellId
    source: str


class SetCell(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_cell"):
    """Say how an agent's execution stands in its cell."""

    cell_id: CellId
    agent_exec: dict[str, Any] | None
    """The cell's `metadata.agent_exec`, whole; null takes it away."""
    execution_count: int | None
    execution_state: Literal["idle", "running"]
    trusted: bool
    """Whether what is in the cell's outputs, or comes next, is inert or was accepted."""


class SetOutputs(Struct, frozen=True, kw_only=True, tag_field="op", tag="set_outputs"):
    """Change a code cell's outputs, step by step; a first step that truncates to 0 sets them."""

    cell_id: CellId
    changes: list[OutputChange]


Change = PutCell | MoveCell | DeleteCell | SetSource | SetCell | SetOutputs


class Expected(Struct, frozen=True, kw_only=True):
    """What must still hold for changes to be made. They are all made, or none is."""

    cells: dict[CellId, tuple[str, str]] = {}
    """Cell type and source of cells, by id."""
    counts: dict[CellId, int | None] = {}
    """Execution counts of code cells, by id: another one tells that somebody has run it."""
    order: list[CellId] | None = None
    """Ids of all cells; null if they do not matter."""


class Moved(Exception):
    """What was expected does not hold; nothing was done. Read again, and plan anew."""


class Unreachable(Exception):
    """The way leads to the document no more: the tab was closed, the room is gone.

    Whether changes that were under way have been made is not known. All changes but `SetOutputs`
    may be made again by another way; outputs are then set as a whole.
    """


class Notebook(Struct, frozen=True, kw_only=True):
    """A notebook as it is now, unsaved edits included."""

    cells: list[dict[str, Any]]
    """nbformat 4 cells; `source` and stream texts are strings. `id` is absent before 4.5."""
    metadata: dict[str, Any]
    nbformat_minor: int


class Way(Protocol):
    """A way to one open or stored document."""

    @property
    def via(self) -> Via:
        """Which kind of way this is."""

    @property
    def streams(self) -> bool:
        """Whether outputs may be sent as they come: the cost does not grow with the document."""

    async def read(self) -> Notebook:
        """Return the document.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, Unreachable
        """

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes, all or none; they are in the document when this returns.

        Raises
        ------
        Moved, Unreachable, NotebookNotFound, DocumentUnwritable
        """


class Reach(Protocol):
    """Finds a way of one kind."""

    async def reach(self, path: str) -> Way | None:
        """Return the way to the notebook at a contents path; None if this kind has none now.

        It is the same object as long as what it leads to is: whoever used it before may go on with
        what has changed since.
        """
