"""Folders that only their owner may enter, and that survive a power failure."""

from __future__ import annotations

import os
from pathlib import Path


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
