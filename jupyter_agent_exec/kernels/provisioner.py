"""A kernel provisioner: it starts a kernel in one folder, whose modules are imported last."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Instance

from .folder import Folder

LAUNCHER: Final = Path(__file__).with_name("in_kernel") / "launcher.py"

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*(\.exe)?", re.IGNORECASE)
_OPEN_FILES: Final = "/proc/self/fd"


class FolderProvisioner(LocalProvisioner):
    """Starts a kernel's process, at first and at each restart, in a folder that is held open."""

    folder: Folder | None = Instance(Folder, allow_none=True)  # type: ignore[assignment]
    """The folder to start in, checked at each start; None: Jupyter's choice."""

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
