"""A program that enters an isolated environment and starts a kernel there.

It is run as a file, needs only Python's standard library, and has three modes::

    enter.py bubblewrap PLAN   ignore interrupts, and become bubblewrap
    enter.py confined PLAN     within bubblewrap: set the limits, and start the kernel
    enter.py unshare PLAN      without bubblewrap: make the namespaces and mounts too

One process stays between the server and the namespaces, and another is the first process in the
namespaces. Both ignore interrupts, which go to the whole process group. They exit with the kernel's
exit code, or with 128 plus the number of the signal that ended it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

libc = ctypes.CDLL(None, use_errno=True)

# Source of all numbers: the kernel's include/uapi.
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC = 2, 4, 8, 4096, 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_SETATTR = 442
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 24, 28, 38
SECUREBITS_NO_ROOT = 0b1111
CAPABILITY_VERSION_3 = 0x20080522
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
SECCOMP_MODE_FILTER = 2
RETURN_ALLOW, RETURN_KILL, RETURN_ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

FAMILIES = (1, 2, 10, 16)
"""Socket families that the network namespace confines: UNIX, IPv4, IPv6, netlink. It does not
confine others: a VSOCK reaches the host of this virtual machine."""

CALLS: Final[dict[str, tuple[int, int, tuple[int, ...]]]] = {
    # Architecture: its number, the number of `socket`, and the numbers of the forbidden calls:
    # add_key, request_key, keyctl (the keyring is the server's), perf_event_open,
    # open_by_handle_at, bpf, userfaultfd, and io_uring_setup (its sockets bypass the filter).
    "x86_64": (0xC000003E, 41, (248, 249, 250, 298, 304, 321, 323, 425)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 241, 265, 280, 282, 425)),
}


def main(way: str, plan: dict[str, Any]) -> None:
    """Run one of the modes."""
    if way == "confined":
        outlive_kernel(plan)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    if os.getppid() != plan["parent"]:
        sys.exit("the server has ended")
    if way == "bubblewrap":
        os.execv(plan["bubblewrap"][0], plan["bubblewrap"])  # noqa: S606
    unshare(plan)


def unshare(plan: dict[str, Any]) -> None:
    """Make the namespaces, run the kernel in them, and exit with its code."""
    uid, gid = os.geteuid(), os.getegid()
    check(
        libc.unshare(
            CLONE_NEWUSER
            | CLONE_NEWNS
            | CLONE_NEWPID
            | CLONE_NEWNET
            | CLONE_NEWIPC
            | CLONE_NEWUTS
            | CLONE_NEWCGROUP
        ),
        "make namespaces",
    )
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{gid} {gid} 1")
    die_with_parent()  # again, because new credentials reset it
    if os.getppid() != plan["parent"]:
        sys.exit("the server has ended")
    first = os.fork()
    if first == 0:
        die_with_parent()
        be_first(plan)
    sys.exit(exit_code(os.waitpid(first, 0)[1]))


def be_first(plan: dict[str, Any]) -> None:
    """Run as the first process of the namespaces: set up the mounts, and start the kernel."""
    socket.sethostname(plan["hostname"])
    bring_up_loopback()
    mount_all(plan["mounts"], plan["root"], plan["processes"])
    give_up_capabilities()
    outlive_kernel(plan)


def outlive_kernel(plan: dict[str, Any]) -> None:
    """Start the kernel, which cannot trace this process, and exit with its code."""
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "forbid the kernel to trace this process")
    kernel = os.fork()
    if kernel == 0:
        check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "allow the kernel to trace itself")
        confine(plan["limits"])
        become(plan["command"], plan["cwd"], plan["identity"])
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    while True:
        ended, status = os.wait()
        if ended == kernel:
            os._exit(exit_code(status))


def die_with_parent() -> None:
    """End when the parent process ends."""
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "die with the server")


def exit_code(status: int) -> int:
    """Return the exit code that a shell would report for a wait status."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# -- mounts ----------------------------------------------------------------------------------------


def mount_all(mounts: Sequence[Sequence[str]], root: str, processes: int) -> None:
    """Mount the paths that the kernel sees, and unmount everything else."""
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "keep mounts to itself")
    mount("tmpfs", root, MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for kind, source, target in mounts:
        place(kind, source, root + target)
    make_proc(root + "/proc", processes)
    make_devices(root + "/dev")
    set_attributes(root, MOUNT_ATTR_RDONLY)
    os.chdir(root)
    check(libc.pivot_root(b".", b"."), "change the root")
    check(libc.umount2(b".", MNT_DETACH), "unmount the old root")
    os.chdir("/")


def place(kind: str, source: str, target: str) -> None:
    """Mount one path."""
    if kind == "link":
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(source, target)
    elif kind == "tmpfs":
        os.makedirs(target, exist_ok=True)
        mount("tmpfs", target, MS_NOSUID | MS_NODEV, f"mode=700,size={source}")
    elif kind == "nothing":
        mount("tmpfs", target, MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=4k")
        set_attributes(target, MOUNT_ATTR_RDONLY)
    else:
        bind(source, target)
        read_only = MOUNT_ATTR_RDONLY if kind == "read" else 0
        set_attributes(target, read_only | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, AT_RECURSIVE)


def make_proc(target: str, processes: int) -> None:
    """Mount `/proc` with the namespace's own processes and read-only settings of the machine."""
    os.makedirs(target)
    mount("proc", target, MS_NOSUID | MS_NODEV | MS_NOEXEC)
    write(f"{target}/sys/user/max_user_namespaces", "0")
    if os.geteuid() == 0 and processes:
        # Root ignores the limit on processes, but not the highest process id. Since Linux 6.14,
        # each namespace has its own; before, it belongs to the whole machine.
        if tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (6, 14):
            sys.exit("limit the processes of root: that needs Linux 6.14, or isolated_processes=0")
        write(f"{target}/sys/kernel/pid_max", str(max(processes, 301)))
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs"):
        if os.path.exists(f"{target}/{name}"):
            bind(f"{target}/{name}", f"{target}/{name}")
            set_attributes(f"{target}/{name}", MOUNT_ATTR_RDONLY, AT_RECURSIVE)


def make_devices(target: str) -> None:
    """Make the devices that programs expect, and no others."""
    os.makedirs(target)
    mount("tmpfs", target, MS_NOSUID, "mode=755,size=1m")
    for name in ("null", "zero", "full", "random", "urandom"):
        bind(f"/dev/{name}", f"{target}/{name}")
    for name, link in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{link}", f"{target}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{target}/{name}")
    mount("devpts", f"{target}/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", f"{target}/ptmx")
    mount("tmpfs", f"{target}/shm", MS_NOSUID | MS_NODEV, "mode=1777,size=64m")
    set_attributes(target, MOUNT_ATTR_RDONLY)


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a file system of a kind."""
    name = kind.encode()
    done = libc.mount(name, os.fsencode(target), name, flags, options.encode() or None)
    check(done, f"mount {kind} on {target}")


def bind(source: str, target: str) -> None:
    """Bind one path to another, with all mounts below it."""
    if not os.path.lexists(target):
        if os.path.isdir(source):
            os.makedirs(target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).touch()
    done = libc.mount(os.fsencode(source), os.fsencode(target), None, MS_BIND | MS_REC, None)
    check(done, f"show {source}")


def set_attributes(target: str, attributes: int, flags: int = 0) -> None:
    """Add attributes to a mount."""
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    path = os.fsencode(target)
    done = libc.syscall(MOUNT_SETATTR, AT_FDCWD, path, flags, request, len(request))
    check(done, f"set mount attributes of {target}")


def bring_up_loopback() -> None:
    """Let programs in the namespace connect to each other over 127.0.0.1."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


# -- limits ----------------------------------------------------------------------------------------


def confine(limits: dict[str, int]) -> None:
    """Set limits that no program can lift again."""
    with contextlib.suppress(OSError):  # best effort: if memory runs out, this ends first
        write("/proc/self/oom_score_adj", "800")
    for name, most in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        last = most + 1 if name == "RLIMIT_CPU" and most != hard else most  # SIGXCPU first
        resource.setrlimit(number, (most, last))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
    filter_calls()


def give_up_capabilities() -> None:
    """Give up all capabilities permanently."""
    check(libc.prctl(PR_SET_SECUREBITS, SECUREBITS_NO_ROOT, 0, 0, 0), "give up being root")
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "give up capabilities")


def filter_calls() -> None:
    """Refuse system calls that namespaces do not confine."""
    machine = os.uname().machine
    if machine not in CALLS:
        sys.exit(f"filter system calls: no list of calls for {machine}")
    architecture, socket_call, refused = CALLS[machine]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, architecture),
        (answer, 0, 0, RETURN_KILL),
        (load, 0, 0, 0),  # the number of the call
        (at_least, 0, 1, 0x40000000),  # x32, which has other numbers
        (answer, 0, 0, RETURN_ERRNO | ENOSYS),
    ]
    for call in refused:
        program += [(equal, 0, 1, call), (answer, 0, 0, RETURN_ERRNO | EPERM)]
    program += [
        (equal, 1, 0, socket_call),
        (answer, 0, 0, RETURN_ALLOW),
        (load, 0, 0, 16),  # its first argument, the family
    ]
    for family in FAMILIES:
        program += [(equal, 0, 1, family), (answer, 0, 0, RETURN_ALLOW)]
    program.append((answer, 0, 0, RETURN_ERRNO | EAFNOSUPPORT))
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    request = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    done = libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, request, 0, 0)
    check(done, "filter system calls")


def become(command: list[str], cwd: str, identity: list[int] | None) -> None:
    """Replace this program by the kernel."""
    for ignored in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.chdir(cwd)
    here = os.stat(".")
    if identity not in (None, [here.st_dev, here.st_ino]):  # bubblewrap changes to it by its path
        sys.exit(f"work in {cwd}: another folder has taken its place")
    os.environ["PWD"] = cwd
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"run {command[0]}: {error}")


def write(path: str, text: str) -> None:
    """Write to a system file."""
    with open(path, "w") as file:
        file.write(text)


def check(result: int, what: str) -> None:
    """Exit with a sentence if a call of the C library failed."""
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    try:
        main(sys.argv[1], json.loads(sys.argv[2]))
    except OSError as error:
        sys.exit(str(error))
