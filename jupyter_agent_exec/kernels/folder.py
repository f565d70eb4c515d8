"""Access to a session's folder, one name at a time. It blocks on the disk.

Each folder is opened by its name relative to its parent, which is held open, and links are not
followed. So nothing outside the first folder can be reached, even if something is moved or replaced
meanwhile: no path is used that somebody could change between a check and its use.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

Identity: TypeAlias = tuple[int, int]
"""The identity of a file or folder on this machine: its device and inode."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe must not block, and a terminal must not become the server's terminal.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

MOST_SOCKET_FOLDER_BYTES: Final = 70
"""The longest path of a folder for sockets. The address of a socket may have 107 bytes."""


class AccessRefused(Exception):
    """An agent must not access this file or folder; the message explains why."""


class FolderGone(Exception):
    """The session's folder is gone, or something else is in its place."""


class Folder(NamedTuple):
    """A folder below the operator's own folder. No link below that one is followed."""

    root: Path
    """The operator's own folder. Links in its path are followed."""
    parts: tuple[str, ...]
    """The names that lead from `root` to the folder."""
    identity: Identity | None = None
    """The only folder that may be at this place; None for any. It is reliable only while a
    descriptor of that folder is open, because the system reuses the numbers of a deleted one."""

    @property
    def path(self) -> Path:
        """The folder's path, without links."""
        return Path(os.path.realpath(self.root), *self.parts)

    def open(self) -> int:
        """Open it by its names, each relative to its parent.

        Raises
        ------
        FolderGone
            If it does not exist, a link leads to it, or it is another folder.
        OSError
        """
        folder = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for name in self.parts:
                above, folder = folder, open_child(folder, name, ())
                os.close(above)
            if self.identity not in (None, identity(os.fstat(folder))):
                raise AccessRefused("another folder has taken its place")
        except (FileNotFoundError, AccessRefused) as error:
            os.close(folder)
            why = str(error) if isinstance(error, AccessRefused) else "it is not there"
            raise FolderGone(why) from None
        except BaseException:
            os.close(folder)
            raise
        return folder

    def held(self, descriptor: int) -> Folder:
        """Return a copy that accepts only the folder behind this open descriptor."""
        return self._replace(identity=identity(os.fstat(descriptor)))


class Place(NamedTuple):
    """A folder on this machine, and the folders in it that nobody may reach."""

    folder: Folder
    kept: frozenset[Identity]
    """The server's own folders."""


def kept_folders(paths: Collection[Path]) -> frozenset[Identity]:
    """Return the identities of these folders, without those that are missing or unreadable."""
    found: set[Identity] = set()
    for path in paths:
        try:
            found.add(identity(os.stat(path)))
        except OSError:
            continue
    return frozenset(found)


def identity(status: os.stat_result) -> Identity:
    """Return the identity of a file or folder."""
    return status.st_dev, status.st_ino


def etag_of(status: os.stat_result) -> str:
    """Return a file's strong ETag. It changes with each write, even of the same bytes."""
    said = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(f"{said} {status.st_ctime_ns}".encode()).hexdigest()
    return f'"{digest[:32]}"'


@contextmanager
def opened(place: Place, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder below another, or that folder itself, for the time of the block.

    Raises
    ------
    FolderGone, FileNotFoundError, Barred, OSError
    """
    folder = open_top(place)
    try:
        for name in parts:
            above, folder = folder, open_child(folder, name, place.kept)
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def open_top(place: Place) -> int:
    """Open the first folder itself.

    Raises
    ------
    FolderGone, OSError
    Barred
        If it is within one of the server's own folders.
    """
    folder = place.folder.open()
    try:
        if not place.kept.isdisjoint(_with_all_above(folder)):
            raise AccessRefused("it is within a folder of the server's own")
    except BaseException:
        os.close(folder)
        raise
    return folder


def _with_all_above(folder: int) -> Iterator[Identity]:
    """Yield the identity of this folder, and of each folder above it."""
    found, above = identity(os.fstat(folder)), ".."
    while True:
        yield found
        try:
            before, found = found, identity(os.stat(above, dir_fd=folder))
        except OSError:
            return  # the folder above is not readable
        if found == before:
            return
        above += "/.."


def open_child(folder: int, name: str, kept: Collection[Identity]) -> int:
    """Open a folder by its name in another folder.

    Raises
    ------
    FileNotFoundError, OSError
    Barred
        If it is a link, not a folder, or one of the server's own folders.
    """
    try:
        child = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise AccessRefused(f"{name!r} is a link, or no folder") from None
        raise
    if identity(os.fstat(child)) in kept:
        os.close(child)
        raise AccessRefused(f"{name!r} is the server's own")
    return child


def look(folder: int, name: str) -> os.stat_result | None:
    """Return the status of a file or folder by its name in a folder; None if it does not exist.

    Raises
    ------
    OSError
    Barred
        If it is neither: a link, a pipe, a device, a socket.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise AccessRefused(f"{name!r} is neither a file nor a folder")
    return status


def open_file(folder: int, name: str) -> tuple[int, os.stat_result]:
    """Open a file by its name in a folder; return the descriptor and the file's status.

    Raises
    ------
    FileNotFoundError, OSError
    Barred
        If it is not a regular file. Anything else is not opened.
    """
    _check_file(look(folder, name), name)
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(file)
        _check_file(status, name)
    except BaseException:
        os.close(file)
        raise
    return file, status


def _check_file(status: os.stat_result | None, name: str) -> None:
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not stat.S_ISREG(status.st_mode):
        raise AccessRefused(f"{name!r} is not a file")


def folder_for_sockets(prefix: str) -> Path:
    """Make a temporary folder whose path is short enough for sockets."""
    place = tempfile.gettempdir()
    if len(os.fsencode(place)) > MOST_SOCKET_FOLDER_BYTES:
        place = "/tmp"  # noqa: S108
    return Path(tempfile.mkdtemp(prefix=prefix, dir=place))
