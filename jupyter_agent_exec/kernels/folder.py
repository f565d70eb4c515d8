"""A session's folder: its paths, and access to it one name at a time.

A path has one spelling: names, separated by slashes. A name is refused if a program behind the
server could read another path in it: a proxy that decodes it again, a file system that normalises
it, or one that drops characters at its end. Some paths are hidden. All of that is pure.

Access blocks on the disk. Each folder is opened by its name relative to its parent, which is held
open, and links are not followed. So nothing outside the first folder can be reached, even if
something is moved or replaced meanwhile: no path is used that somebody could change between a check
and its use.
"""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote, unquote_to_bytes

from ..errors import InvalidRequest

MOST_NAME_BYTES: Final = 255
MOST_READINGS: Final = 4
"""Maximum number of times to decode a name, to find how other programs may read it."""

MOST_PARTS: Final = 64
"""Maximum number of names in a path."""

_DATA: Final = re.compile(
    r"[^.]\.(?:txt|log|csv|tsv|json|jsonl|ndjson|geojson|parquet|feather|arrow|orc|avro|xlsx|ods|"
    r"h5|hdf5|nc|npy|npz|fits|sqlite|db|dta|gpkg|shp|shx|dbf|"
    r"png|jpg|jpeg|gif|webp|bmp|tif|tiff|pdf|wav|mp3|flac|ogg|mp4|webm)"
    r"(?:\.(?:gz|bz2|xz|zst))?\Z",
    re.IGNORECASE | re.ASCII,
)
"""Suffixes of data files and of compressed files."""

_CONFIGURATION: Final = re.compile(
    r"conf|requirements|constraints|packages?\b|package-|kernel|settings|overrides|options|tasks|"
    r"launch|extension|plugin|workspace|composer|manifest|hooks|environment|cmakelists|install\.json|"
    r"entry_points|dist-info|egg-info|nodemon|deno\b",
    re.IGNORECASE | re.ASCII,
)
"""Matches names of files and folders that configure what programs run, whatever their suffix:
`jupyter_server_config.json`, `requirements.txt`, `kernel.json`, `CMakeLists.txt`, …"""

_NO_TEXT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that no name may contain: controls, surrogates, line and paragraph ends."""


def parts_of(path: str, field: str = "path") -> tuple[str, ...]:
    """Return the parts of a path.

    Raises
    ------
    InvalidRequest
        The path does not have this one spelling.
    """
    parts = tuple(path.split("/"))
    if len(parts) > MOST_PARTS:
        raise InvalidRequest(f"{field}: over {MOST_PARTS} folders deep.", field=field)
    for name in parts:
        what = _wrong_with(name)
        if what is not None:
            raise InvalidRequest(
                f"{field}: {path[:200]!r} {what}. Write names divided by '/', from the session's "
                "folder on.",
                field=field,
            )
    return parts


def decoded(raw: str) -> str:
    """Return the path in an address, where each name is encoded separately.

    Raises
    ------
    InvalidRequest
        A name holds a slash, or is not UTF-8.
    """
    try:
        names = [unquote_to_bytes(name).decode() for name in raw.split("/")]
    except UnicodeDecodeError:
        raise InvalidRequest("path: not UTF-8.", field="path") from None
    if any("/" in name for name in names):
        raise InvalidRequest("path: a slash within a name; write it as it is.", field="path")
    return "/".join(names)


def check_new(parts: Sequence[str]) -> None:
    """Raise InvalidRequest if a new name is not in Unicode's composed form (NFC)."""
    if not all(unicodedata.is_normalized("NFC", name) for name in parts):
        raise InvalidRequest("path: its characters are not composed (NFC).", field="path")


def is_reached(name: str) -> bool:
    """Return whether agents may see a file or a folder with this name."""
    return _wrong_with(name) is None and not is_hidden([name])


def is_hidden(parts: Sequence[str]) -> bool:
    """Return whether any of a path's names begins with a dot, in any reading."""
    return any(reading.startswith(".") for name in parts for reading in _readings(name))


def is_notebook(name: str) -> bool:
    """Return whether a name is that of a notebook, in any reading."""
    return any(reading.lower().endswith(".ipynb") for reading in _readings(name))


def is_data(parts: Sequence[str]) -> bool:
    """Return whether a file can only hold data, by its path. Any other file may become code.

    Code is any file that some program may run: modules, scripts, libraries, build files, files
    without a suffix, pickles, archives, pages, and text that can be a notebook (Markdown).
    """
    suffixed = all(_DATA.search(reading) for reading in _readings(parts[-1]))
    return suffixed and not any(
        _CONFIGURATION.search(reading) for name in parts for reading in _readings(name)
    )


def mimetype_of(path: str) -> str | None:
    """Return a file's media type by its name; None if unknown, or if it is compressed."""
    mimetype, encoding = mimetypes.guess_type(path)
    return None if encoding is not None else mimetype


def _wrong_with(name: str) -> str | None:
    """Return what is wrong with a name; None if it is valid."""
    try:
        if len(name.encode()) > MOST_NAME_BYTES:
            return f"has a name of over {MOST_NAME_BYTES} bytes"
    except UnicodeEncodeError:
        return "is not text"
    for times, reading in enumerate(_readings(name)):
        if times > MOST_READINGS:
            return "is encoded more often than anybody reads it"
        if reading in ("", ".", ".."):
            return "has a name that is empty, '.' or '..'"
        if "/" in reading or "\\" in reading:
            return "has a slash or a backslash within a name"
        if any(unicodedata.category(character) in _NO_TEXT for character in reading):
            return "has a control character"
        if reading.endswith((" ", ".")):
            return "has a name that ends with a dot or a space"
    return None


def _readings(name: str) -> Iterator[str]:
    """Yield a name, and the names that other programs may read it as."""
    while True:
        yield name
        told = unicodedata.normalize("NFKC", name)
        seen = "".join(each for each in told if unicodedata.category(each) != "Cf")
        other = unquote(seen)
        if other == name:
            return
        name = other


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
    FolderGone, FileNotFoundError, AccessRefused, OSError
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
    AccessRefused
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
    AccessRefused
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
    AccessRefused
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
    AccessRefused
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
