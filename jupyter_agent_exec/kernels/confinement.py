"""What confines a process for good: limits, no privileges, a filter of system calls.

Trials use it, and isolated kernels. It needs only Python's standard library, because it runs where
this package is not installed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable, Mapping

libc = ctypes.CDLL(None, use_errno=True)

# Source of all numbers: the kernel's include/uapi.
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 28, 38
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 16384, 1 << 18
SECUREBITS_NO_ROOT = 0b1111
CAPABILITY_VERSION_3 = 0x20080522
SECCOMP_SET_MODE_FILTER = 1
LANDLOCK_CREATE, LANDLOCK_VERSION = 444, 1
RETURN_ALLOW, RETURN_KILL, RETURN_ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
RETURN_NOTIFY, NEW_LISTENER = 0x7FC00000, 8
SECCOMP = {"x86_64": 317, "aarch64": 277}
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
"""Instructions of a filter: load a word, compare it, test its bits, mask it, and return."""
EPERM, ENOSYS = 1, 38

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf"),
    *("/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone", "/etc/mime.types"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust"),
    *("/etc/ca-certificates", "/etc/crypto-policies", "/etc/terminfo", "/etc/magic"),
)
"""Programs, and the files that they need. The rest of /etc is not shown: it may hold secrets."""

SET_ID = 0o6000
"""The bits of a file's mode with which others run it as its owner or its group."""
CREATES = 0o100 | 0o20000000
"""The flags of `open` with which it takes a mode: `O_CREAT`, and that of `O_TMPFILE`."""
OPENAT2 = 437
SETS_MODE: dict[str, tuple[dict[int, int], dict[int, int]]] = {
    # Architecture: the calls that set a file's mode, and those that do with one of the flags above;
    # each with the argument that has the mode. The argument before has the flags.
    # chmod, fchmod, creat, mknod, mknodat, fchmodat, fchmodat2; open, openat.
    "x86_64": ({90: 1, 91: 1, 85: 1, 133: 1, 259: 2, 268: 2, 452: 2}, {2: 2, 257: 3}),
    # mknodat, fchmod, fchmodat, fchmodat2; openat.
    "aarch64": ({33: 2, 52: 1, 53: 2, 452: 2}, {56: 3}),
}

Instruction = tuple[int, int, int, int]


def check(result: int, what: str) -> None:
    """Exit with a sentence if a call of the C library failed."""
    if result < 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def die_with_parent() -> None:
    """End when the thread that made this process ends."""
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "die with the parent")


def make_namespaces(kinds: int) -> None:
    """Make namespaces, among them one of users and one of mounts; keep the ids.

    The caller dies with its parent only if it asks for it again: new credentials reset that.
    """
    user, group = os.geteuid(), os.getegid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | kinds), "make namespaces")
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def keep_mounts() -> None:
    """Have mounts of this process seen nowhere else."""
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "keep mounts to itself")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a file system of a kind."""
    name = kind.encode()
    done = libc.mount(name, os.fsencode(target), name, flags, options.encode() or None)
    check(done, f"mount {kind} on {target}")


def landlock_abi() -> int:
    """Return the version of Landlock here; 0 or less if there is none."""
    abi: int = libc.syscall(LANDLOCK_CREATE, None, 0, LANDLOCK_VERSION)
    return abi


def limit(limits: Mapping[str, int]) -> None:
    """Set limits, by the names of `resource`, that no program can lift again."""
    for name, most in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        last = most + 1 if name == "RLIMIT_CPU" and most != hard else most  # SIGXCPU first
        resource.setrlimit(number, (most, last))


def give_up_new_privileges() -> None:
    """Gain nothing by running a program, such as one that is set-user-id."""
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")


def give_up_capabilities() -> None:
    """Give up all capabilities permanently, also those of programs that are run later."""
    check(libc.prctl(PR_SET_SECUREBITS, SECUREBITS_NO_ROOT, 0, 0, 0), "give up being root")
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    drop_capabilities()


def drop_capabilities() -> None:
    """Give up the capabilities of this process."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "give up capabilities")


def refuse(error: int) -> Instruction:
    """Return the instruction that lets a system call fail with an error."""
    return RETURN, 0, 0, RETURN_ERRNO | error


def when_call(number: int, then: Iterable[Instruction]) -> list[Instruction]:
    """Return instructions for one system call; they end with a return, or load its number again."""
    then = list(then)
    return [(EQUAL, 0, len(then), number), *then]


def load_argument(index: int, *, high: bool = False) -> Instruction:
    """Return the instruction that loads the lower or higher half of a call's argument, from 0."""
    return LOAD, 0, 0, 16 + 8 * index + 4 * high


def refuse_set_id() -> list[Instruction]:
    """Return rules that let no file become set-user-id or set-group-id.

    Such a file would outlive the kernel, and anybody on the machine would run it as its owner.
    """
    sets, creates = SETS_MODE[os.uname().machine]
    again = (LOAD, 0, 0, 0)
    rules = when_call(OPENAT2, [refuse(ENOSYS)])  # its mode is in memory, where no filter looks
    for call, mode in sets.items():
        refused = [(ANY_BIT, 0, 1, SET_ID), refuse(EPERM)]
        rules += when_call(call, [load_argument(mode), *refused, again])
    for call, mode in creates.items():
        refused = [load_argument(mode), (ANY_BIT, 0, 1, SET_ID), refuse(EPERM)]
        rules += when_call(
            call, [load_argument(mode - 1), (ANY_BIT, 0, 3, CREATES), *refused, again]
        )
    return rules


def filter_calls(rules: Iterable[Instruction], flags: int = 0) -> int:
    """Filter the system calls of this process and its children.

    Parameters
    ----------
    rules
        What is done with a call whose number is loaded.
    flags
        With `NEW_LISTENER`, returns the descriptor at which another process answers the calls for
        which the rules return `RETURN_NOTIFY`.
    """
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        sys.exit(f"filter system calls: no list of calls for {machine}")
    program = [
        (LOAD, 0, 0, 4),  # the architecture
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, RETURN_KILL),
        (LOAD, 0, 0, 0),  # the number of the call
        (AT_LEAST, 0, 1, 0x40000000),  # x32, which has other numbers
        refuse(ENOSYS),
        *rules,
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    request = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    done: int = libc.syscall(SECCOMP[machine], SECCOMP_SET_MODE_FILTER, flags, request)
    check(done, "filter system calls")
    return done
