"""What isolated kernels see and may use, and the command that keeps one apart.

bubblewrap does that, or the system's own namespaces without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ...errors import IsolationUnavailable
from ..folder import Folder, Identity
from ..provisioner import LAUNCHER
from .view import HOME, Mount, View

Way = Literal["bubblewrap", "unshare"]

ENTER = Path(__file__).with_name("enter.py")
ENTER_INSIDE = "/run/jupyter/enter.py"
"""Where a program finds it that does not see where we are installed."""
HOSTNAME = "isolated"
CWD = "."
"""As the source of a mount: the folder that the command is run in, to which no path leads that
somebody could change meanwhile."""
TRY_TIMEOUT = 30.0
"""Seconds within which a way has shown whether it works."""

WAYS: Final[Sequence[Way]] = ("bubblewrap", "unshare")

PACKAGE: Final = Path(__file__).resolve().parents[2]
"""Where our own programs are."""

CONNECTION_FILE: Final = "/run/jupyter/kernel.json"
"""Where an isolated kernel finds its own; there is no other."""

LAUNCHER_INSIDE: Final = "/run/jupyter/launcher.py"
"""Where an isolated kernel's Python finds it."""

MOST_BYTES: Final = 70
"""Of the path of a folder for sockets: the address of one may have 107."""

LOG_BYTES: Final = 4000
"""Of what a kernel's process wrote outside of its messages, for the server's log."""

_ETC: Final = {
    "passwd": f"agent:x:{os.geteuid()}:{os.getegid()}::{HOME}:/bin/sh\n",
    "group": f"agent:x:{os.getegid()}:\n",
    "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files of /etc, for an isolated kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationLimits:
    """What an isolated kernel may use. 0: any."""

    memory_bytes: int = 8 << 30
    """Of address space, for each process."""
    cpu_seconds: int = 3600
    """Of processor time, for each process in all its life."""
    processes: int = 512
    """Processes and threads, all together."""
    disk_bytes: int = 1 << 30
    """Of each file, and of all in the private folders in memory."""

    @property
    def resources(self) -> dict[str, int]:
        """By the names of Python's `resource`."""
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
    """Where it works; whoever runs the command goes to that folder first."""
    identity: Identity | None
    """Which folder that is; None for any."""
    mounts: Sequence[Mount]
    root: str
    """An empty folder that the program's root may be put together in."""
    limits: IsolationLimits


class SandboxFiles:
    """Files of the server's for one isolated kernel.

    The folder of its sockets is the only one that the two share beside the kernel's own.
    """

    def __init__(self) -> None:
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > MOST_BYTES:
            place = "/tmp"  # noqa: S108
        self.path = Path(tempfile.mkdtemp(prefix="agent-exec-kernel-", dir=place))
        self.sockets = self.path / "s"
        self.root = self.path / "root"
        self.log = self.path / "log"
        for folder in (self.sockets, self.root):
            folder.mkdir(mode=0o700)
        for name, text in _ETC.items():
            (self.path / name).write_text(text)

    def end_of_log(self) -> str:
        """Return the end of what the kernel's process wrote outside of its messages."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return log.read().decode(errors="replace").strip()

    def remove(self) -> None:
        """Remove it all."""
        shutil.rmtree(self.path, ignore_errors=True)


class Sandbox:
    """What all isolated kernels see and may use.

    Parameters
    ----------
    limits
        For each kernel.
    private
        Folders of the server's own: they are not shown, and no isolated kernel works in them.
    root_dir
        The folder that the server serves, if it serves one; of it only the folder that a kernel
        works in is shown.
    readable
        What kernels may read beside the system's programs, Python and their own program.
    ways
        What to try, in this order.
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

    async def way(self) -> Way:
        """Return the way that works here, tried once; IsolationUnavailable if none does."""
        async with self._lock:
            if self._way is not None:
                return self._way
            self._way = way = await asyncio.to_thread(self._try)
            return way

    def found_in(self, folder: Path, program: str) -> str | None:
        """Return what a kernel must not find that would find it in a folder; None for nothing.

        That is what is private, and what others run or are shown, which it could replace.

        Parameters
        ----------
        folder
            Its path without links, which is not looked up here: what stands there may change.
        program
            The kernel's; it is shown.

        Raises
        ------
        IsolationUnavailable
            The kernel's program cannot be shown.
        """
        view = self._view()
        view.program(program)
        readable = [path.resolve() for path in self._readable]
        # Whether a folder may not be within these, and what they are. None may hold them.
        barred = [
            ([Path.home().resolve()], False, "the account's home folder"),
            (self._private, True, "folders of the server's own"),
            ([*view.installations, PACKAGE], True, "programs that the server or kernels run"),
            (
                [path for path in readable if path != folder],
                False,
                "what all such kernels may read",
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
        """Return how a command is run, a kernel with its connection file and kernelspec.

        Parameters
        ----------
        folder
            Where it works, and all of this machine that it may write.
        """
        view = self._view()
        for in_memory in ("/tmp", HOME):  # noqa: S108
            view.memory(in_memory, self._limits.disk_bytes or 1 << 30)
        view.file(str(ENTER), ENTER_INSIDE)
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
        files = SandboxFiles()
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
    """Return the command that runs a program so."""
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
        outer = {
            **within,
            "mounts": plan.mounts,
            "root": plan.root,
            "hostname": HOSTNAME,
            "processes": plan.limits.processes,
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
    options += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    return [*options, "--size", str(64 << 20), "--tmpfs", "/dev/shm", "--remount-ro", "/", "--"]  # noqa: S108


def fault(way: Way, plan: Plan) -> str | None:
    """Try a way; return why it does not work here, None if it does. Blocks."""
    if way == "bubblewrap" and shutil.which("bwrap") is None:
        return "it is not installed"
    if way == "bubblewrap" and os.geteuid() == 0:
        return "it leaves root settings of the machine to write, and no limit on processes"
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
