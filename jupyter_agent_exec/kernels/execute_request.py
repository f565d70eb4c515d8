"""Our execute requests in one kernel: one at a time, each followed to its end.

It sends them, handles outputs, replies and input requests, and lists the kernel's variables before
and after. Call everything in the thread of the kernel's channels, unless noted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from ..models import Changes, ExecutionError, Omitted, OutputChange, Seal, Value
from ..text.model_text import TextSink
from ..types import ExecutionId, Output
from .channels import NotSent
from .displays import Displays, DisplayUpdate
from .inspection import ASIDE, Inspector
from .link import KernelLink
from .messages import Header, Message
from .nbformat_outputs import payloads_in
from .outputs import LateOutputs, Outputs
from .variables import (
    VariableTracker,
    lacks_our_code,
    value_expressions,
    values_in,
    variable_expressions,
)
from .widget_models import WidgetModels

PROMPT_CHARACTERS: Final = 2000
"""Maximum number of characters to keep of a prompt."""


class InputRequest(NamedTuple):
    """A request for input."""

    prompt: str
    """The code's prompt, cut if it is very long."""
    password: bool
    """Whether the input must not be shown."""
    asked_at: datetime


def input_request(message: Message) -> InputRequest | None:
    """Return the input request of a stdin message; None if it is not one."""
    if message.header.msg_type != "input_request":
        return None
    prompt = message.content.get("prompt")
    return InputRequest(
        prompt=prompt[:PROMPT_CHARACTERS] if isinstance(prompt, str) else "",
        password=bool(message.content.get("password")),
        asked_at=datetime.now(UTC),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteOutcome:
    """How an execute request ended, according to the kernel."""

    status: Literal["ok", "error", "abandoned", "lost"]
    """The kernel's status; `abandoned` if the request had not ended; `lost` if it has ended, but
    the kernel's answer was lost."""
    reason: str | None
    """A sentence if the kernel's messages were not complete."""
    execution_count: int | None
    error: ExecutionError | None
    outputs: list[Output]
    outputs_complete: bool
    omitted: Omitted
    redacted: int
    """How many secrets were replaced in outputs and prompts."""
    display_updates: list[DisplayUpdate]
    started_at: datetime
    finished_at: datetime
    duration: float
    """Seconds between the two, by a monotonic clock."""
    exits: bool
    """Whether the code asked the kernel to exit."""
    aborted: bool
    """Whether the kernel did not run it, because a cell ahead of it had failed."""
    variables: Changes | None
    """How it changed the kernel's variables; None if unknown."""
    values: dict[str, Value] | None
    """The values of the expressions in the request; None if it had none."""
    captured: frozenset[str]
    """The ids of the `Output` widgets that took output away."""
    widgets: WidgetModels | None
    """The models of the kernel's widgets; only in the channels' thread. None for a trial, whose
    widgets are not the kernel's."""
    seal: Seal | None = None
    """What sealed the copy of the kernel in which a trial ran."""


class RequestObserver:
    """Observes one execute request. All calls come from the channels' thread."""

    def before_sending(self) -> bool:
        """Prepare for the request; nothing is sent if this returns False."""
        return True

    def sent(self) -> None:
        """Handle that it was sent."""

    def begun(self) -> None:
        """Handle that the kernel begins with it."""

    def input_requested(self, request: InputRequest) -> None:
        """Handle an input request of its code."""

    def ended(self, outcome: ExecuteOutcome) -> None:
        """Handle its end."""

    def failed(self, error: Exception) -> None:
        """Handle, instead of its end, that this server failed."""

    def outputs_changed(self) -> None:
        """Handle new output, if `is_watched` is set. This alone is called on the loop."""


@dataclass(eq=False, slots=True, kw_only=True)
class ExecuteRequest:
    """One source to execute in a kernel, and its state."""

    id: ExecutionId
    """Also the id of its `execute_request`."""
    source: str
    store_history: bool
    max_output_bytes: int
    sink: TextSink | None
    observer: RequestObserver
    looks: bool = False
    """Whether to record which variables it changes. Set to False at its start if the kernel cannot
    tell."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Expressions to evaluate after it, by name."""
    allow_stdin: bool = False
    """Whether its code may ask for input."""
    missing: str | None = None
    """Why messages of the kernel are missing, in a sentence; None if none are."""
    input: InputRequest | None = None
    """The input request that is not answered yet."""
    is_watched: bool = False
    """Whether to notify the observer when outputs change."""
    outputs: Outputs = field(init=False)
    started_at: datetime | None = None
    """When it was sent; or when the kernel began with it, if cells were ahead of it."""
    has_begun: bool = False
    """Whether the kernel has begun with it. Until then, the kernel runs others' cells."""
    is_behind: bool = False
    """Whether cells of others were ahead of it in the kernel's own queue."""
    is_sent: bool = False
    ended_at: datetime | None = None
    variables: Changes | None = None
    """How it changed the kernel's variables; None while unknown."""
    _clock: float = 0.0
    """When it started, by `time.monotonic`."""
    _duration: float | None = None
    _reply: dict[str, Any] | None = None
    _original: dict[str, Any] = field(default_factory=dict)
    """The reply with its secrets."""
    _idle: bool = False
    _is_at_code: bool = False
    _when_at_code: list[Callable[[], None]] = field(default_factory=list)
    _half_since: float | None = None
    _is_over: bool = False
    """Whether the kernel has answered a later request."""
    _replied_at: float = 0.0
    """When the reply was read, by `time.monotonic`."""
    _is_heard: bool = False
    """Whether all of its output has come."""
    _asked: int = 0
    """How many later requests were sent, to find out whether it is over."""
    _is_asking: bool = False
    """Whether the kernel has not answered the last of them."""
    _silent_since: float | None = None
    """Since when there is no output, although the code has ended."""
    _proof: int | None = None
    """Which of them the kernel can only get after it has published all output; None if none."""
    _is_told_begun: bool = False
    _told: int = 0
    _telling: bool = False

    def starts(self) -> None:
        """Set the time at which it starts."""
        self.started_at, self._clock = datetime.now(UTC), time.monotonic()

    def ends(self) -> None:
        """Set the time at which it ends."""
        self.ended_at, self._duration = datetime.now(UTC), time.monotonic() - self._clock

    def replied(
        self, reply: dict[str, Any], original: dict[str, Any], *, is_last: bool = False
    ) -> None:
        """Set the reply.

        Parameters
        ----------
        reply
            Its content without secrets.
        original
            Its content. Secrets are replaced and counted where it becomes an output.
        is_last
            Whether no output comes after it, as in a copy of the kernel.
        """
        self._reply, self._original, self._replied_at = reply, original, time.monotonic()
        self._is_heard |= is_last

    @property
    def has_ended(self) -> bool:
        """Whether the kernel has told that the code ended; outputs may still come."""
        return self._idle or self._reply is not None

    @property
    def is_complete(self) -> bool:
        """Whether all came that the kernel will send for it."""
        return self._is_heard and (self._reply is not None or self._is_over)

    def asked_by(self, msg_id: str) -> int:
        """Return which request that asked whether it is over has this id; 0 if none has."""
        asked = range(1, self._asked + 1)
        return next((number for number in asked if over_id(self.id, number) == msg_id), 0)

    def answer(self) -> tuple[Literal["ok", "error", "lost"], str | None, int | None]:
        """Return status, reason and execution count of code that has ended."""
        reply = self._reply
        if reply is None and self.missing is not None:
            return "lost", f"{self.missing} It is not known how the code ended.", None
        if reply is None:
            return "error", "The kernel went idle without an answer.", None
        reason = self.missing
        if not self._is_heard:
            reason = reason or "The code has ended. It is not known whether all of its output came."
        if not reply:
            reason = "The kernel's answer could not be read."
        if reply.get("status") == "aborted":
            reason = "The kernel did not run it, since a cell that was queued before it failed."
        count = reply.get("execution_count")
        status: Literal["ok", "error"] = "ok" if reply.get("status") == "ok" else "error"
        return status, reason, count if type(count) is int else None

    def end(
        self,
        status: Literal["ok", "error", "abandoned", "lost"],
        reason: str | None,
        execution_count: int | None,
        widgets: WidgetModels | None,
    ) -> ExecuteOutcome:
        """Stop collecting outputs, and return how it ended."""
        assert self.started_at is not None
        self.outputs.feed_reply(self._original)
        self.outputs.finish()
        is_error = self._reply is not None and self._reply.get("status") not in ("ok", "aborted")
        error = self.outputs.error if is_error else None
        if is_error and error is None:
            reason = reason or "The kernel reported an error, and did not say which."
        if self.ended_at is None or self._duration is None:
            self.ends()
        assert self.ended_at is not None
        assert self._duration is not None
        is_unknown = self.missing is not None or not self._is_heard
        omitted = replace(self.outputs.omitted, unknown=is_unknown)
        return ExecuteOutcome(
            status=status,
            reason=reason,
            execution_count=execution_count,
            error=error,
            outputs=self.outputs.outputs,
            outputs_complete=omitted == Omitted(),
            omitted=omitted,
            redacted=self.outputs.redaction.taken_count(),
            display_updates=self.outputs.take_display_updates(),
            started_at=self.started_at,
            finished_at=self.ended_at,
            duration=self._duration,
            exits=exits(self._reply),
            aborted=(self._reply or {}).get("status") == "aborted",
            variables=self.variables,
            values=values_in(self._reply, self.values) if self.values else None,
            captured=frozenset(self.outputs.captured),
            widgets=widgets,
        )


def exits(reply: dict[str, Any] | None) -> bool:
    """Return whether a reply asks the frontend to let the kernel exit."""
    return any(not item.get("keepkernel") for item in payloads_in(reply, "ask_exit"))


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
        self._busy = link.activity
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
        self._looking = VariableTracker()

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
        run.is_behind = self._busy.foreign is not None
        if not run.observer.before_sending():
            return
        self._inspector.prepare()
        self._run, self.latest = run, run.id
        run.looks = run.looks and self._inspector.is_python
        self._dispatch(run)

    def abandon(self, reason: str) -> None:
        """End the running request on our side, although the kernel has not ended it."""
        if (run := self._run) is not None:
            if not run.is_sent:
                run.observer.sent()
            with self._bringing_to_an_end(run):
                if run._reply is not None:
                    self._finish(run, *run.answer())
                else:
                    self._finish(run, "abandoned", reason)

    def miss(self, reason: str) -> None:
        """Note that messages of the kernel are lost, which may be the running request's."""
        if (run := self._run) is not None and run.is_sent:
            run.missing = run.missing or reason

    def ask_whether_over(self) -> None:
        """Send a request after the running one: its answer proves that the running one is over."""
        run = self._run
        if run is None or run.missing is None:
            return
        # What told these may be among the missing messages.
        _is_at_code(run)
        if not run.has_begun and not run.is_behind:
            self._take_up(run)
        self._ask_whether_over(run)

    def _ask_whether_over(self, run: ExecuteRequest) -> None:
        msg_id = over_id(run.id, run._asked + 1)
        self._channels.send("shell", "kernel_info_request", {}, msg_id=msg_id)
        run._asked += 1
        run._is_asking = True

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
        is_late = run._replied_at and time.monotonic() >= run._replied_at + self.ask_delay
        if run._proof is not None:
            run._is_heard |= asked >= run._proof
        elif run._asked or is_late:
            run._proof = run._asked + 1
            with suppress(NotSent):  # it is asked again
                self._ask_whether_over(run)
        else:
            run._is_heard = True
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
        run._when_at_code.append(call)
        if run._is_at_code:
            _is_at_code(run)

    @property
    def running(self) -> Outputs | None:
        """The outputs of the running request; None if none runs."""
        return None if self._run is None else self._run.outputs

    @property
    def is_full(self) -> bool:
        """Whether the running request should get no more output for a moment."""
        run = self._run
        return run is not None and run.is_sent and run.sink is not None and run.sink.is_full

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
        self._looking.overhear(parent)

    def take_output(self, message: Message) -> bool:
        """Handle an IOPub message other than a status; return whether it belongs to the run."""
        run = self._run
        if run is None or message.parent.msg_id != run.id:
            return False
        if not run.has_begun and self._busy.foreign is not None:
            # Other code sends messages in its name, because the kernel has not begun with it.
            with self._lock:
                run.outputs.leave_out(message.header.msg_type, message.size)
            return True
        run._half_since = run._silent_since = None  # more may follow
        _is_at_code(run)
        self.feed(run.outputs, message)
        return True

    def take_status(self, message: Message, *, ours: bool) -> None:
        """Handle a `status` message."""
        state, parent = message.content.get("execution_state"), message.parent
        run = self._run
        if run is not None and parent.msg_id == run.id:
            if state == "idle":
                run._idle = True
                self._published(run)
            elif not run.has_begun:
                self._take_up(run)
        elif run is not None and (asked := run.asked_by(parent.msg_id)):
            self._published(run, asked)
        elif not ours:
            self._looking.overhear(parent)
            if run is not None and not run.has_begun and state == "busy":
                run.is_behind = True

    def take_reply(self, message: Message) -> None:
        """Handle a reply to the run, or to the question whether it is over."""
        run, msg_id = self._run, message.parent.msg_id
        if run is None:
            return
        if msg_id == run.id and message.header.msg_type == "execute_reply":
            run.replied(self._link.redacted(message), message.content)
            _is_at_code(run)
            self._end_if_complete(run)
        elif asked := run.asked_by(msg_id):
            run._is_over, run._half_since = True, None
            run._is_asking &= asked < run._asked
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
        if (run.has_ended or run._is_over) and not run._is_asking:
            run._half_since = run._half_since or now
            due = run._half_since + self.ask_delay
            if run._silent_since is None or self.is_full:  # then nothing is read
                run._silent_since = now
            if run._is_over and now >= run._silent_since + self.silence_seconds:
                self._end(run)
                return []
            if now >= due:
                _tell_begun(run)  # its time limit begins now at the latest
                run._half_since, due = now, now + self.ask_delay
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
        _tell_begun(run)

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
        if not run._telling and run.outputs.version != run._told:
            run._told = run.outputs.version
            run._telling = True
            self._link.on_loop(_tell_changed, run)

    def _end_if_complete(self, run: ExecuteRequest) -> None:
        if run.is_complete:
            self._end(run)

    def _end(self, run: ExecuteRequest) -> None:
        """End a request whose code has ended."""
        run.ends()
        if not run._idle and self._busy.done(run.id):
            self._link.tell_state()
        with self._bringing_to_an_end(run):
            if lacks_our_code(run._reply):  # the code removed it
                self._inspector.register()
            if run.looks:
                run.variables = self._looking.after(run._reply)
            self._finish(run, *run.answer())

    def _finish(
        self,
        run: ExecuteRequest,
        status: Literal["ok", "error", "abandoned", "lost"],
        reason: str | None,
        execution_count: int | None = None,
    ) -> None:
        self._run = None
        _is_at_code(run)
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
        try:
            yield
        except Exception as error:
            self._run = None
            run.observer.failed(error)
            raise  # the channels log it


def over_id(id: ExecutionId, number: int) -> str:
    """Return the id of a request that asks whether an execution is over."""
    return f"{id}.over{number}"


def _is_at_code(run: ExecuteRequest) -> None:
    run._is_at_code = True
    while run._when_at_code:
        run._when_at_code.pop()()


def _tell_begun(run: ExecuteRequest) -> None:
    if not run._is_told_begun:
        run._is_told_begun = True
        run.observer.begun()


def _tell_changed(run: ExecuteRequest) -> None:
    run._telling = False
    run.observer.outputs_changed()
