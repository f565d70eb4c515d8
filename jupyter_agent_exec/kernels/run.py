"""One source on its way through a kernel, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ..models import ExecutionError, Omitted
from ..types import ExecutionId, Output
from .displays import DisplayUpdate
from .outputs import Outputs, TextSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended, as far as the kernel tells."""

    status: Literal["ok", "error", "abandoned"]
    """As the kernel told it; `abandoned` when it had not come to an end."""
    reason: str | None
    """A sentence when the kernel did not tell all by itself."""
    execution_count: int | None
    error: ExecutionError | None
    outputs: list[Output]
    outputs_complete: bool
    omitted: Omitted
    display_updates: list[DisplayUpdate]
    started_at: datetime
    finished_at: datetime
    exits: bool
    """Whether the code asked the kernel to exit."""
    aborted: bool
    """Whether the kernel ran nothing of it, since somebody's cell ahead of it had failed."""


@dataclass(eq=False, slots=True, kw_only=True)
class Run:
    """One source, on its way through a kernel."""

    id: ExecutionId
    """Also the id of its `execute_request`."""
    source: str
    store_history: bool
    max_output_bytes: int
    sink: TextSink
    before: Callable[[], bool]
    """Done in the drain's thread before sending; nothing is sent if it returns False."""
    sent: Callable[[], None]
    """Done in the drain's thread after it was sent."""
    after: Callable[[Ended], None]
    """Done in the drain's thread when it has ended."""
    begun: Callable[[], None] | None = None
    """Called on the loop when the kernel took it up, if set."""
    changed: Callable[[], None] | None = None
    """Called on the loop after outputs changed, if set."""
    outputs: Outputs = field(init=False)
    started_at: datetime | None = None
    """When it was sent; or when the kernel took it up, if somebody's cells were ahead of it."""
    has_begun: bool = False
    """Whether the kernel took it up: until then, what runs in the kernel is somebody else's."""
    is_behind: bool = False
    """Whether somebody's cells were ahead of it in the kernel's own queue."""
    _reply: dict[str, Any] | None = None
    _idle: bool = False
    _half_since: float | None = None
    _told: int = 0
    _telling: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """Output of a run that had ended."""

    execution_id: ExecutionId
    outputs: list[Output]
    omitted: Omitted
    display_updates: list[DisplayUpdate]


def error_in(reply: dict[str, Any] | None) -> ExecutionError | None:
    """Return the error that an `execute_reply` tells, if it does."""
    if reply is None or reply.get("status") == "ok" or "ename" not in reply:
        return None
    return ExecutionError(
        ename=str(reply["ename"]),
        evalue=str(reply.get("evalue", "")),
        traceback=[str(line) for line in reply.get("traceback", [])],
    )


def exits(reply: dict[str, Any] | None) -> bool:
    """Tell whether a reply asks the frontend to let the kernel exit."""
    payload = (reply or {}).get("payload") or []
    return any(
        isinstance(item, dict) and item.get("source") == "ask_exit" and not item.get("keepkernel")
        for item in payload
    )
