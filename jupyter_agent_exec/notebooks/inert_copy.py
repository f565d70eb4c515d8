"""The inert copy of an execution's outputs, kept up step by step. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..models import OutputChange
from ..types import Output
from .inert import inert


class _Item:
    """One output: the original, to know it again, and what stands for it."""

    __slots__ = ("_inert", "held", "more", "original")

    def __init__(self, original: Output) -> None:
        self.original = original
        (self._inert,), self.held = inert([original])
        self.more: list[str] = []
        """Text that came since, of a stream."""

    def whole(self) -> Output:
        if self.more:
            text = "".join([self._inert["text"], *self.more])
            self._inert, self.more = {**self._inert, "text": text}, []
        return self._inert


class InertCopy:
    """What of an execution's outputs is in its cell.

    Each output is made inert once, however often it is sent: what comes as the same object again
    has not changed.
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> list[str]:
        """MIME types of what is active and was left out."""
        return sorted(self._held)

    def feed(self, steps: Iterable[OutputChange]) -> list[OutputChange]:
        """Take steps of the original outputs; return those of the copy."""
        dropped: dict[int, _Item] = {}
        return [self._feed(step, dropped) for step in steps]

    def _feed(self, step: OutputChange, dropped: dict[int, _Item]) -> OutputChange:
        if isinstance(step.append, str):
            self._items[step.index].more.append(step.append)
        elif isinstance(step.output, dict):
            return OutputChange(index=step.index, output=self._put(step, step.output, dropped))
        else:
            gone = self._replace(slice(step.index, None))
            dropped.update((id(item.original), item) for item in gone)
        return step

    def _put(self, step: OutputChange, original: Output, dropped: dict[int, _Item]) -> Output:
        item = dropped.get(id(original)) or _Item(original)
        self._replace(slice(step.index, step.index + 1), item)
        return item.whole()

    def _replace(self, where: slice, *items: _Item) -> list[_Item]:
        """Put items in the place of others, and return those."""
        gone = self._items[where]
        self._items[where] = items
        for item in items:
            self._held.update(item.held)
        for item in gone:
            self._held.subtract(item.held)
        self._held = +self._held
        return gone

    def whole(self) -> list[OutputChange]:
        """Return the steps that make any outputs those of the copy."""
        return set_outputs([item.whole() for item in self._items])


def html_length(steps: Iterable[OutputChange]) -> int:
    """Return how many characters of HTML there are to be made inert."""
    outputs = [step.output for step in steps if isinstance(step.output, dict)]
    return sum(len(output.get("data", {}).get("text/html", "")) for output in outputs)


def set_outputs(outputs: Sequence[Output]) -> list[OutputChange]:
    """Return the steps that make any outputs these."""
    first = OutputChange(index=0, truncate=True)
    return [first, *(OutputChange(index=i, output=output) for i, output in enumerate(outputs))]
