"""Requests that the client and its sessions both send, and the wait for an execution."""

from __future__ import annotations

import sys
from typing import Final

from .. import models
from ..types import FINAL_STATUSES
from .connection import Connection
from .display import waiting
from .requests import contents_path, segment

WAIT_SECONDS: Final = 30.0
"""How long one request waits for an execution before the client sends another one."""

ANSWER_SECONDS: Final = 30.0
"""Additional seconds that the server may take to answer."""


async def get_session(connection: Connection, session_id: str) -> models.Session:
    """Return the current state of a session."""
    return await connection.get(f"/sessions/{segment(session_id)}", models.Session)


async def get_execution(connection: Connection, execution_id: str) -> models.Execution:
    """Return the current state of an execution."""
    return await connection.get(f"/executions/{segment(execution_id)}", models.Execution)


async def give_input(
    connection: Connection, execution_id: str, value: str, asked_at: str | None
) -> models.Execution:
    """Answer the input request of an execution."""
    path = f"/executions/{segment(execution_id)}/input"
    request = models.GiveInput(value=value, asked_at=asked_at)
    return await connection.post(path, request, models.Execution)


async def read_cells(
    connection: Connection, path: str, outputs: bool, text_limit: int | None, by: str | None = None
) -> models.NotebookCells:
    """Read the notebook at a contents path, perhaps with the edits that a session proposes."""
    query = {"outputs": outputs and None, "text_limit": text_limit, "proposed_by": by}
    return await connection.get(cells_path(path), models.NotebookCells, **query)


def cells_path(path: str) -> str:
    """Return the path of the cells of the notebook at a contents path."""
    return f"/notebooks/{contents_path(path)}/cells"


async def finished(
    connection: Connection, current: models.Execution, *, until_input: bool = False
) -> models.Execution:
    """Wait until an execution has finished, without a time limit.

    Parameters
    ----------
    until_input
        Return also when its code requests input.
    """
    is_printed = False
    while current.status not in FINAL_STATUSES:
        is_printed = is_printed or print_needed_decision(current)
        asked = current.input
        if until_input and asked is not None:
            break
        current = await connection.get(
            f"/executions/{current.id}",
            models.Execution,
            WAIT_SECONDS + ANSWER_SECONDS,
            wait=f"{WAIT_SECONDS:g}",
            asked_at=None if asked is None else asked.asked_at,
        )
    return current


def print_needed_decision(current: models.Execution) -> bool:
    """Print on standard error which decision a user must make; return whether one must.

    Otherwise, nothing would show why the program waits, perhaps for hours.
    """
    behind = current.waiting_for
    if behind is None or behind.who not in ("approval", "pause"):
        return False
    sys.stderr.write(f"jupyter-agent-exec: {current.id} {waiting(behind, current.id)}.\n")
    sys.stderr.flush()
    return True
