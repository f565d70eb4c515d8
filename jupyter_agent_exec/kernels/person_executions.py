"""Collects what users run in a kernel that agents use too, from IOPub (best effort).

Code that ran before we listened is missing, and so is code that was run silently. Output that comes
after its cell has ended is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec.structs import replace

from ..models import Omitted
from ..text.redaction import Redactor
from ..types import ExecutionId, Output
from .displays import Capture, Displays
from .execution_state import Listeners
from .messages import Message
from .outputs import Outputs

MOST_HELD: Final = 100
"""How many executions are held until the first listener is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonExecution:
    """Code that was run in a kernel, and not by one of our agents."""

    msg_id: str
    """The id of its `execute_request`."""
    source: str
    execution_count: int | None
    username: str
    """The sender's name in the message's header; empty if missing."""
    started_at: datetime
    outputs: list[Output] | None
    """None when only the source is recorded."""
    omitted: Omitted
    """What was left out of the outputs."""
    status: Literal["ok", "error"] | None
    """None when only the source is recorded, or its end was not seen."""


@dataclass(frozen=True, slots=True)
class PersonRecording:
    """Which parts of other people's executions are recorded."""

    source: bool = False
    outputs_bytes: int | None = None
    """Maximum bytes of an execution's outputs; None if only the source is recorded."""


NOTHING: Final = PersonRecording()


@dataclass(slots=True)
class _Running:
    execution: Message
    started_at: datetime
    outputs: Outputs
    status: Literal["ok", "error"] = "ok"
    complete: bool = True


class PersonExecutions:
    """Builds executions from messages whose parent is not ours; runs in the channels' thread.

    Parameters
    ----------
    listeners
        Called with each execution.
    kept
        Which parts of each are recorded.
    captures
        As in `Displays`: what an `Output` widget takes is not an output of the cell.
    """

    def __init__(
        self,
        listeners: Listeners[PersonExecution],
        kept: PersonRecording,
        redactor: Redactor,
        *,
        captures: dict[str, dict[str, Capture]],
    ) -> None:
        self._listeners = listeners
        self._kept = kept
        self._redactor = redactor
        self._held: deque[PersonExecution] | None = deque(maxlen=MOST_HELD)
        self._displays = Displays()
        self._displays.captures = captures
        self._running: dict[str, _Running] = {}

    def tell_held(self, listener: Callable[[PersonExecution], None]) -> None:
        """Send the first listener the executions that ended before it was added."""
        held, self._held = self._held or deque(), None
        for execution in held:
            listener(execution)

    def take(self, message: Message) -> None:
        """Process a message."""
        if not self._kept.source:
            return
        msg_type, msg_id = message.header.msg_type, message.parent.msg_id
        if msg_type == "execute_input":
            self._begin(message)
        elif (running := self._running.get(msg_id)) is None:
            pass
        elif msg_type != "status":
            self._feed(running, message)
        elif message.content.get("execution_state") == "idle":
            self._end(self._running.pop(msg_id), complete=True)

    def miss(self) -> None:
        """Note that messages of the running executions were lost."""
        for running in self._running.values():
            running.complete = False

    def stop(self) -> None:
        """Deliver the running executions as incomplete: their end will not be seen."""
        while self._running:
            self._end(self._running.pop(next(iter(self._running))), complete=False)

    def _begin(self, message: Message) -> None:
        now = datetime.now(UTC)
        if self._kept.outputs_bytes is None:
            self._tell(self._told(message, now))
            return
        id = ExecutionId(message.parent.msg_id)
        self._running[id] = _Running(
            message,
            now,
            Outputs(
                id,
                self._displays,
                max_output_bytes=self._kept.outputs_bytes,
                redactor=self._redactor,
            ),
        )

    def _feed(self, running: _Running, message: Message) -> None:
        if message.header.msg_type == "error":
            running.status = "error"
        if message.unread:
            running.outputs.leave_out(message.header.msg_type, message.size)
            return
        running.outputs.feed(
            message.header.msg_type, message.content, may_have_token=message.may_have_token
        )

    def _end(self, running: _Running, *, complete: bool) -> None:
        outputs = running.outputs
        outputs.finish()
        self._tell(
            self._told(
                running.execution,
                running.started_at,
                outputs=outputs.outputs,
                omitted=replace(outputs.omitted, unknown=not (complete and running.complete)),
                status=running.status if complete else None,
            )
        )

    def _tell(self, execution: PersonExecution) -> None:
        if self._listeners:
            self._listeners(execution)
        elif self._held is not None:
            self._held.append(execution)

    def _told(
        self,
        message: Message,
        started_at: datetime,
        *,
        outputs: list[Output] | None = None,
        omitted: Omitted | None = None,
        status: Literal["ok", "error"] | None = None,
    ) -> PersonExecution:
        source, username = str(message.content.get("code", "")), message.parent.username
        count = message.content.get("execution_count")
        return PersonExecution(
            msg_id=message.parent.msg_id,
            source=source,
            execution_count=count if isinstance(count, int) else None,
            username=username,
            started_at=started_at,
            outputs=outputs,
            omitted=omitted or Omitted(),
            status=status,
        )
