"""Copies of the record outside of the server, as the history knows them."""

from __future__ import annotations

from pathlib import Path

from ..models import SinkStatus


class Copies:
    """Copies of the record. Here are none: a leaf has a class that makes some. Thread-safe."""

    def start(self) -> None:
        """Begin to copy: the history has begun."""

    def stop(self) -> None:
        """Copy what is left, as far as that is possible at once: the history is closed. Bounded."""

    def grown(self, path: Path, end: int, entries: int) -> None:
        """Note that a journal of this server has grown; cheap."""

    def look_for_dead_servers(self) -> None:
        """Copy also what other servers left that have died since the last call."""

    def rescan(self) -> None:
        """Look at all journals again."""

    def have(self, path: Path) -> bool:
        """Return whether all copies have all of a journal."""
        return True

    def forget(self, path: Path) -> None:
        """Remove what is kept about a journal that was removed."""

    def erasing(self) -> list[str]:
        """Return what becomes there of what a user erases, in a sentence for each copy."""
        return []

    def lags(self) -> dict[str, float]:
        """Return how many seconds each copy is behind, by its name."""
        return {}

    def status(self) -> list[SinkStatus]:
        """Return how far each copy has come."""
        return []

    def check(self) -> None:
        """Check that code may run.

        Raises
        ------
        SinkBehind
            A copy is further behind than it may be.
        """
