"""A program that enters an isolated environment and starts a kernel there.

It is run as a file, needs only Python's standard library and the file `confinement.py`, which is
beside it or in `kernels/`, and has three modes::

    enter.py bubblewrap PLAN   ignore interrupts, and become bubblewrap
    enter.py confined PLAN     within bubblewrap: set the limits, and start the kernel
    enter.py unshare PLAN      without bubblewrap: make the namespaces and mounts too

One process stays between the server and the namespaces, and another is the first process in the
namespaces. Both ignore interrupts, which go to the whole process group. They exit with the kernel's
exit code, or with 128 plus the number of the signal that ended it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..kernels import confinement
else:  # this file is run by its path, also where the package is not
    here = Path(__file__).parent
    sys.path += [str(here), str(here.parent / "kernels")]
    import confinement

check, die_with_parent, libc = confinement.check, confinement.die_with_parent, confinement.libc
filter_calls, limit = confinement.filter_calls, confinement.limit
give_up_capabilities = confinement.give_up_capabilities
give_up_new_privileges = confinement.give_up_new_privileges
refuse, when_call = confinement.refuse, confinement.when_call
make_namespaces, keep_mounts = confinement.make_namespaces, confinement.keep_mounts
mount, MS_REC = confinement.mount, confinement.MS_REC
MS_NOSUID, MS_NODEV, MS_NOEXEC = confinement.MS_NOSUID, confinement.MS_NODEV, confinement.MS_NOEXEC
EQUAL, EPERM = confinement.EQUAL, confinement.EPERM
ALLOW: Final = (confinement.RETURN, 0, 0, confinement.RETURN_ALLOW)

# Source of all numbers: the kernel's include/uapi.
CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x02000000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_BIND, MNT_DETACH = 4096, 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_SETATTR = 442
PR_SET_DUMPABLE = 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
EAFNOSUPPORT = 97

FAMILIES = (1, 2, 10, 16)
"""Socket families that the network namespace confines: UNIX, IPv4, IPv6, netlink. It does not
confine others: a VSOCK reaches the host of this virtual machine."""

CALLS: Final[dict[str, tuple[int, tuple[int, ...]]]] = {
    # Architecture: the number of `socket`, and the numbers of the forbidden calls:
    # add_key, request_key, keyctl (the keyring is the server's), perf_event_open,
    # open_by_handle_at, bpf, userfaultfd, and io_uring_setup (its sockets bypass the filter).
    "x86_64": (41, (248, 249, 250, 298, 304, 321, 323, 425)),
    "aarch64": (198, (217, 218, 219, 241, 265, 280, 282, 425)),
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
    if plan["cgroup"] is not None:
        write(f"{plan['cgroup']}/cgroup.procs", "0")
    make_namespaces(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
    die_with_parent()
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
    mount_all(plan["mounts"], plan["root"], plan["masked"], plan["ids"])
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


def exit_code(status: int) -> int:
    """Return the exit code that a shell would report for a wait status."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# -- mounts ----------------------------------------------------------------------------------------


def mount_all(mounts: Sequence[Sequence[str]], root: str, masked: Sequence[str], ids: int) -> None:
    """Mount the paths that the kernel sees, and unmount everything else."""
    keep_mounts()
    mount("tmpfs", root, MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for kind, source, target in mounts:
        place(kind, source, root + target)
    make_proc(root + "/proc", masked, ids)
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


def make_proc(target: str, masked: Sequence[str], ids: int) -> None:
    """Mount `/proc` with the namespace's own processes and read-only settings of the machine."""
    os.makedirs(target)
    mount("proc", target, MS_NOSUID | MS_NODEV | MS_NOEXEC)
    write(f"{target}/sys/user/max_user_namespaces", "0")
    if ids:
        # Since Linux 6.14, each namespace has its own; before, it belongs to the whole machine.
        if tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (6, 14):
            sys.exit(
                "limit the processes of root: that needs a writable control group with the "
                "controller pids, Linux 6.14, or isolated_processes=0"
            )
        write(f"{target}/sys/kernel/pid_max", str(ids))
    for name in masked:
        bind(os.devnull, f"{target}/{name}")
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
    limit(limits)
    give_up_new_privileges()
    filter_calls(refused_calls())


def refused_calls() -> list[confinement.Instruction]:
    """Return the rules for system calls that namespaces do not confine."""
    socket_call, refused = CALLS[os.uname().machine]
    rules = [each for call in refused for each in when_call(call, [refuse(EPERM)])]
    rules += confinement.refuse_set_id()
    rules += [(EQUAL, 1, 0, socket_call), ALLOW, confinement.load_argument(0)]  # the family
    for family in FAMILIES:
        rules += [(EQUAL, 0, 1, family), ALLOW]
    return [*rules, refuse(EAFNOSUPPORT)]


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


if __name__ == "__main__":
    try:
        main(sys.argv[1], json.loads(sys.argv[2]))
    except OSError as error:
        sys.exit(str(error))
