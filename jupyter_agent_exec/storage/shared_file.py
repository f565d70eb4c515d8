"""A small file in the history's folder that all servers on the history read and change.

Each server reads it again when it has changed, and changes it under a lock, so that no change is
lost. A crash leaves the file as it was or as it became.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec
from filelock import FileLock, Timeout

from ..errors import HistoryUnavailable
from .durability import sync_folder

T = TypeVar("T")

LOCK_TIMEOUT: Final = 10.0
"""Seconds to wait for another server's change."""

_State = tuple[int, int, int]

_LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "overlay", "tmpfs", "xfs"})
"""File systems on disks of this machine."""


class SharedFile(Generic[T]):
    """Reads and changes one JSON file. Blocks, and is not thread-safe: one thread uses it.

    Parameters
    ----------
    what
        What it holds, for error messages: a plural noun.
    decode
        Returns the content that the file's bytes hold; may raise msgspec.MsgspecError.
    empty
        Its content while there is no file.
    """

    def __init__(self, path: Path, what: str, decode: Callable[[bytes], T], empty: T) -> None:
        self.path = path
        self._what = what
        self._decode = decode
        self._empty = empty
        self._lock = FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT, mode=0o600, thread_local=False)
        self._state: _State | None = None
        self.content: T = empty
        """What was read last. Another thread may read this attribute."""

    def read(self) -> T:
        """Return the content; the same object until the file changes.

        Raises
        ------
        HistoryUnavailable
            The file cannot be read. `content` is what it held before.
        """
        try:
            state = self._look()
            if state != self._state:
                self.content = (
                    self._empty if state is None else self._decode(self.path.read_bytes())
                )
                self._state = state
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HistoryUnavailable(
                f"{self._what} in {self.path} cannot be read ({error})."
            ) from error
        return self.content

    @property
    def is_unchanged(self) -> bool:
        """Whether `read` would return `content`; any thread may ask, and asks the disk."""
        try:
            return self._look() == self._state
        except OSError:
            return False

    def change(self, change: Callable[[T], T]) -> T:
        """Change the content, durable on return.

        Parameters
        ----------
        change
            Gets the content from the disk, and returns the new one. If it raises, or returns the
            same, nothing is written.

        Raises
        ------
        HistoryUnavailable
            Nothing was changed on disk.
        """
        try:
            with self._lock:
                before = self.read()
                after = change(before)
                if after != before:
                    self._write(after)
                    self.content, self._state = after, self._look()
        except (OSError, Timeout) as error:
            reason = getattr(error, "strerror", None) or error
            raise HistoryUnavailable(
                f"{self._what} cannot be saved ({reason}). Nothing was changed."
            ) from error
        return self.content

    def _look(self) -> _State | None:
        """Return a fingerprint of the file's state; None if there is no file."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _write(self, content: T) -> None:
        """Replace the file."""
        temporary = self.path.with_name(f"{self.path.name}.new")
        data = msgspec.json.format(msgspec.json.encode(content))
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        sync_folder(self.path.parent)


class SharedReads:
    """Reads shared files in their thread; callers that wait before a read begins share it.

    Parameters
    ----------
    read
        Reads the files again; blocks.
    thread
        An executor with one thread, in which the files are also changed.
    folder
        Where the files are.
    is_unchanged
        Whether a read would find nothing new.
    """

    def __init__(
        self,
        read: Callable[[], object],
        thread: Executor,
        folder: Path,
        is_unchanged: Callable[[], bool],
    ) -> None:
        self._read = read
        self._thread = thread
        self._is_local = is_local(folder)
        self._is_unchanged = is_unchanged
        self._next: _Read | None = None

    async def fresh(self) -> None:
        """Wait for a read that has not begun yet, unless it would find nothing new.

        Only a local disk is asked on the loop; another may take long to answer.
        """
        if not (self._is_local and self._is_unchanged()):
            await self._fresh_read()

    def _fresh_read(self) -> asyncio.Future[None]:
        if self._next is None or self._next.begun:
            self._next = _Read(self._read)
            loop = asyncio.get_running_loop()
            self._next.done = loop.run_in_executor(self._thread, self._next)
        return asyncio.shield(self._next.done)


def is_local(folder: Path) -> bool:
    """Return whether a folder, which may not exist yet, is on a local disk; False if unknown."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        device = there.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    for fields in map(str.split, mounts):
        if fields[2] == number:
            return fields[fields.index("-") + 1] in _LOCAL
    return False


class _Read:
    def __init__(self, read: Callable[[], object]) -> None:
        self._read = read
        self.begun = False
        self.done: asyncio.Future[None]

    def __call__(self) -> None:
        self.begun = True
        self._read()
