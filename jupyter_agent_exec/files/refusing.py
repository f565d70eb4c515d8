"""What the disk says, as what whoever asked is told."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import FileMissing, FileNotOwned, FileUnwritable, FolderUnknown, Forbidden
from ..kernels.folder import Barred, FolderGone
from .upload import Otherwise

_NOT_THERE: Final = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENXIO, errno.ELOOP}
)
"""What of a file that is to be read means that it is not there for us."""

_NOT_TAKEN: Final = _NOT_THERE | {
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EBUSY,
    errno.ENOTEMPTY,
    errno.EMLINK,
}
"""What of a file that is to be written or deleted is told; anything else is a fault of ours."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Have what cannot be read told as what is not there: an agent need not know the difference."""
    try:
        yield
    except FolderGone as gone:
        raise _unknown(gone) from None
    except Barred:
        raise missing(path) from None
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        raise missing(path) from None


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Have it told why a file cannot be written or deleted."""
    try:
        yield
    except FolderGone as gone:
        raise _unknown(gone) from None
    except Barred as barred:
        raise Forbidden(f"{path!r} cannot be written or deleted here: {barred}.") from None
    except Otherwise:
        raise FileNotOwned(
            f"Somebody wrote {path!r} at this very moment; look at it before you replace it.",
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
    """Return the refusal of a path at which nothing is for an agent."""
    return FileMissing(f"There is no file {path[:200]!r} in the session's folder.", path=path)
