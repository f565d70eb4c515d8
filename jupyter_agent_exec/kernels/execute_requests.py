"""Our execute requests in one kernel: one at a time, each followed to its end.

It sends them, handles outputs, replies and input requests, and lists the kernel's variables before
and after. Call everything in the thread of the kernel's channels, unless noted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from ..models import OutputChange
from ..types import ExecutionId, Output
from .channels import NotSent
from .displays import Displays
from .execute_request import (
    ExecuteOutcome,
    ExecuteRequest,
    InputRequest,
    RequestObserver,
    input_request,
    over_id,
)
from .execution_state import KernelLink
from .inspection import ASIDE, Inspector
from .messages import Header, Message
from .outputs import LateOutputs, Outputs
from .variables import (
    VariableTracker,
    lacks_our_code,
    value_expressions,
    variable_expressions,
)
from .widget_models import WidgetModels

ASK_DELAY = 2.0
"""Seconds of silence after the reply without idle, or after idle without the reply, until a later
request is sent: what it causes can only follow what is missing."""

SILENCE_SECONDS = 10.0
"""Seconds without output or status after which a request is over that the kernel has answered, as
it has a later one: it does not tell when it is idle."""


class ExecuteRequests:
    """Sends execute requests to one kernel and follows each to its end."""

    ask_delay = ASK_DELAY
    silence_seconds = SILENCE_SECONDS

    def __init__(
        self,
        link: KernelLink,
        inspector: Inspector,
        displays: Displays,
        widgets: WidgetModels,
        late: LateOutputs,
        ended: Callable[[ExecutionId, ExecuteOutcome], None],
    ) -> None:
        self._ended = ended
        self._link = link
        self._channels = link.channels
        self._activity = link.activity
        self._inspector = inspector
        self._displays = displays
        self._widgets = widgets
        self._late = late
        self._lock = threading.Lock()
        self._run: ExecuteRequest | None = None
        self.largest_output = 0
        """The most bytes that are kept of the outputs of any request so far."""
        self.latest: ExecutionId | None = None
        """The id of the last request that was begun."""
        self._variables = VariableTracker()

    # -- from any thread ---------------------------------------------------------------------------

    def changes(self, run: ExecuteRequest, version: int) -> tuple[int, list[OutputChange]]:
        """Return how an execution's outputs changed since `version`, and their version now."""
        with self._lock:
            return run.outputs.changes_since(version)

    def outputs(self, run: ExecuteRequest) -> list[Output]:
        """Return an execution's outputs so far."""
        with self._lock:
            return run.outputs.outputs

    def is_running(self, run: ExecuteRequest) -> bool:
        """Return whether the kernel runs this request now, according to its messages.

        Only then may it be interrupted: before and after, it may run somebody else's cell.
        """
        return self._run is run and run.has_begun and not run.has_ended

    # -- in the channels' thread -------------------------------------------------------------------

    def begin(self, run: ExecuteRequest, early_bytes: int | None = None) -> None:
        """Send a request.

        Parameters
        ----------
        early_bytes
            Bytes of output that other code sent in its name, which are left out; None for none.
        """
        with self._bringing_to_an_end(run):
            self._begin(run, early_bytes)

    def _begin(self, run: ExecuteRequest, early_bytes: int | None) -> None:
        run.outputs = self._outputs(run, self._displays)
        self.largest_output = max(self.largest_output, run.max_output_bytes)
        if early_bytes is not None:
            run.outputs.leave_out("", early_bytes)
        run.starts()
        run.is_behind = self._activity.foreign is not None
        if not run.observer.before_sending():
            return
        self._inspector.prepare()
        self._run, self.latest = run, run.id
        run.looks = run.looks and self._inspector.is_python
        self._dispatch(run)

    def abandon(self, reason: str) -> None:
        """End the running request on our side, although the kernel has not ended it."""
        if (run := self._run) is not None:
            with self._bringing_to_an_end(run):
                if run.reply is not None:
                    self._finish(run, *run.answer())
                else:
                    self._finish(run, "abandoned", reason)

    def miss(self, reason: str) -> None:
        """Note that messages of the kernel are lost, which may be the running request's."""
        if (run := self._run) is not None:
            run.missing = run.missing or reason

    def ask_whether_over(self) -> None:
        """Send a request after the running one: its answer proves that the running one is over."""
        run = self._run
        if run is None or run.missing is None:
            return
        # What told these may be among the missing messages.
        run.reach_code()
        if not run.has_begun and not run.is_behind:
            self._take_up(run)
        self._ask_whether_over(run)

    def _ask_whether_over(self, run: ExecuteRequest) -> None:
        msg_id = over_id(run.id, run.asked + 1)
        self._channels.send("shell", "kernel_info_request", {}, msg_id=msg_id)
        run.asked += 1
        run.is_asking = True

    def _published(self, run: ExecuteRequest, asked: int = 0) -> None:
        """Handle that the kernel published something that follows the code's end.

        ipykernel publishes what was printed before that, unless it takes more than ten seconds:
        then it queues the text behind all that it has to publish at that moment. What it publishes
        of a request that is sent from now on comes after the text.

        Parameters
        ----------
        asked
            The number of the request that asked whether it is over; 0 for its own idle.
        """
        is_late = run.replied_at and time.monotonic() >= run.replied_at + self.ask_delay
        if run.proof is not None:
            run.is_heard |= asked >= run.proof
        elif run.asked or is_late:
            run.proof = run.asked + 1
            with suppress(NotSent):  # it is asked again
                self._ask_whether_over(run)
        else:
            run.is_heard = True
        self._end_if_complete(run)

    def end_incomplete(self, run: ExecuteRequest) -> None:
        """End a request whose code has ended, although its outputs or its reply have not come."""
        if self._run is run and run.has_ended:
            self._end(run)

    def when_at_code(self, run: ExecuteRequest, call: Callable[[], None]) -> None:
        """Call once the kernel has sent something that the code caused, or the request has ended.

        A kernel reports that it is busy before it handles interrupts. An interrupt in between is
        lost.
        """
        run.when_at_code.append(call)
        if run.is_at_code:
            run.reach_code()

    @property
    def running(self) -> Outputs | None:
        """The outputs of the running request; None if none runs."""
        return None if self._run is None else self._run.outputs

    @property
    def is_full(self) -> bool:
        """Whether the running request should get no more output for a moment."""
        run = self._run
        return run is not None and run.sink is not None and run.sink.is_full

    def feed(self, outputs: Outputs, message: Message) -> None:
        """Fold a message into outputs that other threads may read meanwhile."""
        if message.unread:
            with self._lock:
                outputs.leave_out(message.header.msg_type, message.size)
            return
        with self._lock:
            outputs.feed(
                message.header.msg_type, message.content, may_have_token=message.may_have_token
            )

    def overhear(self, parent: Header) -> None:
        """Record a request of others, which may change variables."""
        self._variables.overhear(parent)

    def take_output(self, message: Message) -> bool:
        """Handle an IOPub message other than a status; return whether it belongs to the run."""
        run = self._run
        if run is None or message.parent.msg_id != run.id:
            return False
        if not run.has_begun and self._activity.foreign is not None:
            # Other code sends messages in its name, because the kernel has not begun with it.
            with self._lock:
                run.outputs.leave_out(message.header.msg_type, message.size)
            return True
        run.half_since = run.silent_since = None  # more may follow
        run.reach_code()
        self.feed(run.outputs, message)
        return True

    def take_status(self, message: Message, *, ours: bool) -> None:
        """Handle a `status` message."""
        state, parent = message.content.get("execution_state"), message.parent
        run = self._run
        if run is not None and parent.msg_id == run.id:
            if state == "idle":
                run.idle = True
                self._published(run)
            elif not run.has_begun:
                self._take_up(run)
        elif run is not None and (asked := run.asked_by(parent.msg_id)):
            self._published(run, asked)
        elif not ours:
            self._variables.overhear(parent)
            if run is not None and not run.has_begun and state == "busy":
                run.is_behind = True

    def take_reply(self, message: Message) -> None:
        """Handle a reply to the run, or to the question whether it is over."""
        run, msg_id = self._run, message.parent.msg_id
        if run is None:
            return
        if msg_id == run.id and message.header.msg_type == "execute_reply":
            run.replied(self._link.redacted(message), message.content)
            run.reach_code()
            self._end_if_complete(run)
        elif asked := run.asked_by(msg_id):
            run.is_over, run.half_since = True, None
            run.is_asking &= asked < run.asked
            self._end_if_complete(run)

    def take_input_request(self, message: Message) -> None:
        """Handle an input request of the running code. Those of other code are not answered."""
        run, request = self._run, input_request(message)
        if request is None or run is None or message.parent.msg_id != run.id:
            return
        if not run.allow_stdin:
            return
        if not run.has_begun:
            self._take_up(run)
        request = request._replace(prompt=run.outputs.redaction.text(request.prompt))
        run.input = request
        run.observer.input_requested(request)

    def give_input(
        self, run: ExecuteRequest, request: InputRequest, value: str, before: Callable[[], None]
    ) -> bool:
        """Answer an input request; False if the code no longer waits for it.

        Parameters
        ----------
        before
            Called before the answer is sent. If it raises, the request stays unanswered.
        """
        if self._run is not run or run.input is not request:
            return False
        before()
        run.input = None
        self._channels.send("stdin", "input_reply", {"value": value}, msg_id=f"{run.id}-input")
        return True

    def withdraw_input(self, run: ExecuteRequest) -> None:
        """Answer no more input requests of this code."""
        run.input = None

    def settled(self, now: float) -> list[float]:
        """Handle what is due after all messages were read; return the times of further calls."""
        run = self._run
        if run is None:
            return []
        if run.input is not None:  # the user has to see all of it
            with self._lock:
                run.outputs.release()
        if run.is_watched:
            self._tell_of_changes(run)
        if (run.has_ended or run.is_over) and not run.is_asking:
            run.half_since = run.half_since or now
            due = run.half_since + self.ask_delay
            if run.silent_since is None or self.is_full:  # then nothing is read
                run.silent_since = now
            if run.is_over and now >= run.silent_since + self.silence_seconds:
                self._end(run)
                return []
            if now >= due:
                run.tell_begun()  # its time limit begins now at the latest
                run.half_since, due = now, now + self.ask_delay
                with suppress(NotSent):  # the kernel has ended, or its connection is being mended
                    self._ask_whether_over(run)
        else:
            return []
        return [due]

    def _dispatch(self, run: ExecuteRequest) -> None:
        """Send the code to the kernel."""
        info = self._link.kernel_info
        # In this order: a look sees also what the evaluation of values has changed.
        looking = variable_expressions(info) if run.looks else {}
        content = {
            "code": run.source,
            "silent": False,
            "store_history": run.store_history,
            "user_expressions": {**value_expressions(info, run.values), **looking},
            "allow_stdin": run.allow_stdin,
            "stop_on_error": False,
        }
        if run.allow_stdin:
            self._channels.open_stdin()
        self._channels.send("shell", "execute_request", content, msg_id=run.id)
        run.is_sent = True
        run.observer.sent()

    def _take_up(self, run: ExecuteRequest) -> None:
        """Mark that the kernel has begun with a request."""
        run.has_begun = True
        if run.is_behind:
            run.starts()
        run.tell_begun()

    def begin_trial(self, run: ExecuteRequest) -> None:
        """Prepare for a request that a copy of the kernel runs. Call from any thread.

        The displays of a copy are its own: it cannot change what the kernel has shown.
        """
        run.outputs = self._outputs(run, Displays())

    def _outputs(self, run: ExecuteRequest, displays: Displays) -> Outputs:
        return Outputs(
            run.id,
            displays,
            max_output_bytes=run.max_output_bytes,
            sink=run.sink,
            redactor=self._link.redactor,
        )

    def feed_trial(self, run: ExecuteRequest, message: Message) -> None:
        """Fold a message of a copy of the kernel. Call from any thread."""
        self.feed(run.outputs, message)
        if run.is_watched:
            self._tell_of_changes(run)

    def _tell_of_changes(self, run: ExecuteRequest) -> None:
        if not run.telling and run.outputs.version != run.told:
            run.told = run.outputs.version
            run.telling = True
            self._link.on_loop(run.tell_changed)

    def _end_if_complete(self, run: ExecuteRequest) -> None:
        if run.is_complete:
            self._end(run)

    def _end(self, run: ExecuteRequest) -> None:
        """End a request whose code has ended."""
        run.ends()
        if not run.idle and self._activity.done(run.id):
            self._link.tell_state()
        with self._bringing_to_an_end(run):
            if lacks_our_code(run.reply):  # the code removed it
                self._inspector.register()
            if run.looks:
                run.variables = self._variables.after(run.reply)
            self._finish(run, *run.answer())

    def _finish(
        self,
        run: ExecuteRequest,
        status: Literal["ok", "error", "abandoned", "lost"],
        reason: str | None,
        execution_count: int | None = None,
    ) -> None:
        self._run = None
        run.reach_code()
        with self._lock:
            ended = run.end(status, reason, execution_count, self._widgets)
        self._late.follow(run.id, run.outputs.redaction)
        self._return_captured(ended, self._widgets)
        self._ended(run.id, ended)
        observer, run.observer = run.observer, RequestObserver()
        # The observer knows the request. Without this, the two would keep the outputs in memory
        # until a garbage collection, and outputs are few objects, so that would be late.
        observer.ended(ended)

    def _return_captured(self, ended: ExecuteOutcome, widgets: WidgetModels) -> None:
        """Give `Output` widgets in the kernel the outputs that they captured, as a frontend does.

        The kernel tells all frontends, so that an open JupyterLab shows them.
        """
        for id in sorted(ended.captured if ended.status in ("ok", "error") else ()):
            state = {"outputs": widgets.captured(id)}
            data = {"method": "update", "state": state, "buffer_paths": []}
            with suppress(NotSent):  # the kernel has ended
                self._channels.send(
                    "shell", "comm_msg", {"comm_id": id, "data": data}, msg_id=f"{ASIDE}{id}"
                )

    @contextmanager
    def _bringing_to_an_end(self, run: ExecuteRequest) -> Iterator[None]:
        """Fail the request if anything fails here, because nothing else would end it."""
        observer = run.observer  # the request lets go of it at its end
        try:
            yield
        except Exception as error:
            self._run = None
            observer.failed(error)
            raise  # the channels log it
