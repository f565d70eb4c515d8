"""What an execution is a new version of, so that whoever approves it sees the difference."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ..errors import ExecutionNotFound, InvalidRequest
from ..models import Execute
from ..records import ExecutionRecord
from ..types import ExecutionId, SessionId
from .execution import LiveExecution
from .observer import Place


class Revised(NamedTuple):
    """What an execution is a new version of."""

    execution_id: ExecutionId | None
    """None if it is no execution."""
    source: str | None
    """None if it is nothing."""


def revised(
    asked: Execute, named: str | None, place: Place | None, last: ExecutionRecord | None
) -> Revised:
    """Return what an execution is a new version of.

    Parameters
    ----------
    named
        The source of the execution that it names.
    last
        The session's last execution, if that was rejected: what is meant when none is named.
    """
    if asked.revises is not None:
        return Revised(asked.revises, named)
    rejected = Revised(None, None) if last is None else Revised(last.id, last.source)
    if place is not None and place.replaces is not None:
        return rejected._replace(source=place.replaces)
    return rejected


async def source_of(
    named: ExecutionId | None,
    session_id: SessionId,
    find: Callable[[ExecutionId], Awaitable[LiveExecution | ExecutionRecord]],
) -> str | None:
    """Return the source of the execution that is named; None if none is.

    Raises
    ------
    InvalidRequest
        The session has no such execution.
    """
    if named is None:
        return None
    try:
        found = await find(named)
    except ExecutionNotFound:
        found = None
    if found is None or found.session_id != session_id:
        raise InvalidRequest("revises: the session has no such execution.", field="revises")
    return found.source
