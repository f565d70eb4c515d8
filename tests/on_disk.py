"""What a history's record says, read from its files, and how it gets there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


def record_bytes(history_dir: Path) -> dict[str, bytes]:
    """Return all that is recorded, by file; the index is no record."""
    paths = [*history_dir.glob("ledger-*.jsonl"), *history_dir.glob("sessions/**/*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def recorded_sessions(history_dir: Path) -> list[str]:
    """Return the ids of the sessions that have a folder."""
    return sorted(path.name for path in history_dir.glob("sessions/*"))


def system_calls(act: Callable[[], object]) -> list[str]:
    """Return the names of the functions of `os` that this thread calls meanwhile, in order."""
    made: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called is getattr(os, called.__name__, None):
            made.append(called.__name__)

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return made
