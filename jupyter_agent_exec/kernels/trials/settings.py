"""Whether trials can be had here, and what a kernel's copy may read and use."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ...errors import TrialUnavailable
from ..confinement import ARCHITECTURES, SYSTEM, landlock_abi
from ..kernel import Kernel

NO_TRIAL = "A trial is not possible here"
INSTEAD = "Nothing was run. Run the code itself, with trial=false: then it can change something."


def fault() -> str | None:
    """Return why this machine cannot seal a copy of a kernel; None if it can."""
    if not sys.platform.startswith("linux"):
        return "Trials need Linux."
    if os.uname().machine not in ARCHITECTURES:
        return f"Trials are not made for this processor, {os.uname().machine}."
    if landlock_abi() < 1:
        return "Trials need Landlock: Linux 5.13 or later, where it is not switched off."
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(22, 2, None, 0, 0)  # a filter that is nowhere: EFAULT if there can be filters
    if ctypes.get_errno() != errno.EFAULT:
        return "Trials need seccomp, which this Linux does not have."
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSettings:
    """What an operator decides about trials."""

    is_on: bool
    previews: bool
    """Whether code that waits for approval is tried, to show the user what it does."""
    memory_bytes: int
    """The most memory that a copy may add to the kernel's."""
    root: Path
    """The folder that the server serves, which copies may read."""
    allow_hidden: bool
    """Whether copies may read hidden files in folders within it, as Jupyter lets users."""
    hidden: Collection[Path]
    """Folders that copies may not read, even within others."""

    def fault(self, kernel: Kernel | None) -> str | None:
        """Return why a kernel cannot be copied, as far as it is known; None if it can."""
        why = fault() if self.is_on else "The operator of this server has switched off trials."
        if why is not None or kernel is None:
            return why
        if kernel.is_elsewhere:
            return "The kernel may run on another machine, where it cannot be copied."
        if kernel.is_isolated:
            return "An isolated kernel cannot be copied."
        if kernel.connection.kernel_info and not kernel.connection.inspector.is_python:
            return f"Only Python's kernel (ipykernel) can be copied; this one is {kernel.name!r}."
        return None

    def check(self, kernel: Kernel | None) -> None:
        """Raise TrialUnavailable if it is known that a kernel cannot be copied."""
        why = self.fault(kernel)
        if why is not None:
            raise TrialUnavailable(f"{why} {INSTEAD}", field="trial")

    def plan(self) -> dict[str, object]:
        """Return the part of a copy's plan that is the same for all."""
        return {
            "memory_bytes": self.memory_bytes,
            "root": str(self.root),
            "allow_hidden": self.allow_hidden,
            "hidden": [str(path) for path in self.hidden],
            "system": list(SYSTEM),
        }
