"""The limits of a session, and the settings that a server's sessions share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import msgspec

from ..errors import InvalidRequest
from ..models import Caps, Limits
from ..types import RecordPeople


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionLimits:
    """The limits of a session, with the server's defaults filled in; in seconds and bytes."""

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
    """The operator's configuration. Times in seconds, sizes in bytes."""

    bounds: SessionLimits
    max_timeout: float
    """The longest timeout of an execution; 0 for no limit."""
    max_sessions: int
    session_idle_timeout: float
    """Seconds after which a session that nobody uses is closed; 0 for never."""
    allowed_env: frozenset[str]
    record_people: RecordPeople
    default_wait: float
    max_wait: float
    max_held: int
    """Maximum number of held answers and open streams, over all agent tokens."""

    def within(self, caps: Caps) -> Settings:
        """Return these settings, reduced by the caps of an agent token."""
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

    def wait(self, requested: float | None) -> float:
        """Return how many seconds to hold an answer; None requests the default."""
        return min(self.default_wait if requested is None else requested, self.max_wait)

    def fit(self, limits: Limits) -> Limits:
        """Return limits that a request was once allowed, reduced to what is allowed now."""
        longest, most = self.max_timeout or math.inf, self.bounds.max_output_bytes
        return msgspec.structs.replace(
            limits,
            timeout=limits.timeout and min(limits.timeout, longest),
            max_output_bytes=limits.max_output_bytes and min(limits.max_output_bytes, most),
        )

    def check_timeout(self, timeout: float | None, field: str) -> None:
        """Raise InvalidRequest for a timeout that is longer than the operator allows."""
        most = self.max_timeout
        if timeout is not None and most and timeout > most:
            raise InvalidRequest(
                f"{field}: {timeout:g} seconds is more than the {most:g} that are allowed.",
                field=field,
                allowed=most,
            )

    def check_output(self, size: int | None, field: str) -> None:
        """Raise InvalidRequest for an output cap that is above the server's."""
        most = self.bounds.max_output_bytes
        if size is not None and size > most:
            raise InvalidRequest(
                f"{field}: {size:,} bytes is more than the {most:,} that are allowed.",
                field=field,
                allowed=most,
            )
