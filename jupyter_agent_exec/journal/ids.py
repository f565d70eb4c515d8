"""Checks ids before they become part of a path."""

from __future__ import annotations

import re
from typing import Final

from ..errors import BlobNotFound, ExecutionNotFound, SessionNotFound
from ..types import DIGEST, Digest, ExecutionId, SessionId

_ULID: Final = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_SESSION: Final = re.compile(f"s_{_ULID}")
_EXECUTION: Final = re.compile(f"x_{_ULID}")


def check_session_id(text: str) -> SessionId:
    """Return `text` as the id of a session.

    Raises
    ------
    SessionNotFound
        If it cannot be one.
    """
    if not _SESSION.fullmatch(text):
        raise SessionNotFound("There is no such session.", session_id=text)
    return SessionId(text)


def check_execution_id(text: str) -> ExecutionId:
    """Return `text` as the id of an execution.

    Raises
    ------
    ExecutionNotFound
        If it cannot be one.
    """
    if not _EXECUTION.fullmatch(text):
        raise ExecutionNotFound("There is no such execution.", execution_id=text)
    return ExecutionId(text)


def is_execution_id(text: str) -> bool:
    """Return whether `text` may be the id of an execution, or of the cell that it made."""
    return _EXECUTION.fullmatch(text) is not None


def check_digest(text: str) -> Digest:
    """Return `text` as a digest.

    Raises
    ------
    BlobNotFound
        If it is not 64 lower-case hexadecimal characters.
    """
    if not DIGEST.fullmatch(text):
        raise BlobNotFound("There is no such payload.", digest=text)
    return Digest(text)
