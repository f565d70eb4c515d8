"""Publishes changes on the server's event bus: ids and statuses, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ..records import ExecutionRecord
from ..types import ExecutionId, SessionId, SessionStatus, Status

EVENTS_SCHEMA_ID: Final = "https://schema.jupyter.org/jupyter_agent_exec/activity/v1"
EVENTS_SCHEMA: Final = Path(__file__).parent.parent / "events" / "activity.v1.yaml"

MERGE_DELAY = 0.02
"""Seconds for which events about the same thing are merged."""


Action: TypeAlias = Literal[
    "opened",
    "closed",
    "kernel",
    "execution",
    "session",
    "notebook",
    "person",
    "proposals",
    "approvals",
    "tokens",
]
"""What changed: a session opened or closed, its kernel, one of its executions, a decision about the
session, its notebook, its proposed edits; a user ran something in its kernel (`person`). Without a
session: what waits for a person, the approval policy or the pause (`approvals`), or the agent
tokens (`tokens`)."""


class Activity:
    """Numbers events and emits them, shortly after the answers that they belong to.

    Events about the same thing become one, with the newest value of each field: a late output that
    follows the end of its execution does not hide the final status.

    Parameters
    ----------
    emit
        Sends an event that fits the schema.
    """

    def __init__(self, emit: Callable[[dict[str, Any]], None]) -> None:
        self._emit = emit
        self._serial = 0
        self._waiting: dict[tuple[str, ...], dict[str, Any]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def publish(
        self,
        action: Action,
        session_id: SessionId | None = None,
        execution_id: ExecutionId | None = None,
        *,
        length: int | None = None,
        status: SessionStatus | Status | None = None,
        seq: int | None = None,
    ) -> None:
        """Publish a change of a session, its kernel, its notebook, or one of its executions.

        Parameters
        ----------
        session_id
            The session; None for a change that concerns all sessions.
        length
            How many entries the session's journal has.
        status
            The status of the execution; without an execution, of the session.
        seq
            The number of the execution in its session.
        """
        event: dict[str, Any] = {"action": action}
        about = {
            "session_id": session_id,
            "length": length,
            "execution_id": execution_id,
            "status": status,
            "seq": seq,
        }
        event |= {name: value for name, value in about.items() if value is not None}
        key = (action, session_id or "", execution_id or "")
        self._waiting[key] = self._waiting.pop(key, {}) | event
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MERGE_DELAY, self._send)

    def publish_execution(self, record: ExecutionRecord, length: int) -> None:
        """Publish that a recorded execution has changed; `length` as in `publish`."""
        self.publish(
            "execution",
            record.session_id,
            record.id,
            length=length,
            status=record.status,
            seq=record.seq,
        )

    def stop(self) -> None:
        """Send the events that wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._send()

    def _send(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for event in waiting.values():
            self._serial += 1
            self._emit({"serial": self._serial, **event})
