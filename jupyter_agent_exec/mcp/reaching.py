"""Whether a call may do what it asks for: its scope, and what an agent token reaches."""

from __future__ import annotations

from ..auth.scopes import Scope
from .call import Call


async def reach_session(call: Call, scope: Scope, session_id: str) -> None:
    """Look whether something may be done to a session.

    Raises
    ------
    Forbidden, SessionNotFound
    """
    await call.authorize(scope)
    await call.doors.access.session(call.caller, scope, session_id)


async def reach_execution(call: Call, scope: Scope, execution_id: str) -> None:
    """Look whether something may be done to an execution.

    Raises
    ------
    Forbidden, ExecutionNotFound
    """
    await call.authorize(scope)
    await call.doors.access.execution(call.caller, scope, execution_id)


async def reach_notebook(call: Call, scope: Scope, path: str) -> None:
    """Look whether something may be done to the notebook at a path.

    Raises
    ------
    Forbidden, NotebookNotFound
    """
    await call.authorize(scope)
    call.doors.access.notebook(call.caller, scope, path)
