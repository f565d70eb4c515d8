"""What can be asked of every executor alike, of a framework's own and of ours."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Said(NamedTuple):
    """What an executor answered."""

    text: str
    """All that its user, or its model, is given to read."""
    failed: bool
    """Whether it says that the code did not run to its end: by its result, or by raising."""
    files: list[Path]
    """The images, and other files, that it names."""


class Subject(Protocol):
    """An executor with one kernel of its own."""

    name: str
    """Of the framework, with its version; ours begins with ``ours``."""

    has_close: bool
    """Whether its users can close it; if not, `close` is what a bench does to clean up."""

    def run(self, source: str) -> Said:
        """Run code, with the timeout that it was made with, from this thread."""

    def run_at_once(self, *sources: str) -> list[Said]:
        """Run several at the same time, and return what each was answered."""

    def run_and_cancel(self, source: str, started: Path) -> None:
        """Begin to run, and cancel it, by whatever way it has, once the file `started` is there.

        Raises
        ------
        NotImplementedError
            It has none.
        """

    def kernel_pid(self) -> int:
        """Return the process in which code runs."""

    def close(self) -> None:
        """Close it."""
