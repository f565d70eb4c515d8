"""The paths and resources of isolated kernels, and the command that isolates one.

The command uses bubblewrap, or the system's namespaces without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ..errors import IsolationUnavailable
from ..kernels import confinement
from ..kernels.folder import Folder, Identity, folder_for_sockets
from ..kernels.provisioner import LAUNCHER
from .view import HOME, Mount, View

OUTSIDE: Final = 2
"""Our own processes in the group: the outer one, and the first one of the namespaces."""
END_TIMEOUT: Final = 1.0
"""Seconds within which a killed process has ended."""


def make_cgroup(name: str, most: int) -> Path | None:
    """Make a control group in which so many processes and threads may be besides our own.

    Return None if this process is not root's, or may make none: the machine has no `pids`
    controller, or shows it read-only, as containers do.
    """
    for parent in _parents() if os.geteuid() == 0 else ():
        cgroup = parent / name
        with contextlib.suppress(OSError):
            cgroup.mkdir()
            try:
                (cgroup / "pids.max").write_text(str(most + OUTSIDE))
            except OSError:
                cgroup.rmdir()
            else:
                return cgroup
    return None


def remove_cgroup(cgroup: Path) -> None:
    """Remove a control group whose processes have been killed, when they have ended."""
    with contextlib.suppress(OSError):
        for pid in (cgroup / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                _wait_for_end(int(pid))
        cgroup.rmdir()


def _wait_for_end(pid: int) -> None:
    process = os.pidfd_open(pid)
    try:
        select.select([process], [], [], END_TIMEOUT)
    finally:
        os.close(process)


def _parents(process: Path = Path("/proc/self")) -> Iterator[Path]:
    """Yield the groups below which a group with a limit on processes may be made."""
    paths: dict[str, str] = {}
    for line in (process / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    for line in (process / "mounts").read_text().splitlines():
        _, mounted, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "pids" in options.split(",") and "pids" in paths:
            yield Path(mounted) / paths["pids"]
        elif kind == "cgroup2" and "" in paths:
            # A group with processes has no controllers for groups below it, except the root.
            own = Path(mounted) / paths[""]
            yield own.parent if (own / "pids.max").exists() else own


Way = Literal["bubblewrap", "unshare"]

ENTER = Path(__file__).with_name("enter.py")
CONFINEMENT = Path(confinement.__file__)
INSIDE = "/run/jupyter"
ENTER_INSIDE = f"{INSIDE}/enter.py"
"""Its path for a program in the sandbox, which does not see our installation."""
HOSTNAME = "isolated"
CWD = "."
"""As the source of a mount: the folder that the command runs in. A path could lead to another
folder meanwhile."""
TRY_TIMEOUT = 30.0
"""Seconds within which an attempt to isolate a program must end."""

WAYS: Final[Sequence[Way]] = ("bubblewrap", "unshare")

PACKAGE: Final = Path(__file__).resolve().parents[2]
"""The folder of our own programs."""

CONNECTION_FILE: Final = "/run/jupyter/kernel.json"
"""Path of the kernel's connection file in the sandbox. It sees no other connection file."""

LAUNCHER_INSIDE: Final = "/run/jupyter/launcher.py"
"""Path of the launcher in the sandbox."""

MASKED: Final = (
    *("cmdline", "interrupts", "kallsyms", "kcore", "key-users", "keys", "latency_stats"),
    *("modules", "sched_debug", "softirqs", "timer_list", "vmallocinfo"),
)
"""Files of `/proc` about the whole machine: how it was started, its keyrings, timers, addresses."""

RESERVED_IDS: Final = 300
"""Linux gives the process ids below only once. So with this many more ids than the limit, there are
always at least as many processes as the limit says, and at most this many more."""

LOG_BYTES: Final = 4000
"""The most bytes of a kernel process's own stdout and stderr to show in the server's log."""

_ETC: Final = {
    "passwd": f"agent:x:{os.geteuid()}:{os.getegid()}::{HOME}:/bin/sh\n",
    "group": f"agent:x:{os.getegid()}:\n",
    "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files of /etc, for an isolated kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationLimits:
    """The resources that an isolated kernel may use; 0 means no limit."""

    memory_bytes: int = 8 << 30
    """Bytes of address space for each process."""
    cpu_seconds: int = 3600
    """Seconds of processor time for each process, over its whole life."""
    processes: int = 512
    """Processes and threads, all together."""
    disk_bytes: int = 1 << 30
    """Bytes of each file, and of all files in each in-memory folder."""

    @property
    def resources(self) -> dict[str, int]:
        """The limits, by their names in Python's `resource`."""
        limits = {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_FSIZE": self.disk_bytes,
        }
        return {"RLIMIT_CORE": 0, **{name: most for name, most in limits.items() if most}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A program, and what it sees and may use."""

    command: Sequence[str]
    cwd: str
    """Its working folder. Change to this folder before you run the command."""
    identity: Identity | None
    """The device and inode of that folder; None for any folder."""
    mounts: Sequence[Mount]
    root: str
    """An empty folder in which the program's root file system is mounted."""
    limits: IsolationLimits
    cgroup: str | None
    """The control group that it joins, which limits its processes; None for none."""


class SandboxFiles:
    """The server's files for one isolated kernel.

    Server and kernel share only the folder of its sockets and the kernel's working folder.

    Parameters
    ----------
    processes
        How many processes and threads the kernel may have; 0: no limit.
    """

    def __init__(self, processes: int) -> None:
        self.path = folder_for_sockets("agent-exec-kernel-")
        self.sockets = self.path / "s"
        self.root = self.path / "root"
        self.log = self.path / "log"
        for folder in (self.sockets, self.root):
            folder.mkdir(mode=0o700)
        for name, text in _ETC.items():
            (self.path / name).write_text(text)
        self.cgroup = make_cgroup(self.path.name, processes) if processes else None

    def end_of_log(self) -> str:
        """Return the end of the kernel process's own stdout and stderr."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return log.read().decode(errors="replace").strip()

    def remove(self) -> None:
        """Remove all files."""
        if self.cgroup is not None:
            remove_cgroup(self.cgroup)
        shutil.rmtree(self.path, ignore_errors=True)


class Sandbox:
    """The paths and resources of all isolated kernels.

    Parameters
    ----------
    limits
        The limits of each kernel.
    private
        The server's own folders. They are not shown, and no isolated kernel works in them.
    root_dir
        The folder that the server serves, if any. A kernel sees only its working folder of it.
    readable
        Paths that kernels may read, besides the system's programs, Python and their own program.
    ways
        The ways to try, in this order.
    """

    def __init__(
        self,
        limits: IsolationLimits,
        *,
        private: Collection[Path] = (),
        root_dir: Path | None = None,
        readable: Collection[Path] = (),
        ways: Sequence[Way] = WAYS,
    ) -> None:
        self._limits = limits
        self._private = [path.resolve() for path in private]
        self._root_dir = root_dir
        self._readable = readable
        self._ways = ways
        self._way: Way | None = None
        self._lock = asyncio.Lock()

    def files(self) -> SandboxFiles:
        """Make the files for one kernel."""
        return SandboxFiles(self._limits.processes)

    async def way(self) -> Way:
        """Return the first way that works here; IsolationUnavailable if none does. Tried once."""
        async with self._lock:
            if self._way is not None:
                return self._way
            self._way = way = await asyncio.to_thread(self._try)
            return way

    def found_in(self, folder: Path, program: str) -> str | None:
        """Return a phrase for the forbidden files that a kernel in a folder would reach, or None.

        A kernel must not reach private files, nor files that others run or read, because it could
        replace them.

        Parameters
        ----------
        folder
            Its path without links. It is not resolved here, because it may change meanwhile.
        program
            The kernel's program, which the kernel sees.

        Raises
        ------
        IsolationUnavailable
            The kernel's program cannot be shown.
        """
        view = self._view()
        view.program(program)
        readable = [path.resolve() for path in self._readable]
        # Paths that the folder must not contain; whether it must not be within them; their name.
        barred = [
            ([Path.home().resolve()], False, "the account's home folder"),
            (self._private, True, "the server's own folders"),
            ([*view.installations, PACKAGE], True, "programs that the server or kernels run"),
            (
                [path for path in readable if path != folder],
                False,
                "files that all isolated kernels may read",
            ),
        ]
        for paths, also_within, what in barred:
            if any(
                path.is_relative_to(folder) or (also_within and folder.is_relative_to(path))
                for path in paths
            ):
                return what
        return None

    def plan(
        self,
        files: SandboxFiles,
        folder: Folder,
        command: Sequence[str],
        *,
        connection_file: str | None = None,
        resource_dir: str | None = None,
    ) -> Plan:
        """Return a plan to run a command; for a kernel, with its connection file and kernelspec.

        Parameters
        ----------
        folder
            Its working folder, the only folder of this machine that it may write to.
        """
        view = self._view()
        for in_memory in ("/tmp", HOME):  # noqa: S108
            view.memory(in_memory, self._limits.disk_bytes or 1 << 30)
        for each in (ENTER, CONFINEMENT):
            view.file(str(each), f"{INSIDE}/{each.name}")
        view.file(str(LAUNCHER), LAUNCHER_INSIDE)
        if connection_file is not None:
            view.file(connection_file, CONNECTION_FILE)
        if resource_dir:
            view.readable(Path(resource_dir))
        for name in _ETC:
            view.file(str(files.path / name), f"/etc/{name}")
        view.writable(str(files.sockets), str(files.sockets))
        path = str(folder.path)
        view.writable(CWD, path)
        return Plan(
            command=[view.program(command[0]), *command[1:]],
            cwd=path,
            identity=folder.identity,
            mounts=view.mounts(),
            root=str(files.root),
            limits=self._limits,
            cgroup=None if files.cgroup is None else str(files.cgroup),
        )

    def _view(self) -> View:
        root_dir = () if self._root_dir is None else (self._root_dir,)
        view = View([*self._private, Path.home(), *root_dir])
        view.system()
        view.server_python()
        for path in self._readable:
            view.readable(path)
        return view

    def _try(self) -> Way:
        if not sys.platform.startswith("linux"):
            raise IsolationUnavailable("Kernels can be isolated on Linux only.")
        files = self.files()
        try:
            faults = {}
            work = Folder(files.path, ("work",))
            work.path.mkdir()
            plan = self.plan(files, work, [sys.executable, "-I", "-S", "-c", "pass"])
            for way in self._ways:
                why = fault(way, plan)
                if why is None:
                    return way
                faults[way] = why
        finally:
            files.remove()
        tried = "; ".join(f"{way}: {why}" for way, why in faults.items())
        raise IsolationUnavailable(
            f"This server cannot isolate kernels. Tried {tried}. Its operator can install "
            "bubblewrap 0.8 or later, or allow user namespaces (see the page on isolation).",
            tried=faults,
        )


def argv(way: Way, plan: Plan) -> list[str]:
    """Return the command that runs a plan."""
    within = {
        "command": plan.command,
        "cwd": plan.cwd,
        "identity": plan.identity,
        "limits": plan.limits.resources,
    }
    if way == "bubblewrap":
        program = shutil.which("bwrap") or "bwrap"
        outer: dict[str, Any] = {
            "bubblewrap": [program, *_options(plan), *_enter("confined", within, ENTER_INSIDE)]
        }
    else:
        most = plan.limits.processes
        is_unlimited = not most or os.geteuid() != 0 or plan.cgroup is not None
        outer = {
            **within,
            "cgroup": plan.cgroup,
            "ids": 0 if is_unlimited else most + RESERVED_IDS,
            "mounts": plan.mounts,
            "root": plan.root,
            "hostname": HOSTNAME,
            "masked": _masked(),
        }
    return _enter(way, {**outer, "parent": os.getpid()})


def _enter(way: str, plan: dict[str, Any], program: str = str(ENTER)) -> list[str]:
    return [sys.executable, "-I", "-S", program, way, json.dumps(plan)]


def _options(plan: Plan) -> list[str]:
    """Return bubblewrap's options."""
    options = [
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent"),
        *("--hostname", HOSTNAME, "--as-pid-1"),
    ]
    for kind, source, target in plan.mounts:
        if kind == "tmpfs":
            options += ["--size", source, "--perms", "0700", "--tmpfs", target]
        elif kind == "nothing":
            options += ["--size", "4096", "--tmpfs", target, "--remount-ro", target]
        else:
            name = {"read": "--ro-bind", "write": "--bind", "link": "--symlink"}[kind]
            options += [name, source, target]
    options += ["--proc", "/proc"]
    for name in _masked():
        options += ["--ro-bind", os.devnull, f"/proc/{name}"]
    options += ["--dev", "/dev", "--remount-ro", "/dev"]
    return [*options, "--size", str(64 << 20), "--tmpfs", "/dev/shm", "--remount-ro", "/", "--"]  # noqa: S108


def _masked() -> list[str]:
    """Return the files of `/proc` in whose place another is that holds nothing."""
    return [name for name in MASKED if Path("/proc", name).exists()]


def fault(way: Way, plan: Plan) -> str | None:
    """Try a way. Return why it does not work here, or None if it works. Blocks."""
    if way == "bubblewrap" and shutil.which("bwrap") is None:
        return "it is not installed"
    if way == "bubblewrap" and os.geteuid() == 0:
        return "as root, it leaves settings of the machine writable and processes without limit"
    try:
        tried = subprocess.run(  # noqa: S603 - our own program
            argv(way, plan),
            cwd=plan.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=TRY_TIMEOUT,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode == 0:
        return None
    lines = tried.stderr.strip().splitlines()
    return lines[-1] if lines else f"it exits with code {tried.returncode}"
