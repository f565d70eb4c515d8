"""Room on the disk that is kept for what must still be written when the disk is full."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Final

from ..durability import sync_folder

RESERVE_BYTES: Final = 128 * 1024


class Reserve:
    """A file that holds room until it is needed. Thread-safe.

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
        """Make the file, if it was freed, also by another server; costs next to nothing if not.

        Raises
        ------
        OSError
            If there is no room for it.
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
        """Give the room back."""
        with self._lock:
            self._held = False
            try:
                self._path.unlink(missing_ok=True)
                sync_folder(self._path.parent)
            except OSError:
                return  # the folder is gone or read-only: no room to be had here
