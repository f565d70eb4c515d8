"""Uploads into a session's folder, with a temporary file until they are complete. Blocks."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Final

from ulid import ULID

from ..kernels.folder import AccessRefused, Place, etag_of, look, open_child, open_top
from ..types import Digest

_PART: Final = re.compile(r"\.agent-exec-[0-9A-Z]{26}\.part")
_OLD: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChanged(Exception):
    """The file at a path has changed since it was checked."""


ORPHAN_AGE: Final = 86_400.0
"""Seconds without new bytes after which an upload may be an orphan. Locks alone are not enough,
because on some file systems they work on one machine only."""


def remove_orphans(folder: int) -> None:
    """Remove old uploads of dead servers from a folder. A running upload is locked."""
    with suppress(OSError):  # the folder may not be readable
        for name in filter(_PART.fullmatch, os.listdir(folder)):
            _remove_orphan(folder, name)


def _remove_orphan(folder: int, name: str) -> None:
    with suppress(OSError):
        file = os.open(name, _OLD, dir_fd=folder)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(file).st_mtime > ORPHAN_AGE:
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(file)


def _begun(folder: int) -> tuple[str, int]:
    """Make and lock a new file in a folder. Return its name and its descriptor."""
    while True:
        name = f".agent-exec-{ULID()}.part"
        file = os.open(name, _NEW, 0o666, dir_fd=folder)
        with suppress(OSError):  # without locks, no file counts as an orphan
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return name, file
        os.close(file)  # another server removed it before it was locked


class Upload:
    """A file that is being uploaded. Thread-safe.

    `put` makes missing folders of its path.

    Parameters
    ----------
    place
        The session's folder.
    parts
        Parts of the file's path.

    Raises
    ------
    OSError, AccessRefused
        The file cannot be written there.
    """

    def __init__(self, place: Place, parts: Sequence[str]) -> None:
        self.parts = tuple(parts)
        self.bytes = 0
        """Bytes received so far."""
        self._kept = place.kept
        self._sha256 = hashlib.sha256()
        self._lock = Lock()
        self._folders = [open_top(place)]
        try:
            self._missing = self._descend(self.parts[:-1])
            remove_orphans(self._folders[-1])
            self._temporary, self._file = _begun(self._folders[-1])
        except BaseException:
            self._close_folders()
            raise
        self._beside = self._folders[-1]
        self._is_open = True

    @property
    def sha256(self) -> Digest:
        """Digest of the bytes received so far."""
        return Digest(self._sha256.hexdigest())

    def write(self, data: bytes) -> None:
        """Add the next piece. Does nothing after `drop`."""
        with self._lock:
            if self._is_open:
                self.bytes += len(data)
                self._sha256.update(data)
                while data:
                    data = data[os.write(self._file, data) :]

    def standing(self) -> os.stat_result | None:
        """Return the status of the file at the path; None if there is none.

        Raises
        ------
        OSError, AccessRefused
            A file cannot replace the entry at the path.
        """
        with self._lock:
            if self._is_open:
                self._missing = self._descend(self._missing)
            status = None if self._missing else look(self._folders[-1], self.parts[-1])
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise AccessRefused(f"{self.parts[-1]!r} is a folder")
            return status

    def put(self, replaced: str | None) -> os.stat_result:
        """Move the complete file to its path, atomically.

        Parameters
        ----------
        replaced
            ETag of the file to replace; None if there is none.

        Raises
        ------
        FileChanged
            The file at the path has changed.
        OSError, AccessRefused
            The file cannot be written there.
        """
        with self._lock:
            if not self._is_open:
                raise FileChanged
            made: list[tuple[int, str]] = []
            try:
                self._make_folders(made)
                os.fsync(self._file)  # an error of storage must occur before the rename
                self._take_name(replaced)
                status = os.fstat(self._file)
            except BaseException:
                for folder, name in reversed(made):
                    with suppress(OSError):
                        os.rmdir(name, dir_fd=folder)
                raise
            self._close()
            return status

    def drop(self) -> None:
        """Remove the temporary file, unless `put` has moved it. Idempotent."""
        with self._lock:
            if self._is_open:
                with suppress(OSError):
                    os.unlink(self._temporary, dir_fd=self._beside)
                self._close()

    def _take_name(self, replaced: str | None) -> None:
        folder, name = self._folders[-1], self.parts[-1]
        if replaced is None:
            # A rename replaces any file. So first create the name, which only one server can do.
            try:
                os.close(os.open(name, _NEW, 0o666, dir_fd=folder))
            except FileExistsError:
                raise FileChanged from None
        else:
            before = look(folder, name)
            if before is None or etag_of(before) != replaced:
                raise FileChanged
            os.fchmod(self._file, stat.S_IMODE(before.st_mode) & 0o777)
        try:
            os.rename(self._temporary, name, src_dir_fd=self._beside, dst_dir_fd=folder)
        except BaseException:
            if replaced is None:
                os.unlink(name, dir_fd=folder)
            raise

    def _descend(self, names: Sequence[str]) -> tuple[str, ...]:
        """Open the existing folders. Return the names of the missing ones."""
        for index, name in enumerate(names):
            try:
                self._folders.append(open_child(self._folders[-1], name, self._kept))
            except FileNotFoundError:
                return tuple(names[index:])
        return ()

    def _make_folders(self, made: list[tuple[int, str]]) -> None:
        """Make and open the missing folders. Add those that were made here to `made`."""
        for name in self._missing:
            folder = self._folders[-1]
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
                made.append((folder, name))
            self._folders.append(open_child(folder, name, self._kept))
        self._missing = ()

    def _close(self) -> None:
        self._is_open = False
        with suppress(OSError):  # the content is stored or not needed
            os.close(self._file)
        self._close_folders()

    def _close_folders(self) -> None:
        while self._folders:
            os.close(self._folders.pop())
