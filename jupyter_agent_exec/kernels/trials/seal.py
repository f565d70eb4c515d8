"""Seals the copy of a kernel before the agent's first line. Sent to kernels, never imported there.

The copy may compute, read some folders, and write in a private folder. Landlock decides about
files, and a filter about system calls: only those in `CALLS` are let through, so that a call that
Linux gets later is refused. What the copy inherited is taken away before: descriptors, memory that
it shares with other processes or files, nearly all of its environment.

The watcher, which is sealed as to files like the copy, opens what the copy reads: `opener.py`.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import re
import socket
import stat
import struct
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..confinement import (
        AND,
        ANY_BIT,
        ENOSYS,
        EPERM,
        EQUAL,
        LANDLOCK_CREATE,
        MS_NODEV,
        MS_NOEXEC,
        MS_NOSUID,
        NEW_LISTENER,
        RETURN,
        RETURN_ALLOW,
        RETURN_NOTIFY,
        Instruction,
        check,
        drop_capabilities,
        filter_calls,
        give_up_new_privileges,
        keep_mounts,
        landlock_abi,
        libc,
        limit,
        load_argument,
        make_namespaces,
        mount,
        refuse,
        when_call,
    )

# Source of all numbers: the kernel's include/uapi.
LANDLOCK_ADD, LANDLOCK_RESTRICT, PATH_BENEATH = 445, 446, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REFER, TRUNCATE, IOCTL_DEV = 0, 1, 2, 3, 13, 14, 15
MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 6, 9, 10, 11
NET_RIGHTS, SCOPES = 0b11, 0b11
READ = 1 << READ_FILE | 1 << READ_DIR
FILE_RIGHTS = 1 << EXECUTE | 1 << WRITE_FILE | 1 << READ_FILE | 1 << TRUNCATE | 1 << IOCTL_DEV
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE = 2, 0x10, 0x20, 0x4000
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
M_ARENA_MAX = -8

GPUS = ("/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/accel", "/dev/nvhost", "/dev/davinci")
MOST_SHARED_BYTES = 1 << 30
"""The most bytes of shared memory without a file to copy."""
SCRATCH = "size=64m,nr_inodes=8192,mode=700"
"""What the copy may write: in bytes, and in files and folders. It is memory."""

KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|TEMP|TMP|PYTHON\w+|MPL\w+|CUDA\w+"
    r"|\w+_NUM_THREADS|LD_LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX|XDG_\w+|PROJ_\w+|GDAL_DATA"
)
"""Names of the variables in the environment that the copy gets: code and libraries need them, and
no secret is kept in them. Which of the others are secret, nobody knows."""

MACHINE_FILES = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/vm", "/sys/devices/system"),
    *("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    *("/sys/kernel/mm/transparent_hugepage", "/dev/zero", "/dev/full", "/dev/random"),
    *("/dev/urandom", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release"),
)
"""What libraries look up about the machine."""
HOME_FILES = (".cache/matplotlib", ".config/matplotlib", ".fonts", ".local/share/fonts")
APART = ("/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot")
"""Folders of the system that are not read because a folder around them is."""

OWN_FILES = (
    *("auxv", "cmdline", "comm", "environ", "fd", "fdinfo", "io", "limits", "maps", "oom_score"),
    *("smaps", "smaps_rollup", "stat", "statm", "status"),
)
"""What the copy may read about itself. Not among them: `net`, `cgroup` and `mountinfo`, which tell
of the machine, and `task`, which has them too."""


CALLS = {
    # Calls that reach nothing outside, and those that Landlock judges. Not among them, on purpose:
    # execve, fork, vfork (no programs), socket, connect, bind, socketpair, sendmsg (no network),
    # kill, tkill, tgkill, pidfd_send_signal, rt_sigqueueinfo (no signals), chmod, chown, utime,
    # setxattr, truncate, flock (Landlock does not judge them), setrlimit, seccomp, memfd_create.
    "x86_64": (
        "0-1 3-15 17-28 32-40 45 47-48 51-52 55 60-61 63 74-75 77-89 95-100 102 104 107-108 110-111"
        " 115 118 120-121 124-125 127-128 130-131 137-138 140 143 145-147 149-150 158 186 191-196"
        " 201 204 213 217-219 221 228-233 237-239 247 258 262-267 269-271 273-275 281 283-287"
        " 290-293 295-296 309 316 318 324 326-328 332 334 439 441"
    ),
    "aarch64": (
        "8-13 17 19-24 34-38 43-44 46-50 57 59 61-73 76 78-80 82-83 85-87 90 93-96 99-103 113-115"
        " 120-121 123-126 128 132-137 139 141 148 150 153 155-156 158 160 163 165-166 168-169"
        " 172-179 204-205 207 209-210 212 214-216 222-223 226-229 232-233 235-237 260 276 278 283"
        " 285-287 291 293 439 441"
    ),
}

SOME_CALLS = {
    # Calls that are let through with some arguments only: on x86_64 and on aarch64.
    "open": (2, None),
    "ioctl": (16, 29),
    "sendto": (44, 206),
    "clone": (56, 220),
    "fcntl": (72, 25),
    "prctl": (157, 167),
    "futex": (202, 98),
    "sched_setaffinity": (203, 122),
    "openat": (257, 56),
    "prlimit64": (302, 261),
    "close_range": (436, 436),
}
CLONE3, OPENAT2 = 435, 437
"""Their arguments are in memory, where a filter cannot see them. Libraries do without them."""

THREAD = 0x3D0F00
"""Flags with which the C library makes a thread: `CLONE_VM`, `CLONE_THREAD` and others."""
CLONE_DETACHED = 0x400000
FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1034)
"""`F_DUPFD`, flags, locks, and the size of a pipe. Not `F_SETOWN` and `F_SETSIG`, which have Linux
send a signal to another process; not leases."""
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""`TCGETS`, `TIOCGWINSZ`, `FIONREAD`, `FIONBIO`, `FIONCLEX`, `FIOCLEX`."""
FUTEX_PRIVATE, FUTEX_CLOCK_REALTIME = 128, 256
SHARED_FUTEXES = {0: errno.EAGAIN, 9: errno.EAGAIN, 1: 0, 10: 0}
"""What `FUTEX_WAIT`, `FUTEX_WAKE` and their variants with a bitset return if they are not private,
so that nobody else waits there: there is something to look at, and nobody was woken. The C library
waits so for the end of a thread."""
PRCTLS = (15, 16)
"""`PR_SET_NAME`, `PR_GET_NAME`."""


def seal_watcher(plan: dict[str, Any]) -> None:
    """Seal the watcher as to files, before it forks the copy.

    It can read more of /proc than the copy, to see the copy's memory and working folder.
    """
    unshare_memory()
    give_up_new_privileges()
    drop_capabilities()
    restrict_files(plan, ["/proc"])


def seal(plan: dict[str, Any], keep: Collection[int], watcher: socket.socket) -> dict[str, Any]:
    """Seal this process, which has no other threads; return what seals it.

    Parameters
    ----------
    keep
        The descriptors to keep.
    watcher
        Where the watcher is told what to listen to, and says that it does. It is closed.
    """
    blank_descriptors({*keep, watcher.fileno()})
    clear_environment()
    bound_resources(plan["memory_bytes"])
    abi = restrict_files(plan, own_files(os.getpid()))
    listener = filter_calls(told_of(), NEW_LISTENER)
    given = struct.pack("=i", listener)
    watcher.sendmsg([b"1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
    watcher.recv(1)
    os.close(listener)  # else the copy could answer itself
    watcher.close()
    filter_calls(rules())
    if os.stat("/proc/self/task").st_nlink != 3:  # a thread from before is not sealed
        sys.exit("a library started a thread when the kernel was copied")
    return {"landlock_abi": abi, "seccomp": True}


# -- what the copy inherited -----------------------------------------------------------------------


def blank_descriptors(keep: Collection[int]) -> None:
    """Put a descriptor that nothing can be read from or written to in the place of each other one.

    They are not closed, because objects in the copy would then use files that it opens later.
    """
    blank = os.open(os.devnull, os.O_PATH)
    for number in descriptors() - {blank, *keep}:
        os.dup2(blank, number, inheritable=False)


def descriptors() -> set[int]:
    """Return the open descriptors of this process."""
    listed = os.listdir("/proc/self/fd")  # with the one that lists them, which is closed now
    return {int(number) for number in listed if os.path.lexists(f"/proc/self/fd/{number}")}


def shared_mappings() -> Iterator[tuple[int, int, str, int, str, str]]:
    """Yield start, end, permissions, offset, identity and path of memory shared with others."""
    with open("/proc/self/maps") as maps:
        lines = maps.readlines()
    for line in lines:
        where, permissions, offset, device, inode, *path = line.rstrip("\n").split(" ", 5)
        if permissions[3] == "s":
            start, _, end = where.partition("-")
            identity = f"{device} {inode}"
            name = "".join(path).strip()
            yield int(start, 16), int(end, 16), permissions, int(offset, 16), identity, name


def unshare_memory() -> None:
    """Replace memory that is shared with files and other processes by private copies."""
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    numbers = [ctypes.c_int, ctypes.c_int, ctypes.c_int]
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *numbers, ctypes.c_long]
    pointer, size_of = ctypes.c_void_p, ctypes.c_size_t
    libc.mremap.argtypes = [pointer, size_of, size_of, ctypes.c_int, pointer]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    room = MOST_SHARED_BYTES
    for start, end, permissions, offset, identity, path in shared_mappings():
        size = end - start
        protection = sum(
            flag
            for flag, letter in ((PROT_READ, "r"), (PROT_WRITE, "w"), (PROT_EXEC, "x"))
            if letter in permissions
        )
        if map_file(start, size, protection, offset, identity, path):
            continue
        room -= size
        if room < 0:
            sys.exit("the kernel shares too much memory with other processes to copy it")
        copy_memory(start, size, protection)


def map_file(start: int, size: int, protection: int, offset: int, identity: str, path: str) -> bool:
    """Map a file again, so that nothing reaches it; return False if it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x} {found.st_ino}"
        if device != identity or not stat.S_ISREG(found.st_mode):
            return False
        flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE
        done: int | None = libc.mmap(start, size, protection, flags, descriptor, offset)
        return done == start
    finally:
        os.close(descriptor)


def copy_memory(start: int, size: int, protection: int) -> None:
    """Replace memory by a copy of its own."""
    writable = PROT_READ | PROT_WRITE
    copy = libc.mmap(None, size, writable, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    check(-(copy == ctypes.c_void_p(-1).value), "copy shared memory")
    if protection & PROT_READ:
        ctypes.memmove(copy, start, size)
    moved = libc.mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start)
    check(-(moved != start), "copy shared memory")
    check(libc.mprotect(start, size, protection), "copy shared memory")


def clear_environment() -> None:
    """Remove all but some variables from the environment, and overwrite where they were."""
    kept = {name: os.environ[name] for name in os.environ if KEPT.fullmatch(name)}
    for value in os.environb._data.values():  # type: ignore[attr-defined]
        if len(value) > 1:  # Python has shorter ones once
            ctypes.memset(id(value) + bytes.__basicsize__ - 1, 0, len(value))
    pointers = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
    for index in itertools.count():
        if not (address := pointers[index]):
            break
        ctypes.memset(address, 0, libc.strlen(ctypes.c_void_p(address)))
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    libc.clearenv()
    os.environb._data.clear()  # type: ignore[attr-defined]
    ctypes.memset(start, 0, end - start)
    os.environ.update(kept)


# -- resources -------------------------------------------------------------------------------------


def bound_resources(memory_bytes: int) -> None:
    """Limit the memory that the copy may add to the kernel's."""
    libc.mallopt(M_ARENA_MAX, 2)  # each thread would reserve 64 MB of addresses
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limit(
        {
            "RLIMIT_AS": used + memory_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": max(descriptors()) + 256,
        }
    )


# -- files -----------------------------------------------------------------------------------------


def make_scratch(folder: str) -> bool:
    """Mount the copy's folder for temporary files; return False if this system does not let it.

    It is gone with the last process that sees it, whatever is in it: nothing has to be deleted.
    """
    try:
        make_namespaces(0)
        keep_mounts()
        mount("tmpfs", folder, MS_NOSUID | MS_NODEV | MS_NOEXEC, SCRATCH)
    except (OSError, SystemExit):
        return False
    return True


def restrict_files(plan: dict[str, Any], more: Iterable[str]) -> int:
    """Let the copy read some folders, and write in its private one; return Landlock's version."""
    abi = landlock_abi()
    if abi < 1:
        sys.exit("this Linux has no Landlock")
    rights = (1 << (REFER + (abi >= 2) + (abi >= 3))) - 1 | (abi >= 5) << IOCTL_DEV
    request = struct.pack("=QQQ", rights, NET_RIGHTS * (abi >= 4), SCOPES * (abi >= 6))
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset: int = libc.syscall(LANDLOCK_CREATE, request, size, 0)
    check(ruleset, "restrict files")
    private = rights
    for right in (EXECUTE, MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, IOCTL_DEV):
        private &= ~(1 << right)
    if plan["has_scratch"]:
        allow(ruleset, plan["private"], private)
    allow(ruleset, os.devnull, 1 << READ_FILE | 1 << WRITE_FILE)
    for path in (*plan["system"], *MACHINE_FILES, *more):
        allow(ruleset, os.path.realpath(path), READ)
    for path, some in readable(plan):
        allow(ruleset, path, some)
    check(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0), "restrict files")
    os.close(ruleset)
    return abi


def allow(ruleset: int, path: str, rights: int) -> None:
    """Allow something with a path and all below it, if it exists."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISLNK(mode):
        rights &= -1 if stat.S_ISDIR(mode) else FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        check(libc.syscall(LANDLOCK_ADD, ruleset, PATH_BENEATH, rule, 0), f"allow {path}")
    os.close(descriptor)


def readable(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the paths that the copy may read, besides the system's, with the rights.

    Of the home folder, the served folder, and the folders from there to the working folder, what is
    hidden is left out.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    cwd, root = os.path.realpath(os.getcwd()), os.path.realpath(plan["root"])
    bared = {home, root}
    while cwd != root and cwd.startswith(root.rstrip("/") + "/"):
        bared.add(cwd)
        cwd = os.path.dirname(cwd)
    barred = {os.path.realpath(path) for path in (*plan["hidden"], *APART)}
    for path in dict.fromkeys([root, *modules()]):
        if path != home or path == root:
            yield from below(path, barred, bared)
    for name in HOME_FILES:
        yield os.path.join(home, name), READ


def modules() -> list[str]:
    """Return the folders of Python and of modules."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]
    return [
        os.path.realpath(each) for each in found if isinstance(each, str) and os.path.isabs(each)
    ]


def below(path: str, barred: Collection[str], bared: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield a path, or what may be read of it if some may not."""
    start = path.rstrip("/") + "/"
    if any(path == each or path.startswith(each + "/") for each in barred):
        return
    if not any(each.startswith(start) for each in (*barred, *bared)) and path not in bared:
        yield path, READ
        return
    yield path, 1 << READ_DIR
    try:
        entries = list(os.scandir(path))
    except OSError:
        return
    for entry in entries:
        if not (path in bared and entry.name.startswith(".")) and not entry.is_symlink():
            yield from below(entry.path, barred, bared)


def own_files(copy: int) -> list[str]:
    """Return what the copy may read about itself."""
    return [f"/proc/{copy}/{name}" for name in OWN_FILES]


# -- system calls ----------------------------------------------------------------------------------


def told_of() -> list[Instruction]:
    """Return rules that tell the watcher of what is opened to be read only."""
    found: list[Instruction] = []
    for name in ("open", "openat"):
        if (number := SOME_CALLS[name][os.uname().machine == "aarch64"]) is not None:
            tells = [(EQUAL, 0, 1, 0), (RETURN, 0, 0, RETURN_NOTIFY), (RETURN, 0, 0, RETURN_ALLOW)]
            found += when_call(number, [*opened(name), *tells])
    return [*found, (RETURN, 0, 0, RETURN_ALLOW)]


def opened(name: str) -> list[Instruction]:
    """Let a call through that opens nothing; else load the flags that tell what it does."""
    told = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | os.O_DIRECTORY
    allows = [(ANY_BIT, 0, 1, os.O_PATH), (RETURN, 0, 0, RETURN_ALLOW)]
    return [load_argument(1 if name == "open" else 2), *allows, (AND, 0, 0, told)]


def rules() -> list[Instruction]:
    """Return what is done with each system call."""
    machine = os.uname().machine
    if machine not in CALLS:
        sys.exit(f"there is no list of system calls for {machine}")
    allow_it = (RETURN, 0, 0, RETURN_ALLOW)
    found: list[Instruction] = []
    for name, numbers in SOME_CALLS.items():
        number = numbers[machine == "aarch64"]
        if number is not None:
            found += when_call(number, [*conditions(name), refuse(EPERM)])
    for number in (CLONE3, OPENAT2):
        found += when_call(number, [refuse(ENOSYS)])
    for each in CALLS[machine].split():
        first, _, last = each.partition("-")
        for number in range(int(first), int(last or first) + 1):
            found += when_call(number, [allow_it])
    return [*found, refuse(EPERM)]


def conditions(name: str) -> list[Instruction]:
    """Return instructions that let a call through with some arguments."""
    if name in ("open", "openat"):
        # Landlock decides about what is written, but not about access mode 3, and before its ABI 3
        # not about O_TRUNC without O_WRONLY.
        writes = [(AND, 0, 0, os.O_ACCMODE), *among([os.O_WRONLY, os.O_RDWR])]
        return [*opened(name), *among([0, os.O_DIRECTORY]), *writes]
    if name == "clone":
        return [load_argument(0), (AND, 0, 0, 0xFFFFFFFF & ~CLONE_DETACHED), *among([THREAD])]
    if name == "sendto":  # without an address
        return both_zero(4)
    if name == "prlimit64":  # only asks
        return both_zero(2)
    if name == "sched_setaffinity":  # of itself
        return [load_argument(0), *among([0])]
    if name == "futex":  # others would wait for a shared one, or be woken
        private = [(ANY_BIT, 0, 1, FUTEX_PRIVATE), (RETURN, 0, 0, RETURN_ALLOW)]
        shared = [
            each
            for operation, error in SHARED_FUTEXES.items()
            for each in ((EQUAL, 0, 1, operation), refuse(error))
        ]
        return [
            load_argument(1),
            *private,
            (AND, 0, 0, ~FUTEX_CLOCK_REALTIME & 0xFFFFFFFF),
            *shared,
        ]
    if name == "close_range":  # without CLOSE_RANGE_UNSHARE
        return [load_argument(2), *among([0, 4])]
    if name == "prctl":
        return [load_argument(0), *among(PRCTLS)]
    return [load_argument(1), *among(FCNTLS if name == "fcntl" else IOCTLS)]


def among(values: Iterable[int]) -> list[Instruction]:
    """Let the call through if what is loaded is one of these values."""
    return [
        each for value in values for each in ((EQUAL, 0, 1, value), (RETURN, 0, 0, RETURN_ALLOW))
    ]


def both_zero(index: int) -> list[Instruction]:
    """Let the call through if both halves of a pointer are zero."""
    return [
        load_argument(index),
        (EQUAL, 0, 3, 0),
        load_argument(index, high=True),
        *among([0]),
    ]
