"""One connection to one kernel: sends requests, and passes each message to its request.

Half of this runs in the channels' thread (all that the channels call), half on the event loop.
The observer of a request records its dispatch and its end in the channels' thread, so that both are
on disk with no further hop between threads.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .. import host_kernel
from ..errors import AgentExecError
from ..tasks import first_of, settle
from ..text.redaction import Redactor
from ..types import ExecutionId, KernelState
from . import nbformat_outputs
from .channels import KernelDeath, NotSent, OpenChannels
from .displays import Displays
from .execute_request import ExecuteOutcome, ExecuteRequest, InputRequest
from .execute_requests import ExecuteRequests
from .execution_state import KernelLink, Listeners
from .inspection import ASIDE, Inspector
from .messages import Message
from .outputs import AGENT_TOKENS, LATE_OUTPUT_BYTES, Late, LateOutputs
from .person_executions import NOTHING, PersonExecution, PersonExecutions, PersonRecording
from .runs import Runs
from .variables import execution_of
from .widget_models import WidgetModels

WAKE = f"{ASIDE}wake"
"""The id of a request that only wakes a kernel up."""

HELLO_DELAY = 0.5
HELLO_AGAIN_DELAY = 0.05
"""Seconds until a starting kernel is sent another request; the second if only IOPub is missing."""

WAKE_DELAYS = (0.0, 0.05, 0.2, 1.0)
"""Seconds after an interrupt at which a busy kernel is sent a request."""

CODE_TIMEOUT = 5.0
"""Seconds to wait until a kernel reports that it runs the code to interrupt."""


ESCAPED = 2
"""How many times as many bytes a text may have in JSON, because of its escapes."""

BESIDE_OUTPUT_BYTES = 1 << 20
"""The most bytes of a message beside an output that is kept, such as metadata."""


class KernelConnection(KernelLink):
    """Shell and IOPub of one kernel in one incarnation.

    Parameters
    ----------
    open_channels
        Opens the channels of this kernel.
    kernel_id, kernel_name
        Jupyter's id and kernelspec name.
    found
        Jupyter's execution state of a kernel that others use. The connection greets it with one
        request, which waits in the kernel's queue. Nobody has to wait for the answer. None means
        that the kernel was started only for us; see `ready`.
    people
        Which parts of others' code are recorded.
    redactor
        Replaces secrets in all that the kernel sends.
    """

    def __init__(
        self,
        open_channels: OpenChannels,
        *,
        kernel_id: str,
        kernel_name: str,
        found: KernelState | None = None,
        people: PersonRecording = NOTHING,
        redactor: Redactor = AGENT_TOKENS,
    ) -> None:
        super().__init__(open_channels(self), found=found, redactor=redactor)
        self.kernel_id = kernel_id
        self.kernel_name = kernel_name
        self.on_late: Listeners[Late] = Listeners()
        """Called in the channels' thread with late output, of any execution."""
        self.on_person: Listeners[PersonExecution] = Listeners()
        """Called in the channels' thread with each execution of others: at its start, or at its end
        if outputs are recorded."""
        self.runs: Runs | None = None
        """What runs in a kernel that others use."""
        self.death: KernelDeath | None = None
        """How the kernel ended, if the channels could tell."""
        self.greeted: asyncio.Future[None] = self._loop.create_future()
        """Done when the kernel has answered on both channels."""
        self._displays = Displays()
        self.widgets = WidgetModels(self._displays, redactor)
        """The models of the kernel's widgets; only in the channels' thread."""
        self.late = LateOutputs(self._displays, self.on_late, redactor)
        """Output that comes after its execution has ended."""
        self._wake_at: list[float] = []
        self._closed = False
        self._kept_bytes = max(people.outputs_bytes or 0, LATE_OUTPUT_BYTES)
        self._people = PersonExecutions(
            self.on_person, people, redactor, captures=self._displays.captures
        )
        self.inspector = Inspector(self)
        """Inspects the kernel."""
        self.requests = ExecuteRequests(
            self, self.inspector, self._displays, self.widgets, self.late, self._ended
        )
        """Our requests to run code."""
        self._session = self.channels.session
        self.channels.start()
        if found is not None:
            self.channels.call(self._say_hello)

    # -- on the loop -------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until a starting kernel answers on both channels; the caller sets a time limit."""
        while not self.greeted.done():
            self.channels.call(self._say_hello)
            delay = HELLO_AGAIN_DELAY if self.kernel_info else HELLO_DELAY
            await asyncio.wait({self.greeted}, timeout=delay)
        self.channels.call(partial(self.inspector.prepare, is_own=True))
        await self.free()

    def start(self, run: ExecuteRequest) -> None:
        """Send an execute request to the kernel; one at a time."""
        self.channels.call(partial(self._begin, run))

    async def give_input(
        self, run: ExecuteRequest, request: InputRequest, value: str, before: Callable[[], None]
    ) -> bool:
        """Answer an input request; False if the code no longer waits for it.

        Parameters
        ----------
        before
            Called in the channels' thread before the answer is sent. Its errors are raised here.
        """
        given: asyncio.Future[bool] = self._loop.create_future()

        def give() -> None:
            try:
                taken = self.requests.give_input(run, request, value, before)
            except AgentExecError as error:
                self.on_loop(settle, given, error)
            else:
                self.on_loop(settle, given, None, taken)

        self.channels.call(give)
        await first_of(given, self.disconnected)
        return given.done() and given.result()

    def withdraw_input(self, run: ExecuteRequest) -> None:
        """Answer no more input requests of code that is about to be interrupted."""
        self.channels.call(partial(self.requests.withdraw_input, run))

    def abandon(self, reason: str) -> None:
        """End the running request on our side. Further messages of it are late output."""
        self.channels.call(partial(self._abandon, reason))

    def end_incomplete(self, run: ExecuteRequest) -> None:
        """End a request whose code has ended without what the kernel still has to send of it."""
        self.channels.call(partial(self.requests.end_incomplete, run))

    async def heeds_interrupts(self, run: ExecuteRequest) -> None:
        """Wait until an interrupt can take effect: until the kernel runs the code, or has run it.

        The wait is bounded, because a kernel need not report what it runs.
        """
        there = self._loop.create_future()
        tell = partial(self.on_loop, settle, there)
        self.channels.call(partial(self.requests.when_at_code, run, tell))
        await first_of(there, self.disconnected, timeout=CODE_TIMEOUT)

    def interrupted(self) -> None:
        """Make a kernel handle the interrupt that it was just sent, also in a top-level `await`.

        ipykernel (6.29 to 7.4) cancels the awaited code only when its loop wakes up, for example
        for the next message on the shell channel. A signal that another process forwards may arrive
        later than a message, so this sends several.
        """
        self.channels.call(self._wake_soon)

    def is_host(self, proof: str) -> bool:
        """Return whether a program has proved that it knows the kernel's key."""
        key = self.channels.key
        return key is not None and hmac.compare_digest(
            proof.encode(), host_kernel.proof(self.kernel_id, key).encode()
        )

    def hear_people(self, listener: Callable[[PersonExecution], None]) -> None:
        """Add a listener for others' code; the first also gets code that ended since adoption."""
        self.on_person.add(listener)
        self.channels.call(partial(self._people.tell_held, listener))

    async def close(self) -> None:
        """Close the connection. Deliver the late output received so far before."""
        if not self._closed:
            self._closed = True
            await self.inspector.end()
            self.channels.call(self.late.hand_on)
            self.channels.call(self._people.stop)
            await asyncio.to_thread(self.channels.stop)
            self.lost()

    # -- in the channels' thread -------------------------------------------------------------------

    def _begin(self, run: ExecuteRequest) -> None:
        early_bytes = self.late.forget(run.id)
        self.late.hand_on()
        self.requests.begin(run, early_bytes)

    def _abandon(self, reason: str) -> None:
        self.requests.abandon(reason)
        self.late.hand_on()

    def _say_hello(self) -> None:
        self.greeting.asked()
        with suppress(NotSent):  # another program may use its port; then its end is detected soon
            self.channels.send("shell", "kernel_info_request", {}, msg_id=self.greeting.msg_id)

    def _wake_soon(self) -> None:
        now = time.monotonic()
        self._wake_at = [now + delay for delay in WAKE_DELAYS]

    def _wake(self) -> None:
        if not self.activity.has_ours:
            self._wake_at.clear()
            return
        with suppress(NotSent):  # the kernel has ended
            self.channels.send("shell", "kernel_info_request", {}, msg_id=WAKE)

    @property
    def largest_message(self) -> int:
        """How many bytes of a message from IOPub may be held, unless it is a stream's text."""
        kept = max(self.requests.largest_output, self._kept_bytes)
        return ESCAPED * kept + BESIDE_OUTPUT_BYTES

    @property
    def is_full(self) -> bool:
        """Whether no more output is wanted for a moment."""
        return self.requests.is_full

    def iopub_message(self, message: Message) -> None:
        """Handle a message from IOPub."""
        msg_type, parent = message.header.msg_type, message.parent
        if message.unread and not msg_type:
            self._take_stray(message)  # it has no parent: most likely it belongs to what runs
            return
        if msg_type.startswith("comm_"):
            self.widgets.take(msg_type, message.content, message.buffers)
        ours = parent.session == self._session
        of_execution = parent.msg_id.startswith("x_")
        if ours and not of_execution and self.inspector.take(message):
            return
        if msg_type == "status":
            changed = self.activity.take(message.content.get("execution_state"), parent)
            self.requests.take_status(message, ours=ours)
            if changed:  # last, so that the loop does not compete with the record
                self.tell_state()
        elif self.requests.take_output(message):
            pass
        elif of_execution:
            self.requests.feed(self.late.outputs(execution_of(parent.msg_id)), message)
        elif ours:
            self._take_stray(message)
        else:
            self.activity.overhear(parent)
            self.requests.overhear(parent)
            if msg_type == "update_display_data":
                self._feed_foreign_update(message)
        if not ours and not of_execution:
            self._people.take(message)
        if self.runs is not None and self.inspector.is_python:
            self._note_run(self.runs, message, of_execution=of_execution)
        if not self.greeting.is_done and self.greeting.hear(message, ours=ours):
            self._greeted()

    def _note_run(self, runs: Runs, message: Message, *, of_execution: bool) -> None:
        """Note what a message tells of a run. How an execution ends, its request tells."""
        msg_type, content, msg_id = message.header.msg_type, message.content, message.parent.msg_id
        if msg_type == "execute_input":
            code, count = content.get("code"), content.get("execution_count")
            if isinstance(code, str) and isinstance(count, int):
                runs.begin(msg_id, code, count)
        elif not of_execution and msg_type in ("error", "status"):
            is_over = content.get("execution_state") == "idle"
            runs.end(msg_id, failed=msg_type == "error", is_over=is_over)

    def _ended(self, outcome_of: ExecutionId, outcome: ExecuteOutcome) -> None:
        """Note the end of an execution."""
        if self.runs is not None:
            failed = outcome.status != "ok"
            self.runs.end(outcome_of, outcome.variables, failed=failed, is_over=True)

    def _take_stray(self, message: Message) -> None:
        """Assign a thread's output during another request of ours to the last execution."""
        latest = self.requests.latest
        if latest is not None and self.activity.foreign is None:
            self.requests.feed(self.requests.running or self.late.outputs(latest), message)

    def shell_message(self, message: Message) -> None:
        """Handle a reply."""
        is_of_code = message.header.msg_type == "execute_reply"
        if not is_of_code and self.activity.done(message.parent.msg_id):
            self.tell_state()
        if message.parent.msg_id.startswith("x_"):
            self.requests.take_reply(message)
            return
        if self.inspector.take(message) or message.header.msg_type != "kernel_info_reply":
            return
        if self.greeting.answer(message.content, time.monotonic()):
            self._greeted()

    def _greeted(self) -> None:
        """Mark the kernel as connected after it has answered on both channels."""
        if self.activity.known():
            self.tell_state()
        self.on_loop(settle, self.greeted)

    def _feed_foreign_update(self, message: Message) -> None:
        """Add others' display update to the late output of our first execution that it changes."""
        display_id = nbformat_outputs.display_id(message.content)
        shown = () if display_id is None else self._displays.elsewhere(display_id)
        if shown:
            self.requests.feed(self.late.outputs(shown[0].execution_id), message)

    def stdin_message(self, message: Message) -> None:
        """Handle an input request."""
        self.requests.take_input_request(message)

    def channels_ended(self, death: KernelDeath | None = None) -> None:
        """Note that the kernel has disconnected."""
        self._people.stop()
        self.death = self.death or death
        self.on_loop(self.lost)

    def messages_missing(self, reason: str) -> None:
        """Note that messages of the kernel are lost."""
        self.requests.miss(reason)
        self._people.miss()
        if self.runs is not None:
            self.runs.miss()

    def reconnected(self) -> None:
        """Ask the kernel what it does now, because the answer to that may have been lost."""
        self.requests.ask_whether_over()
        if self.greeting.is_done:
            self.activity.missed(others_may_run=self.requests.running is None)
            self.greeting = self.greeting.anew()
            self.tell_state()
        self._say_hello()

    def all_read(self) -> float | None:
        """Note that all available messages were read; return when to be called again."""
        now = time.monotonic()
        due = self.requests.settled(now)
        hand_on_at = self.late.hand_on_at(now)
        if hand_on_at is not None and now >= hand_on_at:
            self.late.hand_on()
        elif hand_on_at is not None:
            due.append(hand_on_at)
        again_at = None if self.greeting.is_done else self.greeting.again_at()
        if again_at is not None and now >= again_at:
            self._say_hello()
        elif again_at is not None:
            due.append(again_at)
        if self._wake_at and now >= self._wake_at[0]:
            self._wake_at.pop(0)
            self._wake()
        due.extend(self._wake_at)
        return max(0.005, min(due) - now) if due else None
