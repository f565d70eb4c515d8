"""The ways to isolate a program: bubblewrap, or the system's own namespaces without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...kernels.folder import Identity
from .view import Mount

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


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationLimits:
    """What an isolated kernel may use. 0: any."""

    memory_bytes: int
    """Of address space, for each process."""
    cpu_seconds: int
    """Of processor time, for each process in all its life."""
    processes: int
    """Processes and threads, all together."""
    disk_bytes: int
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
