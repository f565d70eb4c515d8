"""Reviews: a user's verdict on an execution after it ran, or on a whole session.

A review is an entry in the journal and nothing else: it changes neither a kernel nor a notebook,
and it may come years after the session closed.
"""

from __future__ import annotations

from ..auth.scopes import Caller
from ..errors import NotFinished
from ..models import Session, SetReview
from ..records import ExecutionRecord, Reviewed, timestamp
from ..sessions.activity import Activity
from ..sessions.session_history import SessionHistory
from ..types import FINAL_STATUSES, ExecutionId


class Reviews:
    """Records reviews, of open sessions and of closed ones."""

    def __init__(self, history: SessionHistory, activity: Activity) -> None:
        self._history = history
        self._activity = activity

    async def of_execution(self, id: str, request: SetReview, caller: Caller) -> ExecutionRecord:
        """Record a review of an execution.

        Raises
        ------
        ExecutionNotFound, NotFinished, HistoryUnavailable
        """
        record = await self._history.execution(id)
        if record.status not in FINAL_STATUSES:
            raise NotFinished(
                f"The execution is {record.status}; review it when it has finished.",
                execution_id=record.id,
                status=record.status,
            )
        session = await self._history.session(record.session_id)
        await self._record(session, request, caller, execution_id=record.id)
        record = await self._history.execution(id)
        session = await self._history.session(record.session_id)
        self._activity.publish(
            "execution", session, record.id, status=record.status, seq=record.seq
        )
        return record

    async def of_session(self, id: str, request: SetReview, caller: Caller) -> Session:
        """Record a review of all that a session has run so far.

        It covers the executions before the first that still waits or runs.

        Raises
        ------
        SessionNotFound, HistoryUnavailable
        """
        session = await self._history.session(id)
        up_to = await self._history.finished_up_to(id)
        await self._record(session, request, caller, up_to=up_to)
        session = await self._history.session(id)
        self._activity.publish("session", session, status=session.status)
        return session

    async def _record(
        self,
        session: Session,
        request: SetReview,
        caller: Caller,
        *,
        execution_id: ExecutionId | None = None,
        up_to: int = 0,
    ) -> None:
        entry = Reviewed(
            at=timestamp(),
            by=caller.by(),
            execution_id=execution_id,
            verdict=request.verdict,
            comment=request.comment or None,
            up_to=up_to,
        )
        await self._history.decide(session.id, [entry])
