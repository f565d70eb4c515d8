"""Events of an execution, read from the server's event stream."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct

from ..models import Execution, OutputChange, StatusChange
from ..types import Output
from .connection import Backoff, Connection, Request
from .errors import ConnectionLost, ServerUnreachable, UnexpectedAnswer
from .requests import API, segment
from .result import Result


class Accepted(Struct, frozen=True):
    """The execution is in the record and will reach a final status."""

    result: Result
    """The execution so far. Follow the events for the rest."""


class StatusChanged(Struct, frozen=True):
    """The execution's status has changed."""

    change: StatusChange


class OutputChanged(Struct, frozen=True):
    """Outputs were added or changed. `apply` makes the change to a list."""

    change: OutputChange


class Finished(Struct, frozen=True):
    """The execution has reached its final status. This is the last event."""

    result: Result


Event = Accepted | StatusChanged | OutputChanged | Finished

_LINE_END = re.compile(rb"\r\n|\n|\r")

_execution = msgspec.json.Decoder(Execution)
_status_change = msgspec.json.Decoder(StatusChange)
_output_change = msgspec.json.Decoder(OutputChange)


async def follow(connection: Connection, execution_id: str) -> AsyncGenerator[Event, None]:
    """Yield the events of an execution from its acceptance to its end.

    If the connection breaks, reconnect and continue the stream after its last event.
    """
    path = f"{API}/executions/{segment(execution_id)}/stream"
    backoff = Backoff()
    last_id = ""
    last_status: Event | None = None
    while True:
        headers = ((b"Last-Event-ID", last_id.encode()),) if last_id else ()
        try:
            async with connection.download(Request("GET", path, headers=headers)) as download:
                parser = EventParser()
                async for piece in download.pieces:
                    backoff.reset()
                    for message in parser.feed(piece):
                        event = _event(message)
                        last_id = message.id
                        if event is None or event == last_status:
                            continue  # of an unknown kind, or sent again after a break
                        if isinstance(event, StatusChanged):
                            last_status = event
                        yield event
                        if isinstance(event, Finished):
                            return
            raise ConnectionLost("The server ended the stream before the execution had finished.")
        except ServerUnreachable as error:
            pause = backoff.after(error)
        await connection.sleep(pause)


def _event(message: Message) -> Event | None:
    try:
        return read_event(message)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswer(
            f"The stream brought a {message.event!r} event that is unknown here: {error}", 200
        ) from error


def read_event(message: Message) -> Event | None:
    """Return the event of a message; None if its kind is unknown.

    Raises
    ------
    msgspec.DecodeError
        The data does not fit the kind of event.
    """
    if message.event == "output":
        return OutputChanged(_output_change.decode(message.data))
    if message.event == "status":
        return StatusChanged(_status_change.decode(message.data))
    if message.event == "accepted":
        return Accepted(Result(_execution.decode(message.data)))
    if message.event == "finished":
        return Finished(Result(_execution.decode(message.data)))
    return None


def apply(outputs: list[Output], change: OutputChange) -> None:
    """Apply `change` to `outputs`, in place."""
    if change.truncate is True:
        del outputs[change.index :]
    elif isinstance(change.append, str):
        output = outputs[change.index]
        outputs[change.index] = {**output, "text": output["text"] + change.append}
    elif isinstance(change.output, dict):
        outputs[change.index : change.index + 1] = [change.output]


class Message(Struct, frozen=True):
    """One message of an event stream."""

    event: str
    data: str
    id: str
    """The last id in the stream, in this message or an earlier one."""


class EventParser:
    """Parse an event stream's bytes, which may come in any pieces, into messages.

    Source: HTML standard, *Server-sent events*, section "Parsing an event stream".
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[Message]:
        """Add the next bytes; return the messages that they complete."""
        if self._after_cr and chunk:
            # The last chunk ended with CR. An LF here belongs to the same line end.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._pending += chunk
        messages: list[Message] = []
        start = 0
        for end in _LINE_END.finditer(self._pending, self._searched):
            message = self._take(self._pending[start : end.start()])
            start = end.end()
            if message is not None:
                messages.append(message)
            self._after_cr = start == len(self._pending) and end.group() == b"\r"
        self._pending = self._pending[start:]
        self._searched = len(self._pending)
        return messages

    def _take(self, line: bytearray) -> Message | None:
        text = line.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if not text:
            return self._dispatch()
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Message | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        if not data:
            return None
        return Message(event=event or "message", data="\n".join(data), id=self._id)
