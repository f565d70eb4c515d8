"""Answering what the code of an execution asks for, whichever session's it is."""

from __future__ import annotations

from ..auth.scopes import Caller
from ..errors import InputNotAsked
from ..models import GiveInput
from ..records import ExecutionRecord
from .manager import AgentSessions


async def give_input(
    manager: AgentSessions, id: str, given: GiveInput, caller: Caller
) -> ExecutionRecord:
    """Answer what an execution's code asks for; return the execution as it goes on.

    Raises
    ------
    ExecutionNotFound
        There is no such execution.
    InputNotAsked, Paused, ApprovalRequired, TooManyRequests, HistoryUnavailable
        Nothing was answered.
    """
    found = manager.watching(id)
    if found is None:
        record = await manager.unwatched(id)
        raise InputNotAsked(
            f"The execution has finished with status {record.status}.",
            execution_id=record.id,
            status=record.status,
        )
    session, execution = found
    if caller.token is not None:  # the user answers in JupyterLab, also in a pause
        manager.admit(session, caller, "An agent's answer", is_code=True, executions=1)
    await session.give_input(execution, given, caller.by())
    return await manager.execution(id, given.wait)
