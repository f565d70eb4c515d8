"""Events of an execution, read from the server's event stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
import msgspec
from msgspec import Struct

from ..models import Execution, OutputChange, StatusChange
from ..types import Output
from .connection import Backoff, Connection, Request
from .errors import ConnectionLost, ServerUnreachable, UnexpectedAnswer
from .replies import decoded
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


async def follow(connection: Connection, execution_id: str) -> AsyncGenerator[Event, None]:
    """Yield the events of an execution from its acceptance to its end.

    If the connection breaks, reconnect and continue the stream after its last event.
    """
    path = f"{API}/executions/{segment(execution_id)}/stream"
    backoff = Backoff(connection.sleep)
    last_id = ""
    last_status: Event | None = None
    while True:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        try:
            async with connection.download(Request("GET", path, headers=headers)) as response:
                async for message in httpx2.EventSource(response, max_event_size=None):
                    backoff.reset()
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
            await backoff.pause(error)


def _event(message: httpx2.ServerSentEvent) -> Event | None:
    """Return the event of a message; None if its kind is unknown."""
    try:
        match message.event:
            case "output":
                return OutputChanged(decoded(message.data, OutputChange))
            case "status":
                return StatusChanged(decoded(message.data, StatusChange))
            case "accepted":
                return Accepted(Result(decoded(message.data, Execution)))
            case "finished":
                return Finished(Result(decoded(message.data, Execution)))
    except msgspec.DecodeError as error:
        raise UnexpectedAnswer(
            f"The stream brought a {message.event!r} event that is unknown here: {error}", 200
        ) from error
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
