"""A session's folder, gone through one name at a time. Blocks on the disk.

Each folder is opened by its name in the one above, which is held open, and links are not followed.
So whatever is moved or replaced meanwhile, one only ever comes to what is below the folder that one
began with: there is no path between a look and an act that somebody could change.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

Identity: TypeAlias = tuple[int, int]
"""Of a file or folder on this machine: its device and inode."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not make whoever opens it wait, nor a terminal become that of the server.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Barred(Exception):
    """What is there is nothing that an agent reaches; says what it is."""


class FolderGone(Exception):
    """The folder that one begins with is gone, or something else stands in its place."""


class Folder(NamedTuple):
    """A folder below one that is the operator's. No link below that one is followed."""

    root: Path
    """The operator's own folder; links on the way to it count."""
    parts: tuple[str, ...]
    """Names that lead from there to the folder."""
    identity: Identity | None = None
    """Of the only folder that may stand there; None for any. It means something as long as a
    descriptor of that folder is open, since the system gives the numbers of a deleted one anew."""

    @property
    def path(self) -> Path:
        """Where it is, without links."""
        return Path(os.path.realpath(self.root), *self.parts)

    def open(self) -> int:
        """Open it by its names, each in the folder above.

        Raises
        ------
        FolderGone
            It is not there, a link leads there, or it is another one.
        OSError
        """
        folder = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for name in self.parts:
                above, folder = folder, open_child(folder, name, ())
                os.close(above)
            if self.identity not in (None, identity(os.fstat(folder))):
                raise Barred("another folder has taken its place")
        except (FileNotFoundError, Barred) as error:
            os.close(folder)
            why = str(error) if isinstance(error, Barred) else "it is not there"
            raise FolderGone(why) from None
        except BaseException:
            os.close(folder)
            raise
        return folder

    def held(self, descriptor: int) -> Folder:
        """Return it such that only the folder that a descriptor holds may stand there."""
        return self._replace(identity=identity(os.fstat(descriptor)))


class Place(NamedTuple):
    """A folder on this machine, and what in it nobody reaches."""

    folder: Folder
    kept: frozenset[Identity]
    """Folders of the server's own."""


def kept_folders(paths: Collection[Path]) -> frozenset[Identity]:
    """Return which folders they are; what is not there, or not to be looked at, is none."""
    found: set[Identity] = set()
    for path in paths:
        try:
            found.add(identity(os.stat(path)))
        except OSError:
            continue
    return frozenset(found)


def identity(status: os.stat_result) -> Identity:
    """Return which file or folder this is."""
    return status.st_dev, status.st_ino


def etag_of(status: os.stat_result) -> str:
    """Return the strong ETag of a file as it is: another after each write, also of equal bytes."""
    said = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    digest = hashlib.sha256(f"{said} {status.st_ctime_ns}".encode()).hexdigest()
    return f'"{digest[:32]}"'


@contextmanager
def opened(place: Place, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder below another, or that itself, for the time of the block.

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
    """Open the folder itself.

    Raises
    ------
    FolderGone, OSError
    Barred
        It is within a folder of the server's own.
    """
    folder = place.folder.open()
    try:
        if not place.kept.isdisjoint(_with_all_above(folder)):
            raise Barred("it is within a folder of the server's own")
    except BaseException:
        os.close(folder)
        raise
    return folder


def _with_all_above(folder: int) -> Iterator[Identity]:
    """Yield which folder this is, and in which folders it is."""
    found, above = identity(os.fstat(folder)), ".."
    while True:
        yield found
        try:
            before, found = found, identity(os.stat(above, dir_fd=folder))
        except OSError:
            return  # nobody may look there
        if found == before:
            return
        above += "/.."


def open_child(folder: int, name: str, kept: Collection[Identity]) -> int:
    """Open a folder by its name in another.

    Raises
    ------
    FileNotFoundError, OSError
    Barred
        It is a link, no folder, or one of the server's own.
    """
    try:
        child = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise Barred(f"{name!r} is a link, or no folder") from None
        raise
    if identity(os.fstat(child)) in kept:
        os.close(child)
        raise Barred(f"{name!r} is the server's own")
    return child


def look(folder: int, name: str) -> os.stat_result | None:
    """Look at a file or folder by its name in a folder; None if there is none.

    Raises
    ------
    OSError
    Barred
        It is neither: a link, a pipe, a device, a socket.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise Barred(f"{name!r} is neither a file nor a folder")
    return status


def open_file(folder: int, name: str) -> tuple[int, os.stat_result]:
    """Open a file by its name in a folder; return it and what it is.

    Raises
    ------
    FileNotFoundError, OSError
    Barred
        It is no file. What is not looks like one is not even opened.
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
        raise Barred(f"{name!r} is no file")
