"""A kernel as an agent session holds it, whether it is the session's own or a person's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..kernels.folder import Folder
from ..types import RestartReason
from .connection import KernelConnection
from .kernel_queue import Turns


class Death(NamedTuple):
    """How one life of a kernel ended."""

    reason: RestartReason
    message: str


class WorkingFolder(NamedTuple):
    """Where a kernel works, on this machine."""

    folder: Folder
    document: str | None = None
    """Name of the notebook there that the kernel is for."""

    @property
    def path(self) -> Path:
        """Its path, without links."""
        return self.folder.path


class Kernel(Protocol):
    """One life of a running kernel: after its end there is another of these, or none."""

    id: str
    name: str
    """Of its kernelspec."""
    owned: bool
    """Whether it is the session's own: only then may it be replaced, culled, or shut down."""
    connection: KernelConnection
    turns: Turns
    """The queue before it, which all sessions that hold it share."""

    @property
    def display_name(self) -> str:
        """The kernelspec's name for people."""

    @property
    def language_info(self) -> dict[str, Any]:
        """As the kernel tells it; empty until it has."""

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or somebody is ending it: what is sent now may never run."""

    async def interrupt(self) -> None:
        """Interrupt what runs in it."""

    async def death(self) -> Death:
        """Wait until this life ends, and tell how."""

    async def let_go(self) -> None:
        """Hold it no more: one of the session's own is shut down, a person's is left as it is."""


class KernelSource(Protocol):
    """Where a session's kernels come from."""

    @property
    def folder(self) -> WorkingFolder | None:
        """Where they work; None if that is not known, or not on this machine."""

    async def take(self) -> Kernel:
        """Return the kernel for what comes next.

        Raises
        ------
        KernelUnavailable, KernelNotFound, IsolationUnavailable
            There is none.
        """

    async def release(self) -> None:
        """Give up what the kernels had beside themselves; the last of them has been let go."""
