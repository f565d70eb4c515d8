"""Make files and their names survive a power failure, and reserve space for a full disk."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RESERVE_BYTES: Final = 128 * 1024

sync_data: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""Sync a file's data to the disk. macOS can only sync data and metadata together."""


def make_folder(path: Path) -> None:
    """Create a folder, if it does not exist, and make its name durable. Its parent must exist.

    Raises
    ------
    OSError
        The folder cannot be created.
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


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only the owner can read, whole or not at all; its data is durable.

    Raises
    ------
    OSError
        The file cannot be written; an earlier one is unchanged.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def with_mark(mark: Path) -> Iterator[None]:
    """Keep an empty file while something is done; after an error, it stays.

    Raises
    ------
    OSError
        It cannot be made.
    """
    make_folder(mark.parent)
    mark.touch(mode=0o600)
    sync_folder(mark.parent)
    yield
    mark.unlink(missing_ok=True)


class Reserve:
    """A file that reserves disk space until it is needed. Thread-safe.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._held = False

    def hold(self) -> None:
        """Create the file, unless it exists.

        Another server may have freed it. The call is cheap if the file exists.

        Raises
        ------
        OSError
            The disk has no space for it.
        """
        if self._held and self._path.exists():
            return
        with self._lock:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                if os.write(fd, bytes(RESERVE_BYTES)) < RESERVE_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                os.unlink(self._path)
                raise
            finally:
                os.close(fd)
            self._held = True

    def free(self) -> None:
        """Delete the file to free its space."""
        with self._lock:
            self._held = False
            try:
                self._path.unlink(missing_ok=True)
                sync_folder(self._path.parent)
            except OSError:
                return  # the folder is gone or read-only, so there is no space to reserve
