"""A kernel as an agent session holds it, whether it is the session's own or a person's."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..types import RestartReason
from .connection import KernelConnection
from .turns import Turns


class Death(NamedTuple):
    """How one life of a kernel ended."""

    reason: RestartReason
    message: str


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

    async def take(self) -> Kernel:
        """Return the kernel for what comes next.

        Raises
        ------
        KernelUnavailable, KernelNotFound
            There is none.
        """
