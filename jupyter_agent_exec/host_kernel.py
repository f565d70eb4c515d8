"""Finds the kernel in which this program runs, if any. The client sends it with each request.

A cell that waits for code in its own kernel would wait for ever. The server can only prevent that
if it knows who asks. What is told is the kernel's id, and a proof that only a program can make that
could run code in the kernel anyway: it needs the kernel's connection file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HEADER: Final = "Agent-Exec-Host-Kernels"
"""The request header: ``<kernel id>=<proof>``, several with commas, the innermost first."""

_CONNECTION_FILE: Final = re.compile(r"kernel-(?P<id>[\w-]+)\.json")
_MOST_ANCESTORS: Final = 50


def proof(kernel_id: str, key: str | bytes) -> str:
    """Return a proof that this program knows a kernel's key, without the key itself."""
    key = key.encode() if isinstance(key, str) else key
    return hmac.new(key, f"host kernel {kernel_id}".encode(), hashlib.sha256).hexdigest()


def host_kernels() -> str:
    """Return the header's value for this process; empty if it runs in no kernel.

    It runs in a kernel when it is the kernel, or a kernel started it, however indirectly.
    """
    told: dict[str, str] = {}
    for file in _connection_files():
        found = _CONNECTION_FILE.fullmatch(file.name)
        try:
            key = json.loads(file.read_text(encoding="utf-8"))["key"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another kind of file of that name, or it is gone
        if found is not None and isinstance(key, str):
            told.setdefault(found["id"], proof(found["id"], key))
    return ",".join(f"{id}={shown}" for id, shown in told.items())


def _connection_files() -> Iterator[Path]:
    """Yield what may be connection files of this process and those above it."""
    application = sys.modules.get("ipykernel.kernelapp")
    if application is not None and application.IPKernelApp.initialized():
        yield Path(application.IPKernelApp.instance().abs_connection_file)
    for arguments in _command_lines():
        for argument in arguments:
            path = Path(argument.rpartition("=")[2])
            if _CONNECTION_FILE.fullmatch(path.name):
                yield path


def _command_lines() -> Iterator[list[str]]:
    """Yield the arguments of this process, of the one that started it, and so on."""
    proc = Path("/proc")
    listed = None if (proc / "self/stat").exists() else _listed_processes()
    pid = os.getpid()
    for _ in range(_MOST_ANCESTORS):
        try:
            if listed is None:
                arguments = (proc / f"{pid}/cmdline").read_bytes().split(b"\0")
                yield [os.fsdecode(each) for each in arguments]
                # The name before it may hold anything, also a parenthesis.
                stat = (proc / f"{pid}/stat").read_text(encoding="utf-8", errors="replace")
                pid = int(stat.rpartition(")")[2].split()[1])
            else:
                pid, arguments_line = listed[pid]
                yield arguments_line.split()
        except (OSError, KeyError):
            return
        if pid <= 1:
            return


def _listed_processes() -> dict[int, tuple[int, str]]:
    """Return parent and command line of each process, where there is no ``/proc``."""
    if os.name == "nt" or "JPY_PARENT_PID" not in os.environ:  # which Jupyter's kernels have
        return {}
    asked = ["ps", "-A", "-o", "pid=,ppid=,args="]
    try:
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = (line.split(None, 2) for line in lines.splitlines())
    return {int(row[0]): (int(row[1]), row[2]) for row in rows if len(row) == 3}
