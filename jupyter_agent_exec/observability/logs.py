"""One line of JSON in the server's log for each session, execution and refusal.

A line has ids, statuses and times, never a source or an output. All text is escaped to printable
ASCII, so a name that somebody else chose cannot begin another line or change a terminal.
"""

from __future__ import annotations

import json
import logging
from typing import Final, TypeAlias

from ..auth.denials import Refusal
from ..executions.observer import ExecutionObserver
from ..models import Session
from ..records import ExecutionRecord
from ..types import CloseReason

MOST_CHARACTERS: Final = 200
"""A longer value is cut."""

Fields: TypeAlias = dict[str, str | int | float | bool | None]


def line(event: str, fields: Fields) -> str:
    """Return an event as JSON in printable ASCII, without the fields that are null."""
    shown: Fields = {"event": event}
    for name, value in fields.items():
        if value is not None:
            shown[name] = value[:MOST_CHARACTERS] if isinstance(value, str) else value
    return json.dumps(shown)


class ActivityLog:
    """Writes the lines.

    Parameters
    ----------
    log
        The extension's logger; its child `activity` gets the lines, at the level of INFO.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log.getChild("activity")

    def observer(self, session: Session) -> ExecutionObserver:
        """Return the observer of a new session."""
        return _SessionLog(self, session)

    def refused(self, refusal: Refusal) -> None:
        """Write a line about a refused request."""
        self.write(
            "refused",
            {
                "code": refusal.code,
                "status": refusal.status,
                "method": refusal.method,
                "route": refusal.route,
                "username": refusal.username,
                "ip": refusal.ip,
                "token_id": refusal.token_id,
                "session_id": refusal.session_id,
                "execution_id": refusal.execution_id,
            },
        )

    def write(self, event: str, fields: Fields) -> None:
        """Write a line."""
        if self._log.isEnabledFor(logging.INFO):
            self._log.info("%s", line(event, fields))


class _SessionLog(ExecutionObserver):
    def __init__(self, log: ActivityLog, session: Session) -> None:
        self._log = log
        self._session = session
        self._executions = 0

    def opened(self) -> None:
        fields: Fields = {**self._ids(), "target": target_kind(self._session)}
        self._log.write("session_opened", fields)

    def closed(self, reason: CloseReason) -> None:
        fields: Fields = {**self._ids(), "reason": reason, "executions": self._executions}
        self._log.write("session_closed", fields)

    def finished(self, record: ExecutionRecord) -> None:
        self._executions += 1
        kernel, claim = record.kernel, record.claim
        self._log.write(
            "execution_finished",
            {
                **self._ids(),
                "execution_id": record.id,
                "seq": record.seq,
                "status": record.status,
                "duration": record.duration,
                "accepted_at": record.accepted_at,
                "finished_at": record.finished_at,
                "outputs_complete": record.outputs_complete,
                "kernel_id": None if kernel is None else kernel.id,
                "trace_id": None if claim is None else claim.trace_id,
            },
        )

    def _ids(self) -> Fields:
        session = self._session
        return {
            "session_id": session.id,
            "agent": session.agent.name,
            "username": session.username,
            "token_id": None if session.token is None else session.token.id,
        }


def target_kind(session: Session) -> str:
    """Return the kind of a session's target: `scratch`, `notebook` or `kernel`."""
    tag = session.target.__struct_config__.tag
    assert isinstance(tag, str)
    return tag
