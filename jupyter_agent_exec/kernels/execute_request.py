"""An execute request to a kernel: its state, its observer, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from ..models import LARGEST, Changes, ExecutionError, Omitted, Seal, Value
from ..text.model_text import TextSink
from ..types import ExecutionId, Output
from .displays import DisplayUpdate
from .messages import Message
from .nbformat_outputs import payloads_in
from .outputs import Outputs
from .variables import (
    values_in,
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
    reply: dict[str, Any] | None = None
    """The content of the kernel's reply, without secrets; None while there is none."""
    _original: dict[str, Any] = field(default_factory=dict)
    """The reply with its secrets."""
    idle: bool = False
    """Whether the kernel has told that it is idle after it."""
    is_at_code: bool = False
    """Whether the kernel runs the code, or has run it."""
    when_at_code: list[Callable[[], None]] = field(default_factory=list)
    """What to call then."""
    half_since: float | None = None
    """When the wait for the rest of its end began, at first or after the last question, by
    `time.monotonic`; None while it is not waited for."""
    is_over: bool = False
    """Whether the kernel has answered a later request."""
    replied_at: float = 0.0
    """When the reply was read, by `time.monotonic`."""
    is_heard: bool = False
    """Whether all of its output has come."""
    asked: int = 0
    """How many later requests were sent, to find out whether it is over."""
    is_asking: bool = False
    """Whether the kernel has not answered the last of them."""
    silent_since: float | None = None
    """Since when there is no output, although the code has ended."""
    proof: int | None = None
    """Which of them the kernel can only get after it has published all output; None if none."""
    _is_told_begun: bool = False
    told: int = 0
    """The version of the outputs of which the observer was told last."""
    telling: bool = False
    """Whether a call on the loop that tells of it is under way."""

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
        self.reply, self._original, self.replied_at = reply, original, time.monotonic()
        self.is_heard |= is_last

    @property
    def has_ended(self) -> bool:
        """Whether the kernel has told that the code ended; outputs may still come."""
        return self.idle or self.reply is not None

    @property
    def is_complete(self) -> bool:
        """Whether all came that the kernel will send for it."""
        return self.is_heard and (self.reply is not None or self.is_over)

    def asked_by(self, msg_id: str) -> int:
        """Return which request that asked whether it is over has this id; 0 if none has."""
        asked = range(1, self.asked + 1)
        return next((number for number in asked if over_id(self.id, number) == msg_id), 0)

    def reach_code(self) -> None:
        """Note that the kernel runs the code, or has run it."""
        self.is_at_code = True
        while self.when_at_code:
            self.when_at_code.pop()()

    def tell_begun(self) -> None:
        """Tell the observer once that the kernel begins with it."""
        if not self._is_told_begun:
            self._is_told_begun = True
            self.observer.begun()

    def tell_changed(self) -> None:
        """Tell the observer of new output; on the loop."""
        self.telling = False
        self.observer.outputs_changed()

    def answer(self) -> tuple[Literal["ok", "error", "lost"], str | None, int | None]:
        """Return status, reason and execution count of code that has ended."""
        reply = self.reply
        if reply is None and self.missing is not None:
            return "lost", f"{self.missing} It is not known how the code ended.", None
        if reply is None:
            return "error", "The kernel went idle without an answer.", None
        reason = self.missing
        if not self.is_heard:
            reason = reason or "The code has ended. It is not known whether all of its output came."
        if not reply:
            reason = "The kernel's answer could not be read."
        if reply.get("status") == "aborted":
            reason = "The kernel did not run it, since a cell that was queued before it failed."
        count = reply.get("execution_count")
        status: Literal["ok", "error"] = "ok" if reply.get("status") == "ok" else "error"
        is_count = type(count) is int and 0 <= count <= LARGEST
        return status, reason, count if is_count else None

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
        is_error = self.reply is not None and self.reply.get("status") not in ("ok", "aborted")
        error = self.outputs.error if is_error else None
        if is_error and error is None:
            reason = reason or "The kernel reported an error, and did not say which."
        if self.ended_at is None or self._duration is None:
            self.ends()
        assert self.ended_at is not None
        assert self._duration is not None
        is_unknown = self.missing is not None or not self.is_heard
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
            exits=exits(self.reply),
            aborted=(self.reply or {}).get("status") == "aborted",
            variables=self.variables,
            values=values_in(self.reply, self.values) if self.values else None,
            captured=frozenset(self.outputs.captured),
            widgets=widgets,
        )


def exits(reply: dict[str, Any] | None) -> bool:
    """Return whether a reply asks the frontend to let the kernel exit."""
    return any(not item.get("keepkernel") for item in payloads_in(reply, "ask_exit"))


def over_id(id: ExecutionId, number: int) -> str:
    """Return the id of a request that asks whether an execution is over."""
    return f"{id}.over{number}"
