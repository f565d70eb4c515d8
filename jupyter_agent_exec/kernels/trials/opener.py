"""Opens what the copy of a kernel reads, in its watcher. Sent to kernels, never imported there.

Landlock does not tell a pipe or a device from a file, and opening one can be seen at its other end.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .seal import HOME_FILES, MACHINE_FILES, SOME_CALLS, modules, own_files

OWN = re.compile(rb"^/proc/(?:thread-)?self(?=/|\Z)")

NOTIFICATION = struct.Struct("=QIIiIQ6Q")
RECEIVE, ANSWER, ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
AT_FDCWD = -100
MOST_PATH_BYTES = 4096
DEVICES = {os.makedev(1, minor) for minor in (3, 5, 7, 8, 9)}
"""/dev/null, zero, full, random and urandom."""


class Opener:
    """Opens what the copy reads, in the watcher: regular files, folders, and harmless devices.

    Parameters
    ----------
    copy
        The copy's process id.
    number
        The descriptor at which the copy's calls are answered.
    """

    def __init__(self, copy: int, number: int, plan: dict[str, Any]) -> None:
        self._copy = copy
        self._bared = None if plan["allow_hidden"] else os.path.realpath(plan["root"]).rstrip("/")
        home = os.path.realpath(os.path.expanduser("~"))
        self._shown = [*modules(), *(os.path.join(home, name) for name in HOME_FILES)]
        self.number = number
        self._memory = os.open(f"/proc/{copy}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self._proc_device = os.stat("/proc").st_dev
        self._proc = [path for path in MACHINE_FILES if path.startswith("/proc/")] + own_files(copy)

    def answer(self) -> None:
        """Answer one call."""
        request, opened, error = bytearray(NOTIFICATION.size), -1, 0
        try:
            fcntl.ioctl(self.number, RECEIVE, request)
        except OSError:  # the thread that called has ended
            return
        id, thread, _, number, _, _, *arguments = NOTIFICATION.unpack(request)
        if number == SOME_CALLS["open"][0]:
            arguments.insert(0, AT_FDCWD)
        try:
            file = self._open(thread, *arguments[:3])
            try:
                cloexec = arguments[2] & os.O_CLOEXEC
                given = struct.pack("=QIIII", id, 0, file, 0, cloexec)
                opened = fcntl.ioctl(self.number, ADD_DESCRIPTOR, bytearray(given))
            finally:
                os.close(file)
        except OSError as fault:
            error = -(fault.errno or errno.EACCES)
        except (OverflowError, ValueError):  # of arguments that no call takes
            error = -errno.EFAULT
        with contextlib.suppress(OSError):
            answer = struct.pack("=QqiI", id, 0 if error else opened, error, 0)
            fcntl.ioctl(self.number, ANSWER, bytearray(answer))

    def _open(self, thread: int, folder: int, address: int, flags: int) -> int:
        path, end, _ = os.pread(self._memory, MOST_PATH_BYTES, address).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "")
        path = OWN.sub(b"/proc/%d" % self._copy, path)
        folder &= 0xFFFFFFFF
        base = "cwd" if folder == AT_FDCWD & 0xFFFFFFFF else f"fd/{folder}"
        at = None if path.startswith(b"/") else os.open(f"/proc/{thread}/{base}", os.O_PATH)
        there = -1
        try:
            there = os.open(path, os.O_PATH | flags & os.O_NOFOLLOW, dir_fd=at)
            self._check(there)
            return os.open(f"/proc/self/fd/{there}", flags & 0x7FFFFFFF & ~os.O_NOFOLLOW)
        finally:
            for number in (at, there):
                if number not in (None, -1):
                    os.close(number)

    def _check(self, there: int) -> None:
        """Raise OSError if the copy may not open this for reading."""
        found, path = os.fstat(there), os.readlink(f"/proc/self/fd/{there}")
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, "")
        is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        is_known = stat.S_ISCHR(found.st_mode) and found.st_rdev in DEVICES
        is_other = found.st_dev == self._proc_device and not any(
            path == each or path.startswith(each + "/") for each in self._proc
        )
        if is_other or not (is_file or is_known) or self._is_hidden(path):
            raise OSError(errno.EACCES, "")

    def _is_hidden(self, path: str) -> bool:
        """Return whether a path of the served folder is hidden, and no folder of modules."""
        start = f"{self._bared}/"
        if self._bared is None or not path.startswith(start) or "/." not in path[len(start) - 1 :]:
            return False
        shown = (each for each in self._shown if "/." in each)
        return not any(path == each or path.startswith(each + "/") for each in shown)
