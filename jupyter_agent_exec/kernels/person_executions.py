"""What people run in a kernel that agents use too, as far as IOPub tells: best effort.

What ran before one listened is not told, and neither is code that was run silently. Output that
comes after its cell has ended is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from ..models import Omitted
from ..types import ExecutionId, Output
from .displays import Displays
from .execution_state import Listeners
from .messages import Message
from .outputs import Outputs

MOST_HELD: Final = 100
"""How many executions are held for who is about to listen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonExecution:
    """Something that was run in a kernel, and not by an agent of ours."""

    msg_id: str
    """Of its `execute_request`."""
    source: str
    execution_count: int | None
    username: str
    """As its sender calls itself in the message's header; empty if not told."""
    session: str
    """Its sender's id, in the messaging protocol's sense; empty if not told."""
    started_at: datetime
    outputs: list[Output] | None
    """None when only the source is asked for."""
    omitted: Omitted
    """Of the outputs."""
    status: Literal["ok", "error"] | None
    """None when only the source is asked for, or its end was not seen."""
    complete: bool
    """Whether its end was seen and all its outputs are here; True when only the source is asked
    for."""


@dataclass(frozen=True, slots=True)
class PersonRecording:
    """What is kept of what others run."""

    source: bool = False
    outputs_bytes: int | None = None
    """Of an execution's outputs; None if only the source is wanted."""


NOTHING: Final = PersonRecording()


@dataclass(slots=True)
class _Running:
    execution: Message
    started_at: datetime
    outputs: Outputs
    status: Literal["ok", "error"] = "ok"


class PersonExecutions:
    """Makes executions of the messages that have a foreign parent; in the channels' thread.

    Parameters
    ----------
    listeners
        Called with each execution.
    kept
        What is kept of each.
    """

    def __init__(self, listeners: Listeners[PersonExecution], kept: PersonRecording) -> None:
        self._listeners = listeners
        self._kept = kept
        self._held: deque[PersonExecution] | None = deque(maxlen=MOST_HELD)
        self._displays = Displays()
        self._running: dict[str, _Running] = {}

    def tell_held(self, listener: Callable[[PersonExecution], None]) -> None:
        """Tell the first that listens what has ended while it was about to."""
        held, self._held = self._held or deque(), None
        for execution in held:
            listener(execution)

    def take(self, message: Message) -> None:
        """Take a message."""
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

    def stop(self) -> None:
        """Tell of those whose end will not be seen."""
        while self._running:
            self._end(self._running.pop(next(iter(self._running))), complete=False)

    def _begin(self, message: Message) -> None:
        now = datetime.now(UTC)
        if self._kept.outputs_bytes is None:
            self._tell(_told(message, now))
            return
        id = ExecutionId(message.parent.msg_id)
        self._running[id] = _Running(
            message,
            now,
            Outputs(id, self._displays, max_output_bytes=self._kept.outputs_bytes, sink=None),
        )

    def _feed(self, running: _Running, message: Message) -> None:
        if message.header.msg_type == "error":
            running.status = "error"
        if message.unread:
            running.outputs.leave_out(message.header.msg_type, message.size)
            return
        for content in message.contents():
            running.outputs.feed(message.header.msg_type, content)

    def _end(self, running: _Running, *, complete: bool) -> None:
        outputs = running.outputs
        self._tell(
            _told(
                running.execution,
                running.started_at,
                outputs=outputs.outputs,
                omitted=outputs.omitted,
                status=running.status if complete else None,
                complete=complete and outputs.complete,
            )
        )

    def _tell(self, execution: PersonExecution) -> None:
        if self._listeners:
            self._listeners(execution)
        elif self._held is not None:
            self._held.append(execution)


def _told(
    message: Message,
    started_at: datetime,
    *,
    outputs: list[Output] | None = None,
    omitted: Omitted | None = None,
    status: Literal["ok", "error"] | None = None,
    complete: bool = True,
) -> PersonExecution:
    count = message.content.get("execution_count")
    return PersonExecution(
        msg_id=message.parent.msg_id,
        source=str(message.content.get("code", "")),
        execution_count=count if isinstance(count, int) else None,
        username=message.parent.username,
        session=message.parent.session,
        started_at=started_at,
        outputs=outputs,
        omitted=omitted or Omitted(),
        status=status,
        complete=complete,
    )
