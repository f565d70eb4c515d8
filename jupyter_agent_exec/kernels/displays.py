"""Outputs that several cells share: display ids across executions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..models import Omitted
from ..records import OutputRef
from ..types import ExecutionId, Output
from .nbformat_outputs import left_out

Capture: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Takes an output away from its cell: the type and the content of its message."""


@dataclass(frozen=True, slots=True)
class DisplayUpdate:
    """New data and metadata for outputs that the `Outputs` itself does not hold."""

    display_id: str
    targets: tuple[OutputRef, ...]
    output: Output
    """A display_data output. Its data and metadata replace those of the targets."""


class Displays:
    """Where each display id is shown: only the positions, no data.

    Each `Outputs` keeps its own part up to date, so nothing has to be reported when an execution
    ends. Not thread-safe.
    """

    def __init__(self) -> None:
        self.captures: dict[str, dict[str, Capture]] = {}
        """By the id of a request: what its output goes to instead, by widget; the last counts."""
        self._shown: dict[str, dict[ExecutionId, list[int]]] = {}
        self._lengths: dict[ExecutionId, int] = {}

    def length(self, execution_id: ExecutionId) -> int:
        """Return how many outputs an execution has, including late ones."""
        return self._lengths.get(execution_id, 0)

    def add(self, execution_id: ExecutionId, length: int, display_id: str | None = None) -> None:
        """Record an execution's newest output and its display id, if it has one."""
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
        """Record that outputs of an execution were moved or removed.

        Parameters
        ----------
        first
            Index of the first affected output; the outputs before it stay.
        length
            The current number of the execution's outputs.
        before
            All display ids that the outputs from `first` on may have shown.
        now
            Those of them that are shown now, each with its indexes.
        """
        for display_id in before:
            kept = self._shown[display_id].get(execution_id, ())
            indexes = [i for i in kept if i < first] + list(now.get(display_id, ()))
            if indexes:
                self._shown[display_id][execution_id] = indexes
            else:
                self._drop(display_id, execution_id)
        self._lengths[execution_id] = length

    def forget(self, execution_id: ExecutionId) -> None:
        """Record that an execution has no outputs."""
        self._lengths.pop(execution_id, None)
        for display_id in list(self._shown):
            self._drop(display_id, execution_id)

    def _drop(self, display_id: str, execution_id: ExecutionId) -> None:
        places = self._shown[display_id]
        places.pop(execution_id, None)
        if not places:
            del self._shown[display_id]

    def elsewhere(
        self, display_id: str, execution_id: ExecutionId | None = None, first: int = 0
    ) -> tuple[OutputRef, ...]:
        """Return where a display id is shown, except in one execution's outputs from `first` on."""
        return tuple(
            OutputRef(other, index)
            for other, indexes in self._shown.get(display_id, {}).items()
            for index in indexes
            if other != execution_id or index < first
        )


class DisplayUpdates:
    """Updates that have not been taken yet: the last for each display id, up to a cap.

    Parameters
    ----------
    max_bytes
        Maximum size of all data and metadata; an update beyond it is replaced by a note.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[str, tuple[DisplayUpdate, int]] = {}
        self._left_out: dict[str, Omitted] = {}

    @property
    def omitted(self) -> list[Omitted]:
        """What was left out, including parts of updates that were already taken."""
        return list(self._left_out.values())

    def add(
        self, display_id: str, targets: tuple[OutputRef, ...], output: Output, size: int
    ) -> None:
        """Store an update; it replaces an earlier one with the same display id."""
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
        """Return the waiting updates and remove them here."""
        taken = [update for update, _ in self._waiting.values()]
        self._waiting.clear()
        return taken
