"""A small disk that only one server sees, and how it is filled."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tests.server_process import ServerProcess

OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")
MOUNT = 'mount -t tmpfs -o "$0" none "$1" && shift && exec "$@"'


def mounting(options: str, folder: Path) -> tuple[str, ...]:
    """Return what runs a command that alone sees a disk of its own at `folder`."""
    return (*OWN_MOUNTS, "sh", "-c", MOUNT, options, str(folder))


def as_seen_by(server: ServerProcess, path: Path) -> Path:
    """Return where a path of the server's is for us."""
    return Path(f"/proc/{server.process.pid}/root{path}")


def fill(server: ServerProcess, folder: Path) -> Path:
    """Write until no byte fits any more.

    The index has taken in everything before: where it fails, it gives room back.
    """
    server.get("search?q=everything")
    filler = folder / "filler"
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    os.write(fd, bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    finally:
        os.close(fd)
    return filler
