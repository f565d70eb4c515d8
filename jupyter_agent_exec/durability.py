"""Files and names that survive a power failure, in folders that only their owner may enter."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

sync_data: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""Make what was written to a file durable; macOS has no call for the data alone."""


def make_folder(path: Path) -> None:
    """Make a folder, if it is not there, and make its name durable. Its parent must exist.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
