"""A kernel provisioner that isolates kernels. Jupyter handles signals, death and restarts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_core.paths import jupyter_config_path, jupyter_data_dir, jupyter_runtime_dir
from traitlets import Enum, Instance, Int, List, Tuple, Unicode

from ..errors import IsolationUnavailable
from ..kernels.folder import Folder
from ..kernels.provisioner import FolderProvisioner, with_folder_last
from .sandbox import (
    CONNECTION_FILE,
    LAUNCHER_INSIDE,
    WAYS,
    IsolationLimits,
    Sandbox,
    SandboxFiles,
    Way,
    argv,
)
from .view import environment

_DEFAULT = IsolationLimits()


class IsolatedProvisioner(FolderProvisioner):
    """Starts an isolated kernel. This process and the kernel are connected by UNIX sockets only.

    Any Jupyter application uses it for kernelspecs that name it, with the traits below::

        "metadata": {"kernel_provisioner": {"provisioner_name": "isolated-provisioner",
                                            "config": {"memory_bytes": 4294967296}}}

    Such a kernel works in the folder that the application starts it in.
    """

    way = Enum(
        ("auto", *WAYS),
        "auto",
        config=True,
        help="With `bubblewrap`, with `unshare`, or with the first of them that works (`auto`).",
    )
    memory_bytes = Int(
        _DEFAULT.memory_bytes,
        min=0,
        config=True,
        help="Bytes of address space for each process; 0: no limit.",
    )
    cpu_seconds = Int(
        _DEFAULT.cpu_seconds,
        min=0,
        config=True,
        help="Seconds of processor time for each process, over its whole life; 0: no limit.",
    )
    processes = Int(
        _DEFAULT.processes,
        min=0,
        config=True,
        help="Processes and threads, all together; 0: no limit.",
    )
    disk_bytes = Int(
        _DEFAULT.disk_bytes,
        min=0,
        config=True,
        help="""Bytes of each file, and of each in-memory folder; 0: no limit for a file, 1 GiB for
        each in-memory folder.""",
    )
    readable = List(
        Unicode(),
        config=True,
        help="Absolute paths of folders and files, such as data, that the kernel may read.",
    )
    sandbox: Sandbox | None = Instance(Sandbox, allow_none=True)  # type: ignore[assignment]
    """The kernel's paths and resources; None to use the traits above."""
    env_names: Collection[str] = Tuple()  # type: ignore[assignment]
    """Names of environment variables that this kernel gets in addition to the usual ones."""
    is_isolated = True
    _files: SandboxFiles | None = None
    _ended_by_us = False

    @staticmethod
    def exit_code(code: int) -> int:
        """Return a kernel's exit code, given that of its outer process; negative for a signal."""
        return 128 - code if 128 < code <= 128 + 64 else code

    async def poll(self) -> int | None:
        """Return the kernel's exit code; None while it runs."""
        code = await super().poll()
        return None if code is None else self.exit_code(code)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Connect this process and the kernel by sockets in a folder of their own."""
        if self.sandbox is None:
            self._take_traits(Path(kwargs.get("cwd") or Path.cwd()))
        assert self.sandbox is not None
        await self.sandbox.way()  # before there are files that nobody would remove
        if self._files is None:
            self._files = self.sandbox.files()
            manager: Any = self.parent
            manager.transport = "ipc"
            manager.ip = str(self._files.sockets / "k")
        kwargs["env"] = environment(kwargs.get("env") or os.environ, self.env_names)
        return await super().pre_launch(**kwargs)

    def _take_traits(self, cwd: Path) -> None:
        """Configure a kernel that no agent session starts from its kernelspec."""
        sandbox = Sandbox(
            IsolationLimits(
                memory_bytes=self.memory_bytes,
                cpu_seconds=self.cpu_seconds,
                processes=self.processes,
                disk_bytes=self.disk_bytes,
            ),
            private=[
                Path(path)
                for path in (jupyter_runtime_dir(), jupyter_data_dir(), *jupyter_config_path())
            ],
            readable=[Path(path) for path in self.readable],
            ways=WAYS if self.way == "auto" else [cast(Way, self.way)],
        )
        folder = Folder(cwd, ())
        found = sandbox.found_in(folder.path, self.kernel_spec.argv[0])
        if found is not None:
            raise IsolationUnavailable(
                f"An isolated kernel may not work in {str(cwd)!r}: it would reach {found}."
            )
        self.sandbox, self.folder = sandbox, folder
        self.env_names = tuple(self.kernel_spec.env)

    async def launch_kernel(self, cmd: list[str], **kwargs: object) -> KernelConnectionInfo:
        """Start the kernel's process."""
        assert self.sandbox is not None
        assert self._files is not None
        assert self.folder is not None
        way = await self.sandbox.way()
        manager: Any = self.parent
        connection_file = str(manager.connection_file)
        real = os.path.realpath(connection_file)  # noqa: ASYNC240 - as Jupyter formats it
        cmd = with_folder_last(cmd, LAUNCHER_INSIDE)
        plan = self.sandbox.plan(
            self._files,
            self.folder,
            [part.replace(real, CONNECTION_FILE) for part in cmd],
            connection_file=connection_file,
            resource_dir=self.kernel_spec.resource_dir,
        )
        with self._files.log.open("ab") as log:
            launched = await super().launch_kernel(
                argv(way, plan),
                **{
                    **kwargs,
                    "stdin": subprocess.DEVNULL,
                    "stdout": log,
                    "stderr": log,
                    # Else the kernel would look for this process as its parent, and end.
                    "independent": True,
                },
            )
        self._ended_by_us = False
        return launched

    async def shutdown_requested(self, restart: bool = False) -> None:
        """Note that the kernel's end was requested."""
        self._ended_by_us = True
        await super().shutdown_requested(restart=restart)

    async def kill(self, restart: bool = False) -> None:
        """End the kernel's process and all processes that it started."""
        self._ended_by_us = self._ended_by_us or await self.poll() is None
        await super().kill(restart=restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the files that were made for the kernel's process."""
        await super().cleanup(restart=restart)
        if self._files is not None and not restart:
            if not self._ended_by_us and (written := self._files.end_of_log()):
                self.log.info("Isolated kernel %s wrote: %r", self.kernel_id, written)
            files, self._files = self._files, None
            await asyncio.to_thread(files.remove)
