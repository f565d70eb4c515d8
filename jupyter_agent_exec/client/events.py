"""What happens while an execution goes on, as it happens."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..models import Execution, OutputChange, StatusChange
from ..types import Output
from .result import Result
from .sse import Message


class Accepted(Struct, frozen=True):
    """The execution is in the record and will reach a final status."""

    result: Result
    """What there is of it; follow the events for the rest."""


class StatusChanged(Struct, frozen=True):
    """The execution's status is another."""

    change: StatusChange


class OutputChanged(Struct, frozen=True):
    """There is more output, or what there was is another; `apply` does it to a list."""

    change: OutputChange


class Finished(Struct, frozen=True):
    """The execution has its final status; this is the last event."""

    result: Result


Event = Accepted | StatusChanged | OutputChanged | Finished

_execution = msgspec.json.Decoder(Execution)
_status_change = msgspec.json.Decoder(StatusChange)
_output_change = msgspec.json.Decoder(OutputChange)


def read_event(message: Message) -> Event | None:
    """Return the event that `message` tells; None for one of a kind unknown here.

    Raises
    ------
    msgspec.DecodeError
        Its data is not what its kind carries.
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
    """Bring `outputs`, as they were before `change`, up to date."""
    if change.truncate is True:
        del outputs[change.index :]
    elif isinstance(change.append, str):
        output = outputs[change.index]
        outputs[change.index] = {**output, "text": output["text"] + change.append}
    elif isinstance(change.output, dict):
        outputs[change.index : change.index + 1] = [change.output]
