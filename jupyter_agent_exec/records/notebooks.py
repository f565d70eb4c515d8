"""Entries about a session's notebook."""

from __future__ import annotations

from ..models import Document
from ..types import Digest, ExecutionId, Via
from .base import Entry


class NotebookCreated(Entry, frozen=True, kw_only=True, tag="notebook_created"):
    """There was no notebook at the session's path, so an empty one was made."""

    path: str


class NotebookMoved(Entry, frozen=True, kw_only=True, tag="notebook_moved"):
    """The session's notebook has another path."""

    path: str
    before: str


class CellWritten(Entry, frozen=True, kw_only=True, tag="cell_written"):
    """What became of an execution's cell in the notebook."""

    execution_id: ExecutionId
    document: Document


class NotebookEditAsked(Entry, frozen=True, kw_only=True, tag="notebook_edit_asked"):
    """The agent is about to change cells of the notebook.

    What came of it is the next `notebook_edited` or `notebook_edit_refused` of this path; if there
    is none, the server died in between, and nobody knows.
    """

    path: str
    edits: Digest
    """JSON array of the edits, as they were asked for."""


class NotebookEditRefused(Entry, frozen=True, kw_only=True, tag="notebook_edit_refused"):
    """What the agent was about to change has not been changed."""

    path: str
    code: str
    message: str
    """A sentence: why not."""


class NotebookEdited(Entry, frozen=True, kw_only=True, tag="notebook_edited"):
    """The agent changed cells of the notebook."""

    path: str
    via: Via
    before: Digest
    """JSON: ``{"order": [cell id, …], "cells": {cell id: {"cell_type", "source"}}}`` with the
    cells that the edits touch, as they were; `order` is of the whole notebook."""
    after: Digest
    """The same, as they are since."""
