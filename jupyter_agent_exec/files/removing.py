"""A file or an empty folder, taken out of a session's folder. Blocks on the disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

from ..kernels.folder import Place, etag_of, look, open_child, open_file, opened
from ..types import Digest
from .file import OpenFile
from .upload import Otherwise

MOST_HASHED_BYTES: Final = 1_000_000_000
"""Of a file: a larger one is not read before it is deleted."""


def look_at(place: Place, parts: Sequence[str]) -> os.stat_result | None:
    """Look at what is to be deleted; None if nothing is there.

    Raises
    ------
    OSError, Barred
        It cannot be deleted, such as a folder that is not empty.
    """
    try:
        with opened(place, parts[:-1]) as folder:
            status = look(folder, parts[-1])
            if status is not None and stat.S_ISDIR(status.st_mode):
                _check_folder(folder, parts[-1], place)
            return status
    except FileNotFoundError:
        return None


def digest_of_file(place: Place, parts: Sequence[str]) -> Digest | None:
    """Return the digest of what a file holds; None if it is too large to be read for that."""
    with opened(place, parts[:-1]) as folder:
        file = OpenFile(*open_file(folder, parts[-1]), name=parts[-1])
    try:
        return file.sha256() if file.bytes <= MOST_HASHED_BYTES else None
    finally:
        file.close()


def remove(place: Place, parts: Sequence[str], etag: str) -> None:
    """Delete a file or an empty folder, if it is as it was when it was looked at.

    Raises
    ------
    Otherwise
        It is not.
    OSError, Barred
    """
    with opened(place, parts[:-1]) as folder:
        status = look(folder, parts[-1])
        if status is None or etag_of(status) != etag:
            raise Otherwise
        if stat.S_ISDIR(status.st_mode):
            os.rmdir(parts[-1], dir_fd=folder)
        else:
            os.unlink(parts[-1], dir_fd=folder)


def _check_folder(above: int, name: str, place: Place) -> None:
    folder = open_child(above, name, place.kept)
    try:
        if os.listdir(folder):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    finally:
        os.close(folder)
