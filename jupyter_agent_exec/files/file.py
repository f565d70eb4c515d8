"""Lists, reads and deletes files of a session's folder, and evaluates their request headers."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, BinaryIO, Final, NamedTuple

from msgspec import Meta

from ..errors import (
    FileMissing,
    FileNotOwned,
    FileUnwritable,
    FolderUnknown,
    Forbidden,
    RangeNotSatisfiable,
)
from ..kernels.folder import (
    MOST_PARTS,
    AccessRefused,
    FolderGone,
    Identity,
    Place,
    etag_of,
    identity,
    is_reached,
    look,
    mimetype_of,
    open_child,
    open_file,
    opened,
)
from ..models import Request, SessionFile
from ..records import timestamp
from ..types import Digest
from .upload import FileChanged


class FoundFile(NamedTuple):
    """A file or a folder."""

    parts: tuple[str, ...]
    status: os.stat_result


def found_in(
    folder: int,
    above: tuple[str, ...],
    kept: Collection[Identity],
    *,
    recursive: bool,
    after: tuple[str, ...],
) -> Iterator[FoundFile]:
    """Yield the entries of a folder sorted by name, each folder before its own entries.

    Skips hidden names, links, special files and the server's own folders.

    Parameters
    ----------
    folder
        Descriptor of the open folder.
    above
        Path of the folder.
    recursive
        Whether to yield the contents of its folders too.
    after
        Path of the last known entry, relative to the folder; empty to start at the first entry.
    """
    begun, rest = (after[0], after[1:]) if after else ("", ())
    for name in sorted(name for name in os.listdir(folder) if name >= begun and is_reached(name)):
        status = _visible(folder, name, kept)
        if status is None:
            continue
        path = (*above, name)
        if name != begun:
            yield FoundFile(path, status)
        if recursive and stat.S_ISDIR(status.st_mode) and len(path) < MOST_PARTS:
            yield from _below(folder, path, kept, after=rest if name == begun else ())


def _below(
    folder: int, path: tuple[str, ...], kept: Collection[Identity], *, after: tuple[str, ...]
) -> Iterator[FoundFile]:
    try:
        child = open_child(folder, path[-1], kept)
    except (AccessRefused, OSError):
        return  # the folder was removed or is not readable
    try:
        yield from found_in(child, path, kept, recursive=True, after=after)
    finally:
        os.close(child)


def _visible(folder: int, name: str, kept: Collection[Identity]) -> os.stat_result | None:
    try:
        status = look(folder, name)
    except (AccessRefused, OSError):
        return None
    return None if status is None or identity(status) in kept else status


class FilesQuery(Request, frozen=True, kw_only=True):
    """Which files of a session's folder to list."""

    path: Annotated[str, Meta(max_length=20_000)] = ""
    """Path of a folder in the session's folder; empty for the session's folder itself."""
    recursive: bool = False
    """Whether to list the contents of folders too."""
    after: Annotated[str, Meta(max_length=20_000)] | None = None
    """List the entries after this path. Use `next_after` of the previous page."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200


PIECE_BYTES: Final = 1 << 20
"""Bytes to read at once."""


class OpenFile:
    """A file that is open for reading.

    Parameters
    ----------
    descriptor
        Descriptor of the file. `close` closes it.
    status
        Status of the file when it was opened.
    """

    def __init__(self, descriptor: int, status: os.stat_result, *, name: str) -> None:
        self._descriptor = descriptor
        self.name = name
        self.bytes = status.st_size
        self.etag = etag_of(status)
        self.mimetype = mimetype_of(name) or "application/octet-stream"

    def pieces(self, span: Span | None = None) -> Iterator[bytes]:
        """Yield the content of the file, or a part of it. Yields less if the file has shrunk."""
        at, end = span or (0, self.bytes)
        while at < end and (data := os.pread(self._descriptor, min(PIECE_BYTES, end - at), at)):
            at += len(data)
            yield data

    def reader(self) -> BinaryIO:
        """Return the content as a file object. All of them share one position."""
        return open(self._descriptor, "rb", closefd=False)

    def sha256(self) -> Digest:
        """Return the SHA-256 digest of the whole file."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return Digest(digest.hexdigest())

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def session_file(path: str, status: os.stat_result, *, is_folder: bool) -> SessionFile:
    """Return the model of a file or a folder."""
    return SessionFile(
        path=path,
        is_folder=is_folder,
        bytes=None if is_folder else status.st_size,
        mimetype=None if is_folder else mimetype_of(path),
        modified_at=modified_at(status),
    )


def modified_at(status: os.stat_result) -> str:
    """Return when a file was last written, in the format of the record."""
    return timestamp(datetime.fromtimestamp(status.st_mtime_ns / 1_000_000_000, UTC))


_RANGE = re.compile(r"bytes=(?P<first>\d{0,19})-(?P<last>\d{0,19})", re.ASCII)
_TAG = re.compile(r'(?P<weak>W/)?(?P<tag>"[^"]*")')


class Span(NamedTuple):
    """A range of bytes in a file."""

    start: int
    end: int
    """Offset after the last byte."""


class Conditions(NamedTuple):
    """The preconditions of a write, from its headers."""

    if_match: str | None = None
    if_none_match: str | None = None


def span_of(header: str | None, size: int) -> Span | None:
    """Return the part of a file that a `Range` header names; None for the whole file.

    Several ranges and invalid ranges also stand for the whole file, as HTTP allows.

    Raises
    ------
    RangeNotSatisfiable
        The file has no byte of the range.
    """
    asked = _RANGE.fullmatch((header or "").strip())
    if asked is None or not (asked["first"] or asked["last"]):
        return None
    if not asked["first"]:
        start, end = max(0, size - int(asked["last"])), size
    else:
        start = int(asked["first"])
        end = min(int(asked["last"]) + 1, size) if asked["last"] else size
        if asked["last"] and int(asked["last"]) < start:
            return None
    if start >= size:
        raise RangeNotSatisfiable(f"The file has {size:,} bytes.", bytes=size)
    return Span(start, end)


def matches(header: str, etag: str) -> bool:
    """Return whether an `If-Match` or `If-Range` header has a strong ETag. `*` matches any ETag."""
    if header.strip() == "*":
        return True
    return any(found["tag"] == etag and not found["weak"] for found in _TAG.finditer(header))


MOST_HASHED_BYTES: Final = 1_000_000_000
"""Bytes of the largest file whose digest is recorded before it is deleted."""


def look_at(place: Place, parts: Sequence[str]) -> os.stat_result | None:
    """Return the status of a file to delete; None if it does not exist.

    Raises
    ------
    OSError, AccessRefused
        It cannot be deleted, for example because it is a folder that is not empty.
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
    """Return the digest of a file's content; None if the file is too large."""
    with opened(place, parts[:-1]) as folder:
        file = OpenFile(*open_file(folder, parts[-1]), name=parts[-1])
    try:
        return file.sha256() if file.bytes <= MOST_HASHED_BYTES else None
    finally:
        file.close()


def remove(place: Place, parts: Sequence[str], etag: str) -> None:
    """Delete a file or an empty folder, if it has not changed meanwhile.

    Raises
    ------
    FileChanged
        It has changed or is gone.
    OSError, AccessRefused
        It cannot be deleted.
    """
    with opened(place, parts[:-1]) as folder:
        status = look(folder, parts[-1])
        if status is None or etag_of(status) != etag:
            raise FileChanged
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


_NOT_THERE: Final = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENXIO, errno.ELOOP}
)
"""Errors of reading that an agent sees as a missing file."""

_NOT_TAKEN: Final = _NOT_THERE | {
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EBUSY,
    errno.ENOTEMPTY,
    errno.EMLINK,
}
"""Errors of writing that are reported to the agent. Any other error is a bug."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Report an unreadable file as missing."""
    try:
        yield
    except FolderGone as gone:
        raise _unknown(gone) from None
    except AccessRefused:
        raise missing(path) from None
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        raise missing(path) from None


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Raise FileUnwritable with the reason if a file cannot be written or deleted."""
    try:
        yield
    except FolderGone as gone:
        raise _unknown(gone) from None
    except AccessRefused as barred:
        raise Forbidden(f"{path!r} cannot be written or deleted here: {barred}.") from None
    except FileChanged:
        raise FileNotOwned(
            f"Somebody wrote {path!r} at the same moment. Read it before you replace it.",
            path=path,
        ) from None
    except OSError as error:
        if error.errno not in _NOT_TAKEN:
            raise
        raise FileUnwritable(
            f"{path!r} cannot be written or deleted ({error.strerror}).", path=path
        ) from None


def _unknown(gone: FolderGone) -> FolderUnknown:
    return FolderUnknown(f"The session's folder cannot be reached: {gone}.")


def missing(path: str) -> FileMissing:
    """Return the error for a path without a visible file."""
    return FileMissing(f"There is no file {path[:200]!r} in the session's folder.", path=path)
