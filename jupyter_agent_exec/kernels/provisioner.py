"""A kernel provisioner: it starts a kernel in one folder, whose modules are imported last."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Instance

from ..errors import IsolationUnavailable
from ..types import IsolationMode
from .folder import Folder

LAUNCHER: Final = Path(__file__).with_name("in_kernel") / "launcher.py"

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*(\.exe)?", re.IGNORECASE)
_OPEN_FILES: Final = "/proc/self/fd"


class FolderProvisioner(LocalProvisioner):
    """Starts a kernel's process, at first and at each restart, in a folder that is held open."""

    folder: Folder | None = Instance(Folder, allow_none=True)  # type: ignore[assignment]
    """The folder to start in, checked at each start; None: Jupyter's choice."""
    is_isolated: ClassVar[bool] = False
    """Whether its kernels are isolated from this process."""

    @staticmethod
    def exit_code(code: int) -> int:
        """Return a kernel's exit code, given that of its process; negative for a signal."""
        return code

    async def launch_kernel(self, cmd: list[str], **kwargs: object) -> KernelConnectionInfo:
        """Start the process.

        Raises
        ------
        FolderGone
            Its folder is missing or was replaced.
        """
        cmd = with_folder_last(cmd, str(LAUNCHER))
        if self.folder is None:
            return await super().launch_kernel(cmd, **kwargs)
        descriptor = self.folder.open()
        try:
            # The process enters the folder by its descriptor, and does not keep it.
            cwd = f"{_OPEN_FILES}/{descriptor}" if os.path.isdir(_OPEN_FILES) else None  # noqa: ASYNC240
            path = str(self.folder.path)
            launched = await super().launch_kernel(cmd, **{**kwargs, "cwd": cwd or path})
        finally:
            os.close(descriptor)
        self.cwd = path
        return launched


class Isolation:
    """Starts isolated kernels. This one refuses to: a leaf has one that does."""

    mode: IsolationMode = "off"
    """Whether scratch kernels may be isolated, must be, or must not."""

    def check_allowed(self, kernel_spec: Any) -> None:
        """Raise IsolationUnavailable if no kernel of this kernelspec may be isolated."""
        raise IsolationUnavailable(
            "target.isolated: this server cannot isolate kernels: a part of its installation is "
            "missing.",
            field="target.isolated",
        )

    def check_folder(self, folder: Path, kernel_spec: Any) -> None:
        """Check that a kernel may work in a folder and write to everything in it.

        Parameters
        ----------
        folder
            Its path without links. It is not resolved here, because it may change meanwhile.

        Raises
        ------
        InvalidRequest
            The folder has private files, or files that others run or read.
        IsolationUnavailable
            The kernel's program cannot be shown.
        """

    async def start(
        self, start: Callable[[], Awaitable[str]], folder: Folder, env: Mapping[str, str]
    ) -> str:
        """Start a kernel that is isolated; return its id.

        Parameters
        ----------
        start
            Makes the server's kernel manager start the kernel.
        folder
            Its working folder, held open.
        env
            The environment variables that the session sets.

        Raises
        ------
        IsolationUnavailable
        """
        raise NotImplementedError


def folder_provisioner(
    folder: Folder | None, kernel_id: str, kernel_spec: Any, parent: Any
) -> FolderProvisioner:
    """Return the provisioner of a kernel that starts in a folder."""
    return FolderProvisioner(
        kernel_id=kernel_id, kernel_spec=kernel_spec, parent=parent, folder=folder
    )


def with_folder_last(command: Sequence[str], launcher: str) -> list[str]:
    """Return a command that runs a Python module without importing from its working folder.

    Parameters
    ----------
    launcher
        Path of our `launcher.py` for the command.
    """
    for index, argument in enumerate(command):
        if _PYTHON.fullmatch(os.path.basename(argument)):
            for option in range(index + 1, len(command)):
                if command[option] == "-m":
                    return [*command[:option], launcher, *command[option + 1 :]]
                is_value = command[option - 1] in ("-W", "-X")
                if not is_value and not command[option].startswith("-"):
                    break
    return list(command)
