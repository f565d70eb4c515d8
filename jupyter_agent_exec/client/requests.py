"""Put together what both clients send, and refuse what JSON would silently change."""

from __future__ import annotations

import math

from ..errors import InvalidRequest
from ..models import Agent, Execute, Limits, OpenSession, Target


def session_request(
    agent: str | Agent,
    target: Target,
    limits: Limits,
    *,
    title: str | None,
    client_id: str | None,
    init_source: str | None,
) -> OpenSession:
    """Return the request that opens a session."""
    _require_finite("limits.timeout", limits.timeout)
    return OpenSession(
        agent=Agent(name=agent) if isinstance(agent, str) else agent,
        target=target,
        title=title,
        client_id=client_id,
        limits=limits,
        init_source=init_source,
    )


def execute_request(
    source: str,
    timeout: float | None,
    queue_timeout: float | None,
    max_output_bytes: int | None,
) -> Execute:
    """Return the request that runs `source`."""
    _require_finite("timeout", timeout)
    _require_finite("queue_timeout", queue_timeout)
    return Execute(
        source=source,
        timeout=timeout,
        queue_timeout=queue_timeout,
        max_output_bytes=max_output_bytes,
    )


def _require_finite(field: str, seconds: float | None) -> None:
    """Refuse what JSON does not know: infinity would arrive as null, which is the default."""
    if seconds is not None and not math.isfinite(seconds):
        raise InvalidRequest(
            f"{field} must be a finite number of seconds, not {seconds}.", field=field
        )
