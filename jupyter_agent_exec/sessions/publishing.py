"""How the rest of the server hears that something changed in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..types import ExecutionId

if TYPE_CHECKING:
    from .session import LiveSession

Action: TypeAlias = Literal["opened", "closed", "kernel", "execution", "notebook", "person"]
"""What changed: the session, its kernel, one of its executions, its notebook; or that a person ran
something in its kernel."""


class Publish(Protocol):
    """Tells it."""

    def __call__(
        self,
        action: Action,
        session: LiveSession,
        execution_id: ExecutionId | None = None,
        **told: Any,
    ) -> None:
        """Tell it."""
