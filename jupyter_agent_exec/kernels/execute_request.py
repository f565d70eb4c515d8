"""One source on its way through a kernel, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from ..models import ExecutionError, Omitted, Value
from ..types import ExecutionId, Output
from .displays import DisplayUpdate
from .outputs import Outputs, TextSink
from .stdin import InputRequest
from .values import told
from .variables import VariableChanges


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
    duration: float
    """Seconds between the two by a clock that nobody sets."""
    exits: bool
    """Whether the code asked the kernel to exit."""
    aborted: bool
    """Whether the kernel ran nothing of it, since somebody's cell ahead of it had failed."""
    variables: VariableChanges | None
    """How it changed the kernel's variables; None if that is not known."""
    values: dict[str, Value] | None
    """What the expressions came to that were asked for; None if none were."""


@dataclass(eq=False, slots=True, kw_only=True)
class Run:
    """One source, on its way through a kernel."""

    id: ExecutionId
    """Also the id of its `execute_request`."""
    source: str
    store_history: bool
    max_output_bytes: int
    sink: TextSink | None
    before: Callable[[], bool]
    """Done in the drain's thread before sending; nothing is sent if it returns False."""
    sent: Callable[[], None]
    """Done in the drain's thread after it was sent."""
    after: Callable[[Ended], None]
    """Done in the drain's thread when it has ended."""
    failed: Callable[[Exception], None]
    """Done in the drain's thread when something of ours failed, so that `after` will not be."""
    looks: bool = False
    """Whether to look at what it changes; False once it begins if its code can change nothing."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Expressions to evaluate after it, by name."""
    asks: Callable[[InputRequest], None] | None = None
    """Done in the drain's thread when its code asks for input; None if it may not."""
    input: InputRequest | None = None
    """What its code asks for, and nobody has given yet."""
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
    subshell: str | None = None
    """The subshell that runs it, beside the cell that waits for it; None for the main shell."""
    is_sent: bool = False
    ended_at: datetime | None = None
    variables: VariableChanges | None = None
    """How it changed the kernel's variables, once that is known."""
    _clock: float = 0.0
    """When it started, as `time.monotonic` tells it."""
    _duration: float | None = None
    _reply: dict[str, Any] | None = None
    _idle: bool = False
    _is_at_code: bool = False
    _when_at_code: list[Callable[[], None]] = field(default_factory=list)
    _half_since: float | None = None
    _told: int = 0
    _telling: bool = False

    def starts(self) -> None:
        """Take note of the time at which it starts."""
        self.started_at, self._clock = datetime.now(UTC), time.monotonic()

    def ends(self) -> None:
        """Take note of the time at which it ends."""
        self.ended_at, self._duration = datetime.now(UTC), time.monotonic() - self._clock

    def answer(self) -> tuple[Literal["ok", "error"], str | None, int | None]:
        """Return status, reason and execution count, once the kernel answered or went idle."""
        reply = self._reply
        if reply is None:
            return "error", "The kernel went idle without an answer.", None
        reason = None if self._idle else "The kernel answered but did not go idle."
        if not reply:
            reason = "The kernel's answer could not be read."
        if reply.get("status") == "aborted":
            reason = "The kernel did not run it, since a cell that was queued before it failed."
        # A subshell has no count of its own: it tells that of the cell beside it.
        count = reply.get("execution_count") if self.subshell is None else None
        status: Literal["ok", "error"] = "ok" if reply.get("status") == "ok" else "error"
        return status, reason, count if isinstance(count, int) else None

    def end(
        self,
        status: Literal["ok", "error", "abandoned"],
        reason: str | None,
        execution_count: int | None,
    ) -> Ended:
        """Take no more outputs, and return how it ended."""
        assert self.started_at is not None
        self.outputs.finish()
        if self.ended_at is None or self._duration is None:
            self.ends()
        assert self.ended_at is not None
        assert self._duration is not None
        return Ended(
            status=status,
            reason=reason,
            execution_count=execution_count,
            error=error_in(self._reply),
            outputs=self.outputs.outputs,
            outputs_complete=reason is None and self.outputs.complete,
            omitted=self.outputs.omitted,
            display_updates=self.outputs.take_display_updates(),
            started_at=self.started_at,
            finished_at=self.ended_at,
            duration=self._duration,
            exits=exits(self._reply),
            aborted=(self._reply or {}).get("status") == "aborted",
            variables=self.variables,
            values=told(self._reply, self.values) if self.values else None,
        )


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
