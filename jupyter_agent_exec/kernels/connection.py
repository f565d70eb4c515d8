"""One kernel, from the first message to its end: send, tell whose a message is, finish.

Half of this runs in the drain's thread (all that is called by the drain), half on the event loop.
A run goes in with what is to be done before it is sent and after it has ended, both of which are
done in the drain's thread, so that the record is on disk with no further hop between threads.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any, Literal

from ..models import ExecutionError, Omitted, OutputChange
from ..types import ExecutionId, ExecutionState, Output
from .displays import Displays, DisplayUpdate
from .drain import Drain
from .messages import Message
from .outputs import Outputs, TextSink

REPLY_IDLE_GRACE = 2.0
"""Seconds to wait for idle after the reply, or for the reply after idle."""

LATE_OUTPUT_DELAY = 0.25
"""Seconds for which late output is gathered before it is handed on."""

HELLO_DELAY = 0.5
HELLO_AGAIN_DELAY = 0.05
"""Seconds after which a kernel that is starting is asked again; sooner once it has answered and
only IOPub is missing."""


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
    changed: Callable[[], None] | None = None
    """Called on the loop after outputs changed, if set."""
    outputs: Outputs = field(init=False)
    started_at: datetime | None = None
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


class KernelConnection:
    """Shell and IOPub of one kernel in one incarnation.

    Parameters
    ----------
    connection
        As in a connection file.
    kernel_id, kernel_name
        As Jupyter knows them.
    """

    def __init__(
        self,
        connection: dict[str, Any],
        *,
        kernel_id: str,
        kernel_name: str,
        log: logging.Logger,
    ) -> None:
        self.kernel_id = kernel_id
        self.kernel_name = kernel_name
        self.kernel_info: dict[str, Any] = {}
        """Content of the kernel's `kernel_info_reply`."""
        self.execution_state: ExecutionState = "starting"
        self.on_state: Callable[[ExecutionState], None] | None = None
        """Called on the loop when the kernel's execution state changed."""
        self.on_late: Callable[[Late], None] | None = None
        """Called in the drain's thread with output of runs that had ended."""
        self._loop = asyncio.get_running_loop()
        self.disconnected: asyncio.Future[None] = self._loop.create_future()
        """Done when the kernel's end of the connection is gone."""
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._lock = threading.Lock()
        self._displays = Displays()
        self._waiting: list[asyncio.Future[None]] = []
        self._run: Run | None = None
        self._late: dict[ExecutionId, Outputs] = {}
        self._late_since: float | None = None
        self._heard_iopub = False
        self._closed = False
        self._drain = Drain(connection, _Frames(self), name=f"kernel-{kernel_id[:8]}", log=log)
        self._drain.start()

    # -- on the loop -------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until the kernel answers on both channels; the caller sets a bound."""
        while not self._ready.done():
            self._drain.call(partial(self._drain.send, "kernel_info_request", {}, msg_id="hello"))
            delay = HELLO_AGAIN_DELAY if self.kernel_info else HELLO_DELAY
            await asyncio.wait({self._ready}, timeout=delay)
        await self.free()

    def start(self, run: Run) -> None:
        """Send a run to the kernel; one at a time."""
        self._drain.call(partial(self._begin, run))

    def changes(self, run: Run, version: int) -> tuple[int, list[OutputChange]]:
        """Return how a run's outputs changed since `version`, and their version now."""
        with self._lock:
            return run.outputs.changes_since(version)

    def outputs(self, run: Run) -> list[Output]:
        """Return a run's outputs so far."""
        with self._lock:
            return run.outputs.outputs

    def abandon(self, reason: str) -> None:
        """End what runs though the kernel did not; what it still sends is late output."""
        self._drain.call(partial(self._abandon, reason))

    async def free(self) -> None:
        """Wait until the kernel is not busy, or gone."""
        while self.execution_state == "busy" and not self.disconnected.done():
            changed = self._loop.create_future()
            self._waiting.append(changed)
            await asyncio.wait({changed, self.disconnected}, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Let go of the kernel; late output that came so far is handed on first."""
        if not self._closed:
            self._closed = True
            self._drain.call(self._hand_on_late)
            await asyncio.to_thread(self._drain.stop)
            self._gone()

    def _tell_state(self, state: ExecutionState) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(None)
        if self.on_state is not None:
            self.on_state(state)

    def _tell_changed(self, run: Run) -> None:
        run._telling = False
        if run.changed is not None:
            run.changed()

    def _gone(self) -> None:
        if not self.disconnected.done():
            self.disconnected.set_result(None)

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    # -- in the drain's thread ---------------------------------------------------------------------

    def _begin(self, run: Run) -> None:
        self._hand_on_late()
        run.outputs = Outputs(
            run.id, self._displays, max_output_bytes=run.max_output_bytes, sink=run.sink
        )
        run.started_at = datetime.now(timezone.utc)
        if not run.before():
            return
        self._run = run
        self._drain.send(
            "execute_request",
            {
                "code": run.source,
                "silent": False,
                "store_history": run.store_history,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
            msg_id=run.id,
        )
        run.sent()

    def _take_iopub(self, message: Message) -> None:
        msg_type = message.header.msg_type
        run = self._run
        mine = run is not None and message.parent.msg_id == run.id
        if msg_type == "status":
            state = message.content.get("execution_state")
            changed = self._take_state(state)
            if mine and state == "idle":
                assert run is not None
                run._idle = True
                self._end_if_both(run)
            if changed:  # told last: the loop's thread should not compete with the record
                self._on_loop(self._tell_state, self.execution_state)
        elif mine:
            assert run is not None
            self._feed(run.outputs, message)
        elif message.parent.msg_id.startswith("x_"):
            self._feed(self._late_outputs(ExecutionId(message.parent.msg_id)), message)
        if not self._heard_iopub:
            self._heard_iopub = True
            self._greeted()

    def _take_shell(self, message: Message) -> None:
        if message.header.msg_type == "kernel_info_reply":
            self.kernel_info = message.content
            self._greeted()
        elif self._run is not None and message.parent.msg_id == self._run.id:
            self._run._reply = message.content
            self._end_if_both(self._run)

    def _greeted(self) -> None:
        if self.kernel_info and self._heard_iopub and not self._ready.done():
            self._on_loop(lambda: None if self._ready.done() else self._ready.set_result(None))

    def _take_state(self, state: object) -> bool:
        if state not in ("starting", "idle", "busy") or state == self.execution_state:
            return False
        self.execution_state = state
        return True

    def _feed(self, outputs: Outputs, message: Message) -> None:
        if message.pieces is None:
            with self._lock:
                outputs.feed(message.header.msg_type, message.content)
            return
        for piece in message.pieces:
            with self._lock:
                outputs.feed(message.header.msg_type, {**message.content, "text": piece})

    def _late_outputs(self, id: ExecutionId) -> Outputs:
        if id not in self._late:
            self._late[id] = Outputs(
                id, self._displays, max_output_bytes=LATE_OUTPUT_BYTES, sink=None
            )
        return self._late[id]

    def _settled(self) -> float | None:
        now = time.monotonic()
        run = self._run
        if run is not None and run.changed is not None:
            self._tell_of_changes(run)
        due: list[float] = []
        if run is not None and (run._idle or run._reply is not None):
            run._half_since = run._half_since or now
            due.append(run._half_since + REPLY_IDLE_GRACE)
            if now >= due[-1]:
                self._end(run)
                due.pop()
        if self._late:
            self._late_since = self._late_since or now
            due.append(self._late_since + LATE_OUTPUT_DELAY)
            if now >= due[-1]:
                self._hand_on_late()
                due.pop()
        return max(0.005, min(due) - now) if due else None

    def _tell_of_changes(self, run: Run) -> None:
        if not run._telling and run.outputs.version != run._told:
            run._told = run.outputs.version
            run._telling = True
            self._on_loop(self._tell_changed, run)

    def _hand_on_late(self) -> None:
        late, self._late, self._late_since = self._late, {}, None
        for id, outputs in late.items():
            if self.on_late is not None:
                self.on_late(
                    Late(id, outputs.outputs, outputs.omitted, outputs.take_display_updates())
                )

    def _end_if_both(self, run: Run) -> None:
        if run._idle and run._reply is not None:
            self._end(run)

    def _end(self, run: Run) -> None:
        """End a run that the kernel answered, wholly or at least in half."""
        reply = run._reply
        if reply is None:
            self._finish(run, "error", "The kernel went idle without an answer.", None)
        else:
            count = reply.get("execution_count")
            self._finish(
                run,
                "ok" if reply.get("status") == "ok" else "error",
                None if run._idle else "The kernel answered but did not go idle.",
                count if isinstance(count, int) else None,
            )

    def _abandon(self, reason: str) -> None:
        if self._run is not None:
            self._finish(self._run, "abandoned", reason, None)
        self._hand_on_late()

    def _finish(
        self,
        run: Run,
        status: Literal["ok", "error", "abandoned"],
        reason: str | None,
        execution_count: int | None,
    ) -> None:
        self._run = None
        assert run.started_at is not None
        with self._lock:
            run.outputs.finish()
            ended = Ended(
                status=status,
                reason=reason,
                execution_count=execution_count,
                error=_error_in(run._reply),
                outputs=run.outputs.outputs,
                outputs_complete=reason is None and run.outputs.complete,
                omitted=run.outputs.omitted,
                display_updates=run.outputs.take_display_updates(),
                started_at=run.started_at,
                finished_at=datetime.now(timezone.utc),
                exits=_exits(run._reply),
            )
        run.after(ended)


LATE_OUTPUT_BYTES = 1_000_000
"""Of late output, gathered at one time, that is kept."""


def _error_in(reply: dict[str, Any] | None) -> ExecutionError | None:
    """Return the error that an `execute_reply` tells, if it does."""
    if reply is None or reply.get("status") == "ok" or "ename" not in reply:
        return None
    return ExecutionError(
        ename=str(reply["ename"]),
        evalue=str(reply.get("evalue", "")),
        traceback=[str(line) for line in reply.get("traceback", [])],
    )


def _exits(reply: dict[str, Any] | None) -> bool:
    """Tell whether a reply asks the frontend to let the kernel exit."""
    payload = (reply or {}).get("payload") or []
    return any(
        isinstance(item, dict) and item.get("source") == "ask_exit" and not item.get("keepkernel")
        for item in payload
    )


class _Frames:
    """What the drain tells goes to the connection."""

    def __init__(self, connection: KernelConnection) -> None:
        self.iopub = connection._take_iopub
        self.shell = connection._take_shell
        self.settled = connection._settled
        self._connection = connection

    def disconnected(self) -> None:
        self._connection._on_loop(self._connection._gone)
