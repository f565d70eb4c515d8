"""How the rest of the server hears that something changed in a session."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from ..models import Session
from ..types import ExecutionId, SessionId

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
