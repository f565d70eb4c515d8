"""What is known of a cell that is kept as its execution stands. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ..models import OutputChange
from ..types import CellId
from .changes import Position

Changes = Callable[[int], tuple[int, list[OutputChange]]]
"""Returns the version of the outputs, and how they changed since another; 0 is none."""


class NewCell(NamedTuple):
    """A cell that is not in the notebook yet."""

    source: str
    at: Position

    def made(self, id: CellId) -> dict[str, Any]:
        """Return the cell as it is put."""
        return {
            "cell_type": "code",
            "execution_count": None,
            "id": id,
            "metadata": {},
            "outputs": [],
            "source": self.source,
        }


class OldCell(NamedTuple):
    """A cell of the notebook, which is run."""

    before: str
    """Its source when that was looked at, or as it was replaced since."""
    source: str | None
    """What its source becomes; None if it stays."""


class Standing(Struct, frozen=True, kw_only=True):
    """How an execution stands."""

    agent_exec: dict[str, Any]
    """The cell's `metadata.agent_exec`, but for what became of its outputs."""
    execution_count: int | None
    ended: bool
    """Whether this is how it stays."""
    has_begun: bool
    """Whether the kernel has got it, or had."""
    goes_on: bool
    """Whether it runs, or will when it is its turn."""


def shown(
    agent_exec: dict[str, Any],
    execution_count: int | None,
    what: Literal["inert", "held", "accepted", "discarded"],
    held: Sequence[str],
) -> dict[str, Any]:
    """Return the metadata of a cell in a notebook: the record's, and what became of its outputs.

    Parameters
    ----------
    execution_count
        Of the execution; the cell has another once a person has run it again.
    held
        What of the outputs is held back: MIME types.
    """
    told = {**agent_exec, "execution_count": execution_count, "outputs": what}
    return {**told, "held": list(held)} if held else told
