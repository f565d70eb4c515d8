"""Outputs that several cells share: display ids across executions, and `Output` widgets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..models import Omitted
from ..records import OutputRef
from ..types import ExecutionId, Output
from .nbformat_outputs import left_out


@dataclass(frozen=True, slots=True)
class DisplayUpdate:
    """New data and metadata for outputs that an execution does not hold itself."""

    display_id: str
    targets: tuple[OutputRef, ...]
    output: Output
    """A display_data output; its data and metadata replace those of the targets."""


class Displays:
    """Where each display id is shown: places only, no data.

    Each `Outputs` keeps its part up to date as it goes, so that nothing has to be told when an
    execution ends. Not thread-safe.
    """

    def __init__(self) -> None:
        self._shown: dict[str, dict[ExecutionId, list[int]]] = {}
        self._lengths: dict[ExecutionId, int] = {}

    def length(self, execution_id: ExecutionId) -> int:
        """Return how many outputs an execution has, late ones included."""
        return self._lengths.get(execution_id, 0)

    def add(self, execution_id: ExecutionId, length: int, display_id: str | None = None) -> None:
        """Take note of an execution's newest output and, with a display id, what it shows."""
        self._lengths[execution_id] = length
        if display_id is not None:
            self._shown.setdefault(display_id, {}).setdefault(execution_id, []).append(length - 1)

    def replace(
        self,
        execution_id: ExecutionId,
        first: int,
        length: int,
        before: Iterable[str],
        now: Mapping[str, Sequence[int]],
    ) -> None:
        """Take note that an execution's outputs moved or went.

        Parameters
        ----------
        first
            Index of the first output that is concerned; those before it stay.
        length
            How many outputs the execution has now.
        before
            All display ids that outputs from `first` on may have shown.
        now
            Display ids, and the indexes at which they are now shown.
        """
        for display_id in before:
            places = self._shown[display_id]
            places[execution_id] = [i for i in places.get(execution_id, ()) if i < first]
        for display_id, indexes in now.items():
            self._shown[display_id][execution_id] += indexes
        self._lengths[execution_id] = length

    def forget(self, execution_id: ExecutionId) -> None:
        """Take note that an execution has no outputs."""
        self._lengths.pop(execution_id, None)
        for places in self._shown.values():
            places.pop(execution_id, None)

    def elsewhere(
        self, display_id: str, execution_id: ExecutionId | None = None, first: int = 0
    ) -> tuple[OutputRef, ...]:
        """Return where a display id is shown but for the outputs of one execution from `first`."""
        return tuple(
            OutputRef(other, index)
            for other, indexes in self._shown.get(display_id, {}).items()
            for index in indexes
            if other != execution_id or index < first
        )


class DisplayUpdates:
    """Updates that wait to be handed out: the last for each display id, within a cap.

    Parameters
    ----------
    max_bytes
        Of data and metadata together; an update beyond is replaced by a note.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[str, tuple[DisplayUpdate, int]] = {}
        self._left_out: dict[str, Omitted] = {}

    @property
    def omitted(self) -> list[Omitted]:
        """What was left out, also of updates that were taken."""
        return list(self._left_out.values())

    def add(
        self, display_id: str, targets: tuple[OutputRef, ...], output: Output, size: int
    ) -> None:
        """Keep an update instead of an earlier one with the same display id."""
        self._waiting.pop(display_id, None)
        self._left_out.pop(display_id, None)
        if sum(other for _, other in self._waiting.values()) + size > self._max_bytes:
            omitted = self._left_out[display_id] = Omitted(bytes=size, outputs=1)
            output, size = left_out(omitted), 0
        update: Output = {
            "output_type": "display_data",
            "data": output["data"],
            "metadata": output["metadata"],
        }
        self._waiting[display_id] = DisplayUpdate(display_id, targets, update), size

    def take(self) -> list[DisplayUpdate]:
        """Return those that wait; they are then not kept here."""
        taken = [update for update, _ in self._waiting.values()]
        self._waiting.clear()
        return taken


class OutputWidgets:
    """Knows the output widgets that capture one request's outputs.

    Parameters
    ----------
    msg_id
        Of the request.
    """

    def __init__(self, msg_id: str) -> None:
        self._msg_id = msg_id
        self._capturing: set[str] = set()

    @property
    def capture(self) -> bool:
        """Whether one captures now."""
        return bool(self._capturing)

    def feed(self, content: dict[str, Any]) -> None:
        """Take the content of a `comm_open` or `comm_msg`."""
        data = content.get("data")
        state = data.get("state") if isinstance(data, dict) else None
        if not isinstance(state, dict) or "msg_id" not in state:
            return
        comm_id = str(content.get("comm_id"))
        if state["msg_id"] == self._msg_id:
            self._capturing.add(comm_id)
        else:
            self._capturing.discard(comm_id)
