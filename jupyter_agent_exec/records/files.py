"""Entries about the files in a session's folder."""

from __future__ import annotations

from ..types import Digest
from .base import Entry


class FileUploaded(Entry, frozen=True, kw_only=True, tag="file_uploaded"):
    """The agent put a file into the session's folder; written just before it appears there."""

    path: str
    """Relative to the session's folder, with slashes."""
    bytes: int
    sha256: Digest
    replaced: bool = False
    """Whether there was a file at that path."""


class FileDeleted(Entry, frozen=True, kw_only=True, tag="file_deleted"):
    """The agent deleted a file, or an empty folder; written just before it is gone."""

    path: str
    bytes: int | None = None
    """Null for a folder."""
    sha256: Digest | None = None
    """Of what the file held; null for a folder, and if it was too large to be read for that."""


class FileUnchanged(Entry, frozen=True, kw_only=True, tag="file_unchanged"):
    """What the entry before said of a file did not come to be: it is as it was, or is not there."""

    path: str
