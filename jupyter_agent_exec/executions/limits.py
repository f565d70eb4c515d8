"""The limits of a session, and of the server."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InvalidRequest
from ..kernels.kernel import Kernel
from ..models import Caps
from ..types import RecordChanges, RecordPeople


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionLimits:
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
    record_changes: RecordChanges

    def records_changes(self, kernel: Kernel) -> bool:
        """Tell whether to record what executions change in a kernel and its folder."""
        return self.record_changes == "all" or (self.record_changes == "scratch" and kernel.owned)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the operator decided. Seconds and bytes; 0 for none where a bound may be absent."""

    bounds: SessionLimits
    max_timeout: float
    max_sessions: int
    session_idle_timeout: float
    """Seconds after which a session that nobody uses is closed; 0 for never."""
    allowed_env: frozenset[str]
    record_people: RecordPeople
    """Of what people run in kernels that are not an agent's own."""
    default_wait: float
    max_wait: float
    max_held: int
    """Answers that are held, and streams, of all agent tokens."""

    def within(self, caps: Caps) -> Settings:
        """Return what holds for an agent whose token has caps."""
        if caps.wall_seconds is None and caps.output_bytes is None:
            return self
        longest = caps.wall_seconds or self.max_timeout
        longest = min(longest, self.max_timeout) if self.max_timeout else longest
        bounds = self.bounds
        return replace(
            self,
            max_timeout=longest,
            bounds=replace(
                bounds,
                timeout=min(bounds.timeout, longest) if longest else bounds.timeout,
                max_output_bytes=min(
                    bounds.max_output_bytes, caps.output_bytes or bounds.max_output_bytes
                ),
            ),
        )

    def wait(self, asked: float | None) -> float:
        """Return how many seconds an answer is held; None asks for the default."""
        return min(self.default_wait if asked is None else asked, self.max_wait)

    def check_timeout(self, timeout: float | None, field: str) -> None:
        """Refuse a timeout over the longest that may be asked for."""
        most = self.max_timeout
        if timeout is not None and most and timeout > most:
            raise InvalidRequest(
                f"{field}: {timeout:g} seconds is more than the {most:g} that are allowed.",
                field=field,
                allowed=most,
            )

    def check_output(self, size: int | None, field: str) -> None:
        """Refuse a cap on output over the server's own."""
        most = self.bounds.max_output_bytes
        if size is not None and size > most:
            raise InvalidRequest(
                f"{field}: {size:,} bytes is more than the {most:,} that are allowed.",
                field=field,
                allowed=most,
            )
