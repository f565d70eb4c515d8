"""Publishes changes on the server's event bus: ids and statuses, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from ..models import Session
from ..types import ExecutionId, SessionId

EVENTS_SCHEMA_ID: Final = "https://schema.jupyter.org/jupyter_agent_exec/activity/v1"
EVENTS_SCHEMA: Final = Path(__file__).parent.parent / "events" / "activity.v1.yaml"

MERGE_DELAY = 0.02
"""Seconds for which events about the same thing are merged: only the last of them counts."""


Action: TypeAlias = Literal[
    "opened",
    "closed",
    "kernel",
    "execution",
    "session",
    "notebook",
    "person",
    "approvals",
    "tokens",
]
"""What changed: the session began or ended, its kernel, one of its executions, what people decided
about the session, its notebook; that a person ran something in its kernel; or, of no session, what
asks for approval, the policy or the pause, or which agent tokens there are."""


class Changed(Protocol):
    """A session, open or closed."""

    @property
    def id(self) -> SessionId:
        """The session's id."""

    def record(self) -> Session:
        """Return the session as it stands."""


class Told:
    """A session that need not be open, as it stood when something changed."""

    def __init__(self, record: Session) -> None:
        self._record = record

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._record.id

    def record(self) -> Session:
        """Return the session as it stood."""
        return self._record


class Publish(Protocol):
    """Tells it."""

    def __call__(
        self,
        action: Action,
        session: Changed | None,
        execution_id: ExecutionId | None = None,
        **told: Any,
    ) -> None:
        """Tell it."""


class Activity:
    """Numbers the events and emits them, a moment after the answers that they tell of.

    Parameters
    ----------
    emit
        Sends an event that fits the schema.
    """

    def __init__(self, emit: Callable[[dict[str, Any]], None]) -> None:
        self._emit = emit
        self._serial = 0
        self._waiting: dict[tuple[str, ...], tuple[Changed | None, dict[str, Any]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def publish(
        self,
        action: Action,
        session: Changed | None,
        execution_id: ExecutionId | None = None,
        **told: Any,
    ) -> None:
        """Tell that a session, its kernel, its notebook, or one of its executions changed.

        Without a session it is about all agents.
        """
        event = {"action": action, **told}
        if session is not None:
            event["session_id"] = session.id
        if execution_id is not None:
            event["execution_id"] = execution_id
        key = (action, "" if session is None else session.id, execution_id or "")
        self._waiting.pop(key, None)
        self._waiting[key] = (session, event)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MERGE_DELAY, self._send)

    def stop(self) -> None:
        """Send what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._send()

    def _send(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for session, event in waiting.values():
            self._serial += 1
            if session is not None:
                event["length"] = session.record().chain.length
            self._emit({"serial": self._serial, **event})
