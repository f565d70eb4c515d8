"""Starts a kernel's process where it is kept apart; signals, death and restarts stay Jupyter's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

from jupyter_client.connect import KernelConnectionInfo

from ...kernels.folder import Folder
from ..provisioner import LAUNCHER, FolderProvisioner, with_folder_last
from .view import HOME, View, environment
from .ways import CWD, ENTER, ENTER_INSIDE, HOSTNAME, IsolationLimits, Plan, Way, argv

LOG_BYTES = 4000
"""Of what a kernel's process said outside of its messages, for the server's log."""

CONNECTION_FILE = "/run/jupyter/kernel.json"
"""Where an isolated kernel finds its own; there is no other."""

LAUNCHER_INSIDE = "/run/jupyter/launcher.py"
"""Where an isolated kernel's Python finds it."""

_FILES = {
    "passwd": f"agent:x:{os.geteuid()}:{os.getegid()}::{HOME}:/bin/sh\n",
    "group": f"agent:x:{os.getegid()}:\n",
    "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Of /etc, for an isolated kernel."""


class Asked(NamedTuple):
    """What an isolated kernel is started with."""

    way: Way
    folder: Folder
    """Where it works, and all of this machine that it may write."""
    names: Collection[str]
    """Of the environment variables that the session sets."""
    limits: IsolationLimits
    view: Callable[[], View]
    """Makes what every isolated kernel sees."""


MOST_BYTES: Final = 70
"""Of the path of a folder for rooms: the address of a socket in one may have 107."""


class Room:
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
        for name, text in _FILES.items():
            (self.path / name).write_text(text)

    def plan(
        self,
        asked: Asked,
        command: list[str],
        *,
        connection_file: str | None = None,
        resource_dir: str | None = None,
    ) -> Plan:
        """Return how a command is run in it, a kernel with its connection file and kernelspec."""
        view = asked.view()
        limits = asked.limits
        for folder in ("/tmp", HOME):  # noqa: S108
            view.memory(folder, limits.disk_bytes or 1 << 30)
        view.file(str(ENTER), ENTER_INSIDE)
        view.file(str(LAUNCHER), LAUNCHER_INSIDE)
        if connection_file is not None:
            view.file(connection_file, CONNECTION_FILE)
        if resource_dir:
            view.readable(Path(resource_dir))
        for name in _FILES:
            view.file(str(self.path / name), f"/etc/{name}")
        folder = str(asked.folder.path)
        view.writable(str(self.sockets), str(self.sockets))
        view.writable(CWD, folder)
        return Plan(
            command=[view.program(command[0]), *command[1:]],
            cwd=folder,
            identity=asked.folder.identity,
            mounts=view.mounts(),
            root=str(self.root),
            limits=limits,
        )

    def said(self) -> str:
        """Return the end of what the kernel's process said outside of its messages."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return log.read().decode(errors="replace").strip()

    def remove(self) -> None:
        """Remove it all."""
        shutil.rmtree(self.path, ignore_errors=True)


class IsolatedProvisioner(FolderProvisioner):
    """Starts a kernel's process apart from the server, which it reaches by UNIX sockets alone."""

    def __init__(self, asked: Asked, manager: Any) -> None:
        super().__init__(asked.folder, manager)
        self._asked = asked
        self._room: Room | None = None
        self._ended_by_us = False

    @staticmethod
    def exit_code(code: int) -> int:
        """Return the kernel's exit code, negative for a signal, from that of its outer process."""
        return 128 - code if 128 < code <= 128 + 64 else code

    async def poll(self) -> int | None:
        """Return the kernel's exit code; None while it runs."""
        code = await super().poll()
        return None if code is None else self.exit_code(code)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Have the server and the kernel meet at sockets in a folder of their own."""
        if self._room is None:
            self._room = Room()
            self._manager.transport = "ipc"
            self._manager.ip = str(self._room.sockets / "k")
        kwargs["env"] = environment(kwargs.get("env") or os.environ, self._asked.names)
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel's process."""
        assert self._room is not None
        connection_file = str(self._manager.connection_file)
        real = os.path.realpath(connection_file)  # noqa: ASYNC240 - as Jupyter formats it
        cmd = with_folder_last(cmd, LAUNCHER_INSIDE)
        cmd = [part.replace(real, CONNECTION_FILE) for part in cmd]
        plan = self._room.plan(
            self._asked,
            cmd,
            connection_file=connection_file,
            resource_dir=self.kernel_spec.resource_dir,
        )
        with self._room.log.open("ab") as log:
            launched = await super().launch_kernel(
                argv(self._asked.way, plan),
                **{
                    **kwargs,
                    "stdin": subprocess.DEVNULL,
                    "stdout": log,
                    "stderr": log,
                    # Its parent is another there: it would end when it is told to look for ours.
                    "independent": True,
                },
            )
        self._ended_by_us = False
        return launched

    async def shutdown_requested(self, restart: bool = False) -> None:
        """Take note that the kernel's end is wanted."""
        self._ended_by_us = True
        await super().shutdown_requested(restart=restart)

    async def kill(self, restart: bool = False) -> None:
        """End the kernel's process and all that it started."""
        self._ended_by_us = self._ended_by_us or await self.poll() is None
        await super().kill(restart=restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove what was made for the kernel's process."""
        await super().cleanup(restart=restart)
        if self._room is not None and not restart:
            if not self._ended_by_us and (said := self._room.said()):
                self.log.info("Isolated kernel %s said: %r", self.kernel_id, said)
            self._room.remove()
            self._room = None
