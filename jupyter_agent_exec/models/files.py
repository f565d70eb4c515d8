"""The files in the folder in which a session's kernel works."""

from __future__ import annotations

from ..types import ExecutionId
from .base import Answer


class SessionFile(Answer, frozen=True, kw_only=True):
    """A file or a folder."""

    path: str
    """Relative to the session's folder, with slashes."""
    is_folder: bool
    bytes: int | None
    """Null for a folder."""
    mimetype: str | None
    modified_at: str
    execution_id: ExecutionId | None = None
    """The session's last execution that is known to have written it."""


class SessionFileList(Answer, frozen=True, kw_only=True):
    """What is in a session's folder, or in one below it, by path."""

    files: list[SessionFile]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
