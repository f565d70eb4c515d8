"""Turns one execution's IOPub messages into nbformat outputs. Pure.

The outputs are the same as nbclient's, except for streams: neighbouring stream outputs of the same
name become one output, as in JupyterLab, because it depends on the kernel's flushing where they are
divided. Streams are not merged across other outputs, nor stdout with stderr, so the order is kept.
Carriage returns, backspaces and escape sequences stay in the text, as in nbclient without
``coalesce_streams``.

An ``Output`` widget takes the output of its ``with`` block away from the cell. Comm messages create
no output; `widget_models` follows them.

Outputs larger than the cap lose their middle, and the omitted part is counted exactly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from ..models import ExecutionError, Omitted, OutputChange
from ..text.model_text import TextSink, Transcript
from ..text.redaction import OWN_TOKENS_BEGIN, Redaction, Redactor
from ..types import ExecutionId, Output
from . import nbformat_outputs
from .displays import Displays, DisplayUpdate, DisplayUpdates
from .nbformat_outputs import RichOutput, Stream, encode, left_out

AGENT_TOKENS: Final = Redactor()

MAX_OUTPUTS: Final = 10_000
"""The maximum number of outputs kept; beyond that, the middle is left out."""

_LEAVE_OUTPUT: Final = frozenset({"stream", "error", *nbformat_outputs.DISPLAYS})

_CAPTURED: Final = frozenset({"clear_output", "display_data", "error", "execute_result", "stream"})
"""The messages that an `Output` widget takes."""

_NO_NAMES: Final = ("", "NoneType")
"""What a reply has in place of an error's name if the kernel has lost the error."""

ERROR_BYTES: Final = 1_000_000
"""A traceback above this size, or above a quarter of the cap, loses its middle."""

LINE_REACH: Final = 32
"""Text is cut at the end of a line if there is one within this fraction (1/32) of the cap."""


class Outputs:
    """The outputs of one execution, built from its messages as they arrive.

    Parameters
    ----------
    execution_id
        The id of the execution. Its late output goes into a second `Outputs` with the same id,
        which continues counting where the first one stopped.
    displays
        The displays of the kernel's incarnation, shared by its executions.
    max_output_bytes
        How many UTF-8 bytes of stream text, payloads, metadata and errors to keep. Beyond that,
        the first half stays, and as much as fits of the end. The end part is shortened from its
        front in steps of a quarter, so that a watcher does not get all of it again with each line.
        A single rich output that does not fit is left out alone.
    sink
        Receives the whole transcript once something is left out.
    max_outputs
        How many outputs to keep; beyond that, the middle is left out in the same way.
    redactor
        Replaces secrets, before anything else is done with a message.
    redaction
        The redaction of the outputs before these; None if these are the first.
    """

    def __init__(
        self,
        execution_id: ExecutionId,
        displays: Displays,
        *,
        max_output_bytes: int,
        sink: TextSink | None = None,
        max_outputs: int = MAX_OUTPUTS,
        redactor: Redactor = AGENT_TOKENS,
        redaction: Redaction | None = None,
    ) -> None:
        self.redaction = redaction or Redaction(redactor)
        """Replaces secrets in what belongs to this execution."""
        self._is_redacted = redactor.is_configured
        self.version = 0
        """Increases with each change; 0 before the first."""
        self._id = execution_id
        self._displays = displays
        self._first = displays.length(execution_id)
        self._max_bytes = max_output_bytes
        self._max_outputs = max_outputs
        self._max_error_bytes = min(ERROR_BYTES, max_output_bytes // 4)
        self._sink = sink
        self._transcript: Transcript | None = None
        self._clear_before_next = False
        self._updates = DisplayUpdates(max_output_bytes)
        self.captured: set[str] = set()
        """The ids of the `Output` widgets that took output away."""
        self._start_over()

    def _start_over(self) -> None:
        self._head: list[Stream | RichOutput] = []
        self._tail: deque[Stream | RichOutput] = deque()
        self._capped = False
        self._moved_at = 0
        self._head_bytes = self._tail_bytes = 0
        self._gap_bytes = self._gap_lines = self._gap_outputs = 0
        self._shown: dict[str, list[RichOutput]] = {}
        self._last: Stream | RichOutput | None = None

    # -- read --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[Output]:
        """The current nbformat outputs; do not modify them."""
        return [item.output() for item in self._head] + self._capped_outputs()

    @property
    def size(self) -> int:
        """The number of bytes kept."""
        return self._head_bytes + self._tail_bytes

    @property
    def omitted(self) -> Omitted:
        """What was left out, without the outputs that the code itself cleared."""
        size, outputs, parts = self._gap_bytes, self._gap_outputs, self._updates.omitted
        for item in chain(self._head, self._tail):
            if isinstance(item, RichOutput):
                parts.append(item.omitted)
        for part in parts:
            size, outputs = size + part.bytes, outputs + part.outputs
        return Omitted(bytes=size, lines=self._gap_lines, outputs=outputs)

    @property
    def error(self) -> ExecutionError | None:
        """The last error among the outputs, even if it did not end the execution."""
        for item in chain(reversed(self._tail), reversed(self._head)):
            output = item.output() if isinstance(item, RichOutput) else {}
            if output.get("output_type") == "error":
                return ExecutionError(
                    ename=output["ename"], evalue=output["evalue"], traceback=output["traceback"]
                )
        return None

    def changes_since(self, version: int) -> tuple[int, list[OutputChange]]:
        """Return the current version, and the changes since an earlier version."""
        steps: list[OutputChange] = []
        if version > self.version:  # the version belongs to other outputs
            steps.append(OutputChange(index=0, truncate=True))
            version = 0
        steps += _changes(self._head, 0, version)
        start = len(self._head)
        if version >= self._moved_at:
            steps += _changes(self._tail, start + 1, version)
        else:
            if version:
                steps.append(OutputChange(index=start, truncate=True))
            steps += [
                OutputChange(index=index, output=output)
                for index, output in enumerate(self._capped_outputs(), start)
            ]
        return self.version, steps

    def take_display_updates(self) -> list[DisplayUpdate]:
        """Return the updates to outputs that are not held here: the last for each display id.

        They belong to outputs of other executions, and, for late output, to earlier outputs of
        this execution.
        """
        return self._updates.take()

    # -- feed --------------------------------------------------------------------------------------

    def feed(self, msg_type: str, content: dict[str, Any], *, may_have_token: bool = True) -> None:
        """Process the content of one message; ignore types that create no output."""
        captures = self._displays.captures.get(self._id)
        if captures and msg_type in _CAPTURED:
            id, capture = next(reversed(captures.items()))
            self.release()
            self.captured.add(id)
            capture(msg_type, content)
            return
        is_redacted = may_have_token or self._is_redacted
        if is_redacted and (msg_type in nbformat_outputs.DISPLAYS or msg_type == "error"):
            content = self.redaction.content(content)
        if msg_type == "stream":
            self._feed_stream(content)
        elif msg_type in nbformat_outputs.DISPLAYS:
            self.release()
            self._feed_display(msg_type, content)
        elif msg_type == "error":
            self.release()
            self._feed_error(content)
        elif msg_type == "clear_output":
            self.release()
            self._clear_before_next = bool(content.get("wait"))
            if not self._clear_before_next:
                self._clear()

    def feed_reply(self, reply: dict[str, Any]) -> None:
        """Add what only an `execute_reply` tells: what its payloads show, and its error.

        An error that comes while a value is shown has its name in the outputs, not in the reply.
        """
        self.release()
        for shown in nbformat_outputs.displays_in(reply):
            self._feed_display("display_data", self.redaction.content(shown))
        names = ("ename", "evalue", "traceback")
        told: dict[str, Any] = {name: reply[name] for name in names if name in reply}
        told = self.redaction.content(told)
        name, shown_error = told.get("ename"), self.error
        is_named = isinstance(name, str) and name not in _NO_NAMES and reply.get("status") != "ok"
        if is_named and (shown_error is None or shown_error.ename != name):
            self._feed_error(told)

    def leave_out(self, msg_type: str, size: int) -> None:
        """Record a message that could not be read; a note of its size replaces its output.

        Parameters
        ----------
        msg_type
            Empty if the type could not be read either.
        size
            Size of the message in bytes.
        """
        if msg_type and msg_type not in _LEAVE_OUTPUT:
            return
        self.release()
        self._clear_if_due()
        omitted = Omitted(bytes=size, outputs=1)
        note = left_out(omitted)
        transcript = self._transcript_with(0)
        if transcript is not None:
            transcript.output(note)
        self._add_rich(note, 0, None, omitted)

    def release(self) -> None:
        """Add the ends of streams that were held back because they might begin a secret."""
        if self.redaction.pending:
            for name, text in self.redaction.rest():
                self._add_text(name, text)

    def finish(self) -> None:
        """Add what was held back, and write the rest, an unfinished line, to the sink."""
        self.release()
        if self._transcript is not None:
            self._transcript.finish()

    def _feed_stream(self, content: dict[str, Any]) -> None:
        name, text = content.get("name"), content.get("text")
        if isinstance(text, list):
            text = "".join(map(str, text))
        if not isinstance(name, str) or not isinstance(text, str):
            return
        if self._is_redacted or OWN_TOKENS_BEGIN in text or self.redaction.pending:
            text = self.redaction.stream(name, text)
        self._add_text(name, text)

    def _add_text(self, name: str, text: str) -> None:
        if not text:
            return
        data = encode(text)
        self._clear_if_due()
        transcript = self._transcript_with(len(data))
        if transcript is not None:
            transcript.stream(name, text)
        stream = self._last
        if not isinstance(stream, Stream) or stream.name != name:
            self.version += 1
            stream = Stream(name, self.version)
            self._add(stream)
        stream.append(data, self.version)
        self.version += len(data)
        self._charge(len(data))

    def _feed_display(self, msg_type: str, content: dict[str, Any]) -> None:
        output, size = nbformat_outputs.display(msg_type, content)
        display_id = nbformat_outputs.display_id(content)
        if display_id is not None:
            self._update(display_id, output, size)
        if msg_type != "update_display_data":
            self._clear_if_due()
            transcript = self._transcript_with(size)
            if transcript is not None:
                transcript.output(output)
            self._add_rich(output, size, display_id, Omitted())

    def _feed_error(self, content: dict[str, Any]) -> None:
        self._clear_if_due()
        whole, size = nbformat_outputs.error(content)
        output, omitted = nbformat_outputs.cut_error(whole, self._max_error_bytes)
        transcript = self._transcript_with(size, cut=omitted > 0)
        if transcript is not None:
            transcript.output(whole)
        self._add_rich(output, size - omitted, None, Omitted(bytes=omitted))

    def _add_rich(
        self, output: Output, size: int, display_id: str | None, omitted: Omitted
    ) -> None:
        self.version += 1
        item = RichOutput(output, size, display_id, omitted, self.version, in_tail=self._capped)
        if size > self._room(item, 0):
            item.withhold()
        self._add(item)
        self._charge(item.size)

    def _update(self, display_id: str, output: Output, size: int) -> None:
        """Replace the data and metadata of all outputs with this display id."""
        for item in tuple(self._shown.get(display_id, ())):
            if item.gone:
                continue
            before = item.size
            transcript = self._transcript_with(size - before)
            if transcript is not None:
                transcript.output(output)
            self.version += 1
            item.update(output, size, self.version)
            if size > self._room(item, before):
                item.withhold()
            self._charge(item.size - before, in_tail=item.in_tail)
        targets = self._displays.elsewhere(display_id, self._id, self._first)
        if targets:
            self._updates.add(display_id, targets, output, size)

    # -- keep --------------------------------------------------------------------------------------

    def _clear_if_due(self) -> None:
        if self._clear_before_next:
            self._clear_before_next = False
            self._clear()

    def _clear(self) -> None:
        if not self._head and not self._capped:
            return
        if self._transcript is not None:
            self._transcript.note("output cleared")
        shown = self._shown
        self._start_over()
        self._displays.replace(self._id, self._first, self._first, shown, {})
        self.version += 1
        self._moved_at = self.version

    def _add(self, item: Stream | RichOutput) -> None:
        """Append an output; call `_charge` afterwards."""
        self._last = item
        if self._capped:
            self._tail.append(item)
        else:
            self._head.append(item)
        length = self._first + len(self._head) + self._capped + len(self._tail)
        if isinstance(item, RichOutput) and item.display_id is not None:
            self._shown.setdefault(item.display_id, []).append(item)
            self._displays.add(self._id, length, item.display_id)
        else:
            self._displays.add(self._id, length)

    def _charge(self, size: int, *, in_tail: bool | None = None) -> None:
        """Count new bytes, by default for the last output, and stay within the cap."""
        if self._capped if in_tail is None else in_tail:
            self._tail_bytes += size
        else:
            self._head_bytes += size
        if not self._capped:
            if self._head_bytes <= self._max_bytes and len(self._head) <= self._max_outputs:
                return
            self._split()
        if self._tail_bytes > self._tail_room() or len(self._tail) > self._max_outputs // 2:
            self._drop_front_of_tail()

    def _room(self, item: RichOutput, before: int) -> int:
        """Return the maximum size in bytes of a rich output whose size was `before`."""
        half = self._max_bytes // 2
        if not self._capped:
            return max(half, self._max_bytes - self._head_bytes + before)
        return self._tail_room() if item.in_tail else half - self._head_bytes + before

    def _tail_room(self) -> int:
        return self._max_bytes - self._head_bytes

    def _split(self) -> None:
        """Keep the first half permanently; the rest becomes the tail."""
        self.version += 1
        self._capped = True
        whole, room, count = self._head_bytes, self._max_bytes // 2, 0
        items = self._head
        while count < min(len(items), self._max_outputs // 2) and items[count].size <= room:
            room -= items[count].size
            count += 1
        self._head, self._tail = items[:count], deque(items[count:])
        first = self._tail[0]
        if isinstance(first, Stream) and count < self._max_outputs // 2:
            rest = first.split(room, self._max_bytes // LINE_REACH, self.version)
            if rest is not None:
                self._head.append(first)
                self._tail[0] = rest
        for item in self._tail:
            if isinstance(item, RichOutput):
                item.in_tail = True
        self._head_bytes = sum(item.size for item in self._head)
        self._tail_bytes = whole - self._head_bytes

    def _drop_front_of_tail(self) -> None:
        """Make room in the tail, more than is needed now."""
        self.version += 1
        room = self._tail_room()
        target = room - room // 4 if self._tail_bytes > room else self._tail_bytes
        most = self._max_outputs // 2 - self._max_outputs // 8
        count = most if len(self._tail) > self._max_outputs // 2 else len(self._tail)
        while self._tail_bytes > target or len(self._tail) > count:
            first = self._tail[0]
            if isinstance(first, RichOutput):
                if len(self._tail) == 1:
                    break  # it fits, even if without spare room
                self._drop_rich(first)
            else:
                excess = self._tail_bytes - target
                self._drop_text(first, excess if excess > 0 else first.size)
        self._last = self._tail[-1] if self._tail else None
        self._moved_at = self.version
        self._find_displays()

    def _drop_rich(self, item: RichOutput) -> None:
        self._tail.popleft()
        item.gone = True
        self._tail_bytes -= item.size
        self._gap_bytes += item.size + item.omitted.bytes
        self._gap_outputs += 1

    def _drop_text(self, stream: Stream, count: int) -> None:
        dropped, lines = stream.cut_front(count, self._max_bytes // LINE_REACH)
        self._tail_bytes -= dropped
        self._gap_bytes += dropped
        self._gap_lines += lines
        if not stream.size:
            self._tail.popleft()
            self._gap_outputs += not stream.continues

    def _find_displays(self) -> None:
        """Update the positions of the outputs that have a display id."""
        before, self._shown = self._shown, {}
        places: dict[str, list[int]] = {}
        in_tail = enumerate(self._tail, self._first + len(self._head) + 1)
        for index, item in chain(enumerate(self._head, self._first), in_tail):
            if isinstance(item, RichOutput) and item.display_id is not None:
                self._shown.setdefault(item.display_id, []).append(item)
                places.setdefault(item.display_id, []).append(index)
        length = self._first + len(self._head) + 1 + len(self._tail)
        self._displays.replace(self._id, self._first, length, before, places)

    def _capped_outputs(self) -> list[Output]:
        """Return the note that says what was left out, and the outputs after it."""
        if not self._capped:
            return []
        gap = Omitted(bytes=self._gap_bytes, lines=self._gap_lines, outputs=self._gap_outputs)
        return [left_out(gap), *(item.output() for item in self._tail)]

    def _transcript_with(self, size: int, *, cut: bool = False) -> Transcript | None:
        """Return the transcript for the next output; begin one if that output will be left out."""
        if self._transcript is None and self._sink is not None:
            over = self._head_bytes + size > self._max_bytes or len(self._head) >= self._max_outputs
            if over or cut:
                self._transcript = Transcript(self._sink.write)
                for item in self._head:
                    self._transcript.output(item.output())
        return self._transcript


def _changes(
    items: Iterable[Stream | RichOutput], start: int, version: int
) -> Iterator[OutputChange]:
    for index, item in enumerate(items, start):
        change = item.change_since(version, index)
        if change is not None:
            yield change


LATE_OUTPUT_DELAY = 0.25
"""Seconds for which late output is collected before it is delivered."""

LATE_OUTPUT_BYTES = 1_000_000
"""The maximum number of bytes kept of the late output that is collected at one time."""


MOST_FOLLOWED = 100
"""The maximum number of executions whose last unfinished lines are remembered."""


@dataclass(frozen=True, slots=True)
class Late:
    """Output of an execution that had already ended."""

    execution_id: ExecutionId
    outputs: list[Output]
    omitted: Omitted
    redacted: int
    """How many secrets were replaced."""
    display_updates: list[DisplayUpdate]


class LateOutputs:
    """Collects the late output of all executions of one kernel.

    Parameters
    ----------
    tell
        Called with the late output of each execution.
    """

    def __init__(
        self, displays: Displays, tell: Callable[[Late], None], redactor: Redactor
    ) -> None:
        self._displays = displays
        self._tell = tell
        self._redactor = redactor
        self._outputs: dict[ExecutionId, Outputs] = {}
        self._redactions: dict[ExecutionId, Redaction] = {}
        self._since: float | None = None

    def outputs(self, id: ExecutionId) -> Outputs:
        """Return the outputs that collect an execution's late output."""
        if id not in self._outputs:
            self._outputs[id] = Outputs(
                id,
                self._displays,
                max_output_bytes=LATE_OUTPUT_BYTES,
                redactor=self._redactor,
                redaction=self._redactions.get(id),
            )
        return self._outputs[id]

    def follow(self, id: ExecutionId, redaction: Redaction) -> None:
        """Remember what ended the outputs so far: it may be the beginning of a secret."""
        self._redactions.pop(id, None)
        if redaction.pending:
            self._redactions[id] = redaction
            if len(self._redactions) > MOST_FOLLOWED:
                del self._redactions[next(iter(self._redactions))]

    def forget(self, id: ExecutionId) -> int | None:
        """Drop the output that came for an execution before it began: other code sent it.

        Returns
        -------
        How many bytes had not been delivered; None if there was no output.
        """
        early = self._outputs.pop(id, None)
        if not self._displays.length(id):
            return None
        self._displays.forget(id)
        return 0 if early is None else early.size

    def hand_on_at(self, now: float) -> float | None:
        """Return when to deliver the collected output; None if there is none."""
        if not self._outputs:
            return None
        self._since = self._since or now
        return self._since + LATE_OUTPUT_DELAY

    def hand_on(self) -> None:
        """Deliver the collected output."""
        gathered, self._outputs, self._since = self._outputs, {}, None
        for id, outputs in gathered.items():
            outputs.finish()
            self.follow(id, outputs.redaction)
            self._tell(
                Late(
                    id,
                    outputs.outputs,
                    outputs.omitted,
                    outputs.redaction.taken_count(),
                    outputs.take_display_updates(),
                )
            )
