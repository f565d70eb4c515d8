"""People's notebooks: their cells, and edits of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..types import CellId, CellType, Digest, ExecutionId, SessionId, Via
from .base import Answer, Chain, Request, Sha256


class CellPart(Request, frozen=True, kw_only=True):
    """A piece of a cell that is split."""

    cell_type: CellType
    source: str


class InsertCell(Request, frozen=True, kw_only=True, tag_field="op", tag="insert"):
    """Add a cell: after or before another, or at the end."""

    cell_type: CellType
    source: str
    after: CellId | None = None
    before: CellId | None = None


class ReplaceCell(Request, frozen=True, kw_only=True, tag_field="op", tag="replace"):
    """Give a cell another source, or another type."""

    cell_id: CellId
    source: str
    cell_type: CellType | None = None
    source_sha256: Sha256 | None = None
    """Of the source that it must still have."""


class MoveCell(Request, frozen=True, kw_only=True, tag_field="op", tag="move"):
    """Move a cell: after or before another, or to the end."""

    cell_id: CellId
    after: CellId | None = None
    before: CellId | None = None


class DeleteCell(Request, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Take a cell out."""

    cell_id: CellId
    source_sha256: Sha256 | None = None


class SplitCell(Request, frozen=True, kw_only=True, tag_field="op", tag="split"):
    """Put several cells in the place of one; the first keeps its id."""

    cell_id: CellId
    parts: Annotated[list[CellPart], Meta(min_length=1, max_length=100)]
    source_sha256: Sha256 | None = None


class ClearOutputs(Request, frozen=True, kw_only=True, tag_field="op", tag="clear_outputs"):
    """Clear a code cell's outputs, or those of all cells."""

    cell_id: CellId | None = None


Edit = InsertCell | ReplaceCell | MoveCell | DeleteCell | SplitCell | ClearOutputs


class EditNotebook(Request, frozen=True, kw_only=True):
    """Change a notebook's cells: all of the edits, in order, or none."""

    session_id: SessionId
    """An open session whose target is this notebook; its journal takes the edits."""
    edits: Annotated[list[Edit], Meta(min_length=1, max_length=1000)]
    hash: Sha256 | None = None
    """Of the notebook, as it was read: refused if its cells have changed since."""


class NotebookCell(Answer, frozen=True, kw_only=True):
    """A cell as it is in a notebook now."""

    id: CellId | None
    """Null in a notebook older than nbformat 4.5."""
    index: int
    cell_type: str
    source: str
    source_sha256: Digest
    execution_count: int | None
    text: str
    """Its outputs, as a language model should read them."""
    execution_id: ExecutionId | None
    """Of the agent's execution that it shows."""
    agent: str | None


class NotebookCells(Answer, frozen=True, kw_only=True):
    """A notebook as it is now, unsaved edits included."""

    path: str
    hash: Digest
    """Of ids, types and sources of all cells, in order."""
    via: Via
    cells: list[NotebookCell]


class NotebookEdited(Answer, frozen=True, kw_only=True):
    """What became of edits."""

    path: str
    hash: Digest
    """Of the notebook after them."""
    via: Via
    cell_ids: list[list[CellId]]
    """For each edit, the cells that it added or changed."""
    chain: Chain


class OpenNotebook(Answer, frozen=True, kw_only=True):
    """A notebook that has a kernel, or is open in a tab or a live document."""

    path: str
    via: Via
    kernel: NotebookKernel | None
    tabs: int
    """How many JupyterLab tabs are known to show it."""
    unsaved: bool | None
    """Whether a tab has changes that are not on disk; null if nobody knows."""
    session_ids: list[SessionId]
    """Open agent sessions on it."""


class NotebookKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a notebook."""

    id: str
    name: str
    execution_state: str


class OpenNotebookList(Answer, frozen=True, kw_only=True):
    """Notebooks in use, by path."""

    notebooks: list[OpenNotebook]
