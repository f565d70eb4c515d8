"""The limits of a session, and of the server."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidRequest
from ..types import RecordPeople


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Limits of a session, with the server's own filled in. Seconds and bytes."""

    timeout: float
    queue_timeout: float | None
    max_output_bytes: int
    max_text_bytes: int
    max_queued: int
    interrupt_grace: float
    restart_if_interrupt_ignored: bool
    idle_timeout: float
    """Seconds after which an idle kernel is shut down; 0 for never."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the operator decided. Seconds and bytes; 0 for none where a bound may be absent."""

    bounds: Bounds
    max_timeout: float
    max_sessions: int
    allowed_env: frozenset[str]
    record_people: RecordPeople
    """Of what people run in kernels that are not an agent's own."""
    default_wait: float
    max_wait: float

    def check_timeout(self, timeout: float | None, field: str) -> None:
        """Refuse a timeout over the longest that may be asked for."""
        most = self.max_timeout
        if timeout is not None and most and timeout > most:
            raise InvalidRequest(
                f"{field}: {timeout:g} seconds is more than the server's {most:g}.",
                field=field,
                allowed=most,
            )

    def check_output(self, size: int | None, field: str) -> None:
        """Refuse a cap on output over the server's own."""
        most = self.bounds.max_output_bytes
        if size is not None and size > most:
            raise InvalidRequest(
                f"{field}: {size:,} bytes is more than the server's {most:,}.",
                field=field,
                allowed=most,
            )
