"""Makes a contents manager's saves atomic: a crash leaves the old notebook or the new one.

Jupyter empties the file and writes into it, with a copy of the old content in a hidden file beside
it. If the server is killed meanwhile, it leaves an empty or half-written notebook, which Jupyter
restores only when it reads it again.

Jupyter Server has no public way to replace a file on save: `use_atomic_writing` only switches the
copy. So this module overrides `FileManagerMixin.atomic_writing` in a subclass that shares the
`__dict__` of the server's contents manager. A second manager would lose hooks that were registered
at run time. Jupyter's own `atomic_writing` used to replace the file, until that caused problems
with tools such as Dropbox (https://github.com/jupyter/notebook/pull/67). If it does so again,
remove this module; no issue about that is known. `tests/notebooks/test_atomic_contents.py` fails if
either stops working.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from jupyter_server.services.contents.fileio import FileManagerMixin

T = TypeVar("T")


def atomic(contents: T) -> T:
    """Return a view of a contents manager whose saves replace the file.

    The view shares all state with the contents manager, whose own saves do not change. Saves of the
    view do not change either if the manager does not write files as Jupyter does, or if
    `use_atomic_writing` is off.
    """
    made = type(contents)
    if getattr(made, "atomic_writing", None) is not FileManagerMixin.atomic_writing:
        return contents
    replacing = type(f"Atomic{made.__name__}", (_Replacing, made), {})
    shared: T = object.__new__(replacing)
    shared.__dict__ = contents.__dict__
    return shared


class _Replacing(FileManagerMixin):
    """Overrides the method with which Jupyter's contents managers write files."""

    @contextmanager
    def atomic_writing(
        self, os_path: str, text: bool = True, encoding: str = "utf-8", **options: Any
    ) -> Iterator[IO[Any]]:
        """Write a temporary file in the same folder. Once it is on the disk, replace the file."""
        path = Path(os.path.realpath(os_path))
        beside = _file_beside(path) if self.use_atomic_writing else None
        if beside is None:
            with super().atomic_writing(os_path, text, encoding, **options) as file:
                yield file
            return
        if text:
            options = {"newline": "\n", "encoding": encoding, **options}
        try:
            with (
                self.perm_to_403(os_path),
                beside.open("w+" if text else "wb+", **options) as file,
            ):
                yield file
                file.flush()
                os.fsync(file.fileno())
                try:
                    beside.replace(path)
                except OSError:  # for example, the file is a mount point
                    file.seek(0)
                    with super().atomic_writing(os_path, text, encoding) as in_place:
                        shutil.copyfileobj(file, in_place)
        finally:
            beside.unlink(missing_ok=True)


def _file_beside(path: Path) -> Path | None:
    """Make an empty file with the owner and the permissions of `path`, in the same folder.

    Returns None if that is impossible, or if replacing the file would not only change its content:
    the file has other hard links, is not a regular file, or is not writable.
    """
    beside: Path | None = None
    try:
        old = path.stat()
        if not stat.S_ISREG(old.st_mode) or old.st_nlink > 1 or not os.access(path, os.W_OK):
            return None
        fd, name = tempfile.mkstemp(prefix=f".~{path.name}.", dir=path.parent)
        os.close(fd)
        beside = Path(name)
        os.chown(beside, old.st_uid, old.st_gid)
        shutil.copystat(path, beside)
        if hasattr(os, "listxattr") and set(os.listxattr(beside)) - set(os.listxattr(path)):
            raise PermissionError("The folder gives new files more access than the file has.")
    except OSError:
        if beside is not None:
            beside.unlink(missing_ok=True)
        return None
    return beside
