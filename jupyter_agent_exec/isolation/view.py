"""The part of the machine that an isolated kernel sees: only what is listed here."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import IsolationUnavailable
from ..kernels.confinement import SYSTEM

HOME = "/home/agent"
"""The kernel's home folder. It is in memory and ends with the kernel."""


class Mount(NamedTuple):
    """One path that the kernel sees."""

    kind: Literal["read", "write", "link", "tmpfs", "nothing"]
    source: str
    """The server's path; the target of a `link`, the size in bytes of a `tmpfs`."""
    target: str


class View:
    """Collects the paths that a kernel sees.

    Parameters
    ----------
    hidden
        Folders that the kernel must not see, even within folders that it sees.
    """

    def __init__(self, hidden: Iterable[Path]) -> None:
        self._hidden = [path.resolve() for path in hidden]
        self._mounts: dict[str, Mount] = {}
        self.installations: list[Path] = []
        """Folders outside of the system's own where visible programs are installed."""

    def mounts(self) -> list[Mount]:
        """Return all mounts, parent folders first."""
        shown = dict(self._mounts)
        for path in self._hidden:
            if self._is_shown(path) and path.is_dir():
                shown.setdefault(str(path), Mount("nothing", "", str(path)))
        return sorted(shown.values(), key=lambda mount: len(Path(mount.target).parts))

    def system(self) -> None:
        """Show the system's programs."""
        for path in map(Path, SYSTEM):
            if path.is_symlink() and path.resolve().is_relative_to("/usr"):
                self._add(Mount("link", os.readlink(path), str(path)))
            elif path.exists():
                self._add(Mount("read", str(path.resolve()), str(path)))

    def program(self, name: str) -> str:
        """Show where a program is installed; return its path.

        Raises
        ------
        IsolationUnavailable
            It does not exist, or cannot be shown without private files.
        """
        found = shutil.which(name)
        if found is None:
            raise IsolationUnavailable(f"The kernel's program {name!r} does not exist.")
        for path, prefix in _installed(Path(found).absolute()):
            if not self._is_shown(path):
                self._installation(prefix)
        return found

    def server_python(self) -> None:
        """Show the server's own Python, and the packages that its user installed."""
        for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix):
            self._installation(Path(prefix))
        self.program(sys.executable)
        if site.ENABLE_USER_SITE and os.path.isdir(site.getusersitepackages()):
            self._installation(Path(site.getusersitepackages()))

    def readable(self, path: Path) -> None:
        """Show a folder or a file under its own path, read-only."""
        real = path.resolve()
        if Path.home().resolve().is_relative_to(real):
            raise IsolationUnavailable(
                f"An isolated kernel would need to read all of {str(path)!r}, which holds the "
                "account's own files. Install what the kernel needs in another folder."
            )
        self._add(Mount("read", str(real), str(path)))
        if real != path:
            self._add(Mount("read", str(real), str(real)))

    def _installation(self, prefix: Path) -> None:
        if not self._is_shown(prefix):
            self.installations.append(prefix.resolve())
        self.readable(prefix)

    def writable(self, source: str, target: str) -> None:
        """Show a folder, writable."""
        self._add(Mount("write", source, target))

    def memory(self, target: str, size: int) -> None:
        """Make an empty folder in memory, of at most `size` bytes."""
        self._add(Mount("tmpfs", str(size), target))

    def file(self, source: str, target: str) -> None:
        """Show one file under another path, read-only."""
        self._add(Mount("read", source, target))

    def _add(self, mount: Mount) -> None:
        if mount.kind != "read" or not self._is_shown(Path(mount.target)):
            self._mounts.setdefault(mount.target, mount)

    def _is_shown(self, path: Path) -> bool:
        """Return whether a path is within a folder that is shown read-only."""
        return any(
            mount.kind in ("read", "link") and path.is_relative_to(mount.target)
            for mount in self._mounts.values()
        )


def _installed(program: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a program, the programs it links to, and a venv's Python, each with its prefix."""
    while True:
        in_bin = program.parent.name in ("bin", "sbin")
        prefix = program.parent.parent if in_bin else program.parent
        yield program, prefix
        if (bin_of_base := _home_of_venv(prefix / "pyvenv.cfg")) is not None:
            yield bin_of_base, bin_of_base.parent
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / os.readlink(program)))


def _home_of_venv(config: Path) -> Path | None:
    """Return the folder of the Python that made a venv; None if it is no venv."""
    if config.is_file():
        for line in config.read_text().splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                return Path(value.strip())
    return None


def environment(environ: Mapping[str, str], given: Collection[str]) -> dict[str, str]:
    """Return the environment variables that an isolated kernel gets.

    Parameters
    ----------
    given
        Names of the variables that the session or the kernelspec set for it.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name in given or name in _PASSED_ON or name.startswith("LC_")
    }
    home = {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh"}
    if site.ENABLE_USER_SITE:
        home["PYTHONUSERBASE"] = site.getuserbase()
    return {**kept, **home}


_PASSED_ON = frozenset(
    (
        *("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("LD_LIBRARY_PATH", "JAVA_HOME", "R_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED"),
    )
)
"""Variables that say where programs are and how they behave. No others are passed on."""
