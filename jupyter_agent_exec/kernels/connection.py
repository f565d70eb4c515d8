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
from datetime import datetime, timezone
from functools import partial
from typing import Any, Literal

from ..models import OutputChange
from ..tasks import settle
from ..types import ExecutionId, ExecutionState, Output
from . import mimebundles
from .busy import Busy, Quiet, Work
from .displays import Displays
from .drain import Drain
from .greeting import HELLO, Greeting
from .listeners import Listeners
from .messages import Message
from .outputs import Outputs
from .people import People, PersonExecution
from .run import Ended, Late, Run, error_in, exits

__all__ = ["Ended", "KernelConnection", "Late", "PersonExecution", "Run"]

REPLY_IDLE_GRACE = 2.0
"""Seconds to wait for idle after the reply, or for the reply after idle."""

LATE_OUTPUT_DELAY = 0.25
"""Seconds for which late output is gathered before it is handed on."""

LATE_OUTPUT_BYTES = 1_000_000
"""Of late output, gathered at one time, that is kept."""

HELLO_DELAY = 0.5
HELLO_AGAIN_DELAY = 0.05
"""Seconds after which a kernel that starts is asked again; the second if only IOPub is missing."""


class KernelConnection:
    """Shell and IOPub of one kernel in one incarnation.

    Parameters
    ----------
    connection
        As in a connection file.
    kernel_id, kernel_name
        As Jupyter knows them.
    found
        The state in which Jupyter says that a kernel is which others use; it is then greeted with
        one request, which waits in the kernel's queue like any other, and nobody has to wait for
        the answer. None for a kernel that was started for us alone: see `ready`.
    """

    def __init__(
        self,
        connection: dict[str, Any],
        *,
        kernel_id: str,
        kernel_name: str,
        log: logging.Logger,
        found: ExecutionState | None = None,
    ) -> None:
        self.kernel_id = kernel_id
        self.kernel_name = kernel_name
        self.on_state: Callable[[ExecutionState], None] | None = None
        """Called on the loop with the kernel's execution state, whenever that changed."""
        self.on_late: Listeners[Late] = Listeners()
        """Called in the drain's thread with output of runs that had ended, whosever they were."""
        self.on_person: Listeners[PersonExecution] = Listeners()
        """Called in the drain's thread with what others run: at once, or when it has ended if
        outputs are asked for."""
        self.person_outputs_bytes: int | None = None
        """Of the outputs of what others run that are kept; None if only sources are wanted."""
        self._loop = asyncio.get_running_loop()
        self.disconnected: asyncio.Future[None] = self._loop.create_future()
        """Done when the kernel's end of the connection is gone."""
        self.greeted: asyncio.Future[None] = self._loop.create_future()
        """Done when the kernel has answered on both channels."""
        self._lock = threading.Lock()
        self._displays = Displays()
        self._waiting: list[asyncio.Future[None]] = []
        self._run: Run | None = None
        self._late: dict[ExecutionId, Outputs] = {}
        self._late_since: float | None = None
        self._closed = False
        self._greeting = Greeting(is_shared=found is not None)
        self._drain = Drain(connection, _Frames(self), name=f"kernel-{kernel_id[:8]}", log=log)
        self._busy = Busy(self._drain.session, found)
        self._people = People(self.on_person)
        self._drain.start()
        if found is not None:
            self._drain.call(self._say_hello)

    @property
    def kernel_info(self) -> dict[str, Any]:
        """Content of the kernel's `kernel_info_reply`; empty before it has answered."""
        return self._greeting.kernel_info

    @property
    def execution_state(self) -> ExecutionState:
        """As the kernel tells it, whoever keeps it busy."""
        return self._busy.execution_state

    @property
    def quiet(self) -> Quiet | None:
        """Set while the kernel is idle."""
        return self._busy.quiet

    @property
    def has_executed(self) -> bool:
        """Whether anybody may have run anything in it."""
        return self._busy.has_executed

    @property
    def foreign(self) -> Work | None:
        """What has kept the kernel busy for longest that is not ours."""
        return self._busy.foreign

    # -- on the loop -------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until a kernel that starts answers on both channels; the caller sets a bound."""
        while not self.greeted.done():
            self._drain.call(self._say_hello)
            delay = HELLO_AGAIN_DELAY if self.kernel_info else HELLO_DELAY
            await asyncio.wait({self.greeted}, timeout=delay)
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

    def is_running(self, run: Run) -> bool:
        """Tell whether the kernel is at a run of ours, as far as it has told.

        Only then may it be interrupted: before and after, the kernel may be at somebody else's.
        """
        return self._run is run and run.has_begun and not run._idle

    async def free(self) -> None:
        """Wait until nothing of ours keeps the kernel busy, or it is gone."""
        while self._busy.has_ours and not self.disconnected.done():
            changed = self._loop.create_future()
            self._waiting.append(changed)
            await asyncio.wait({changed, self.disconnected}, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Let go of the kernel; late output that came so far is handed on first."""
        if not self._closed:
            self._closed = True
            self._drain.call(self._hand_on_late)
            self._drain.call(self._people.stop)
            await asyncio.to_thread(self._drain.stop)
            self.lost()

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

    def lost(self) -> None:
        """Take note that the kernel has ended, though its end of the connection may be held open.

        A process that it forked does that.
        """
        settle(self.disconnected)

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
        run.is_behind = self._busy.foreign is not None
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

    def _say_hello(self) -> None:
        self._greeting.asked()
        self._drain.send("kernel_info_request", {}, msg_id=HELLO)

    def _take_iopub(self, message: Message) -> None:
        msg_type, parent = message.header.msg_type, message.parent
        ours = parent.session == self._drain.session
        if msg_type == "status":
            self._take_status(message)
        elif self._run is not None and parent.msg_id == self._run.id:
            self._feed(self._run.outputs, message)
        elif parent.msg_id.startswith("x_"):
            self._feed(self._late_outputs(ExecutionId(parent.msg_id)), message)
        elif not ours:
            self._busy.overhear(parent)
            if msg_type == "update_display_data":
                self._feed_foreign_update(message)
        if not ours and self.on_person and not parent.msg_id.startswith("x_"):
            self._people.take(message, self.person_outputs_bytes)
        if self._greeting.hear(message, ours=ours):
            self._greeted()

    def _take_status(self, message: Message) -> None:
        state, parent = message.content.get("execution_state"), message.parent
        changed = self._busy.take(state, parent)
        run = self._run
        if run is not None and parent.msg_id == run.id:
            if state == "idle":
                run._idle = True
                self._end_if_both(run)
            elif not run.has_begun:
                self._take_up(run)
        elif run is not None and not run.has_begun and state == "busy":
            run.is_behind = True
        if changed:  # told last: the loop's thread should not compete with the record
            self._on_loop(self._tell_state, self.execution_state)

    def _take_up(self, run: Run) -> None:
        """Take note that the kernel has begun with a run."""
        run.has_begun = True
        if run.is_behind:
            run.started_at = datetime.now(timezone.utc)
        if run.begun is not None:
            self._on_loop(run.begun)

    def _take_shell(self, message: Message) -> None:
        if message.header.msg_type == "kernel_info_reply":
            if self._greeting.answer(message.content, time.monotonic()):
                self._greeted()
        elif self._run is not None and message.parent.msg_id == self._run.id:
            self._run._reply = message.content
            self._end_if_both(self._run)

    def _greeted(self) -> None:
        """Know a kernel that has answered on both channels."""
        if self._busy.known():
            self._on_loop(self._tell_state, self.execution_state)
        self._on_loop(settle, self.greeted)

    def _feed(self, outputs: Outputs, message: Message) -> None:
        for content in message.contents():
            with self._lock:
                outputs.feed(message.header.msg_type, content)

    def _feed_foreign_update(self, message: Message) -> None:
        """Take somebody else's update as late output of the first of our executions it is for."""
        display_id = mimebundles.display_id(message.content)
        shown = () if display_id is None else self._displays.elsewhere(display_id)
        if shown:
            self._feed(self._late_outputs(shown[0].execution_id), message)

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
        again_at = self._greeting.again_at()
        if again_at is not None and now >= again_at:
            self._say_hello()
        elif again_at is not None:
            due.append(again_at)
        return max(0.005, min(due) - now) if due else None

    def _tell_of_changes(self, run: Run) -> None:
        if not run._telling and run.outputs.version != run._told:
            run._told = run.outputs.version
            run._telling = True
            self._on_loop(self._tell_changed, run)

    def _hand_on_late(self) -> None:
        late, self._late, self._late_since = self._late, {}, None
        for id, outputs in late.items():
            self.on_late(Late(id, outputs.outputs, outputs.omitted, outputs.take_display_updates()))

    def _end_if_both(self, run: Run) -> None:
        if run._idle and run._reply is not None:
            self._end(run)

    def _end(self, run: Run) -> None:
        """End a run that the kernel answered, wholly or at least in half."""
        reply = run._reply
        if reply is None:
            self._finish(run, "error", "The kernel went idle without an answer.", None)
            return
        reason = None if run._idle else "The kernel answered but did not go idle."
        if not run._idle and self._busy.done(run.id):
            self._on_loop(self._tell_state, self.execution_state)
        if reply.get("status") == "aborted":
            reason = "The kernel did not run it, since a cell that was queued before it failed."
        count = reply.get("execution_count")
        self._finish(
            run,
            "ok" if reply.get("status") == "ok" else "error",
            reason,
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
                error=error_in(run._reply),
                outputs=run.outputs.outputs,
                outputs_complete=reason is None and run.outputs.complete,
                omitted=run.outputs.omitted,
                display_updates=run.outputs.take_display_updates(),
                started_at=run.started_at,
                finished_at=datetime.now(timezone.utc),
                exits=exits(run._reply),
                aborted=(run._reply or {}).get("status") == "aborted",
            )
        run.after(ended)


class _Frames:
    """What the drain tells goes to the connection."""

    def __init__(self, connection: KernelConnection) -> None:
        self.iopub = connection._take_iopub
        self.shell = connection._take_shell
        self.settled = connection._settled
        self._connection = connection

    def disconnected(self) -> None:
        self._connection._people.stop()
        self._connection._on_loop(self._connection.lost)
