"""Output of runs that had ended: gathered for a moment, then handed on. In the drain's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..models import Omitted
from ..types import ExecutionId, Output
from .displays import Displays, DisplayUpdate
from .outputs import Outputs

LATE_OUTPUT_DELAY = 0.25
"""Seconds for which late output is gathered before it is handed on."""

LATE_OUTPUT_BYTES = 1_000_000
"""Of late output, gathered at one time, that is kept."""


@dataclass(frozen=True, slots=True)
class Late:
    """Output of a run that had ended."""

    execution_id: ExecutionId
    outputs: list[Output]
    omitted: Omitted
    display_updates: list[DisplayUpdate]


class LateOutputs:
    """Gathers the late output of all runs of one kernel.

    Parameters
    ----------
    tell
        Called with what was gathered of each run.
    """

    def __init__(self, displays: Displays, tell: Callable[[Late], None]) -> None:
        self._displays = displays
        self._tell = tell
        self._outputs: dict[ExecutionId, Outputs] = {}
        self._since: float | None = None

    def outputs(self, id: ExecutionId) -> Outputs:
        """Return what gathers a run's late output."""
        if id not in self._outputs:
            self._outputs[id] = Outputs(
                id, self._displays, max_output_bytes=LATE_OUTPUT_BYTES, sink=None
            )
        return self._outputs[id]

    def forget(self, id: ExecutionId) -> int | None:
        """Hand on nothing of a run that only begins now: other code spoke in its name.

        Returns
        -------
        How many bytes there were that had not been handed on; None if there was no output.
        """
        early = self._outputs.pop(id, None)
        if not self._displays.length(id):
            return None
        self._displays.forget(id)
        return 0 if early is None else early.size

    def hand_on_at(self, now: float) -> float | None:
        """Return when to hand on what was gathered; None if there is nothing."""
        if not self._outputs:
            return None
        self._since = self._since or now
        return self._since + LATE_OUTPUT_DELAY

    def hand_on(self) -> None:
        """Hand on what was gathered."""
        gathered, self._outputs, self._since = self._outputs, {}, None
        for id, outputs in gathered.items():
            self._tell(Late(id, outputs.outputs, outputs.omitted, outputs.take_display_updates()))
