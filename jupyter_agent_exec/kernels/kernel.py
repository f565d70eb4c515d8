"""A kernel as an agent session holds it, and how one life of it ends.

The end of the connection shows that a kernel ended, but not whether it died or somebody ended it.
The server restarts a kernel in place, with the same id and often the same ports, and an autorestart
would hide its death. So this module looks at its process, its manager and the server's list.
"""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future as ThreadFuture
from contextlib import suppress
from typing import Any, ClassVar, Final, Literal

from ..errors import KernelUnavailable, KernelWaitsForItself
from ..tasks import first_of
from .channels import KernelDeath
from .connection import KernelConnection
from .folder import Folder
from .inspection import Question, Unanswered
from .kernel_queue import KernelQueue, Requester
from .provisioner import FolderProvisioner
from .server_kernels import RemoteKernel, ServerKernels, is_elsewhere

TURN_TIMEOUT: Final = 2.0
"""Seconds to wait for a turn on a kernel that was idle a moment ago."""

BUSY_TIMEOUT: Final = 0.2
"""Seconds to wait for a busy kernel. It may only be handling a page's request as the user types."""

WAITS_FOR_ITSELF: Final = (
    "The program that asks runs in this kernel itself, and the kernel runs code: if the code waits "
    "for the program, each would wait for the other. Leave out notebook= and kernel_id=, in an "
    "adapter's target too, to run it in a kernel of its own, or run your program outside of this "
    "kernel, such as in a terminal."
)


class KernelOccupied(Exception):
    """The kernel is busy for others, and cannot answer now."""


class Kernel(ABC):
    """One life of a running kernel. Its next life is another object.

    Parameters
    ----------
    turns
        Its queue, which all sessions that hold it share.
    """

    owned: ClassVar[bool]
    """Whether the session owns it. Only then may the session replace, cull, or shut it down."""

    def __init__(self, kernels: ServerKernels, life: KernelLife, turns: KernelQueue) -> None:
        self._kernels = kernels
        self._life = life
        self.turns = turns
        self.connection = life.connection
        self.id = life.connection.kernel_id
        self.name = life.connection.kernel_name
        """The name of its kernelspec."""
        self.display_name = life.display_name
        """The kernelspec's name for people."""
        self.is_elsewhere = life.is_elsewhere
        """Whether it may run on another machine, where this machine's files are not."""
        self.is_isolated = life.is_isolated
        """Whether it is isolated from this server."""
        self.life = life.mark
        """Stands for this life of the kernel, also for sessions that come when all others have
        left."""

    @property
    def language_info(self) -> dict[str, Any]:
        """The `language_info` of its kernel info; empty until known."""
        info: dict[str, Any] = self.connection.kernel_info.get("language_info", {})
        return info

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or is being ended, so that code sent now may never run."""
        return self._life.is_ending

    async def interrupt(self) -> None:
        """Interrupt the code that runs in it, also if others run it."""
        await self._kernels.interrupt_kernel(self.id)
        self.connection.interrupted()

    async def ask(
        self, question: Question, asker: Requester, check: Callable[[], None] = lambda: None
    ) -> Any:
        """Send a question: to a subshell if possible, otherwise when the kernel is idle.

        Parameters
        ----------
        check
            Called just before the question is sent. If it raises, the question is not sent.

        Raises
        ------
        KernelOccupied
            The kernel is busy.
        Unanswered, KernelUnavailable
        """
        inspector = self.connection.inspector
        if inspector.asks_aside:
            check()
            return await inspector.ask(question, aside=True)
        timeout = TURN_TIMEOUT if self._is_free() else BUSY_TIMEOUT
        turn = self.turns.ask(asker)
        try:
            await first_of(turn, timeout=timeout)
            if turn.cancelled() or not turn.done():
                raise KernelOccupied
            check()
            return await inspector.ask(question, aside=False)
        except Unanswered:
            if inspector.is_at_ours:  # otherwise the next request would wait for it
                await self.interrupt()
            raise
        finally:
            self.turns.leave(turn)

    def _is_free(self) -> bool:
        """Return whether it is idle, or will be in a moment."""
        behind = self.turns.at_work
        if behind is not None and behind.who == "agent" and behind.execution_id is None:
            return True  # another inspection is running
        return not self.turns.is_taken and self.connection.execution_state == "idle"

    async def check_not_waiting(self, host_kernels: Mapping[str, str]) -> None:
        """Check that code which a program submits would not wait for the program itself.

        Parameters
        ----------
        host_kernels
            The program's proofs for the kernels in which it runs
            (`jupyter_agent_exec.host_kernel`).

        Raises
        ------
        KernelWaitsForItself
            The program runs in the kernel, and so does other code, which may wait for the program.
        """
        proof = host_kernels.get(self.id)
        if proof is None or not self.connection.is_host(proof):
            return
        if self.connection.activity.quiet is not None:
            # The start of its cell may not be heard yet.
            with suppress(Unanswered, KernelUnavailable):
                await self.connection.inspector.catch_up()
        if self.connection.activity.quiet is None:
            raise KernelWaitsForItself(WAITS_FOR_ITSELF, kernel_id=self.id)

    @abstractmethod
    async def death(self) -> KernelDeath:
        """Wait until this life ends, and return how."""

    @abstractmethod
    async def let_go(self) -> None:
        """Release it: shut down a session's own kernel, leave a user's kernel running."""


class KernelSource(ABC):
    """Provides a session's kernels."""

    path: str | None = None
    """Current contents path of the notebook that they are of; None if they are of none."""
    is_elsewhere = False
    """Whether the last kernel may run on another machine."""

    @property
    def folder(self) -> Folder | None:
        """Their working folder; None if it is unknown, or not on this machine."""
        return None

    @abstractmethod
    async def take(self) -> Kernel:
        """Return the kernel for the next execution.

        Raises
        ------
        KernelUnavailable, KernelNotFound, IsolationUnavailable
            There is none.
        """

    async def parted(self, kernel: Kernel) -> KernelDeath | None:
        """Return why a kernel is not the session's any more; None if it still is."""
        return None

    async def explain(self, kernel: Kernel, death: KernelDeath) -> KernelDeath:
        """Return how a kernel ended, with more detail if Jupyter has any."""
        return death

    async def release(self) -> None:  # noqa: B027 -- not all have something to clean up
        """Clean up after all kernels have been released."""


EXIT_DELAYS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""Seconds between checks of the exit code of a kernel whose connection is gone. Sockets close a
moment before the process ends, and no portable call reports the end without reaping the process."""

LOOK_SECONDS = 5.0
"""Time between checks of a kernel on another machine. If that machine or the network is gone, the
connection does not end."""

TRANSITION_TIMEOUT = 60.0
"""Seconds within which a shutdown, or the start after it, must end."""


class KernelLife:
    """One life of a kernel, and how it ends.

    Parameters
    ----------
    manager
        The server's manager of this kernel.
    """

    def __init__(self, kernels: ServerKernels, manager: Any, connection: KernelConnection) -> None:
        self._kernels = kernels
        self._manager = manager
        self.connection = connection
        self.display_name: str = manager.kernel_spec.display_name
        self.is_elsewhere = is_elsewhere(manager)
        self._ready = manager.ready
        """The manager makes a new one for each start and each shutdown."""
        self.mark: object = self if isinstance(manager, RemoteKernel) else self._ready
        """Stands for this life, also for who connects later. Nothing tells the lives of a kernel at
        a gateway apart, so there each connection counts as a life."""
        self._process = manager.provisioner
        self._ours = self._process if isinstance(self._process, FolderProvisioner) else None
        self.is_isolated = self._ours is not None and self._ours.is_isolated
        self._popen = None if self.is_elsewhere else self._process.process
        """The process of a local kernel. It keeps the exit code after the provisioner's cleanup."""
        self._restarter: Literal["restart", "dead"] | None = None
        self._callbacks: list[tuple[Callable[[], None], str]] = []

    @property
    def is_over(self) -> bool:
        """Whether it is known to have ended, without waiting."""
        return self.connection.disconnected.done() or self._is_another()

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or the server is ending it.

        A shutdown begins with an interrupt, so that the kernel is idle for a moment before it ends.
        """
        return self.connection.disconnected.done() or bool(self._manager.shutting_down)

    def watch(self) -> None:
        """Watch the server's restarter for a death that the connection does not show."""
        for event in ("restart", "dead"):
            self._callbacks.append((self._told_by_restarter(event), event))
            self._manager.add_restart_callback(*self._callbacks[-1])

    def unwatch(self) -> None:
        """Stop watching the restarter."""
        while self._callbacks:
            self._manager.remove_restart_callback(*self._callbacks.pop())

    async def death(self) -> KernelDeath:
        """Wait until it ends, and return how."""
        await self._disconnected()
        if self.connection.death is not None:
            return self.connection.death
        code = None
        for delay in EXIT_DELAYS:
            await asyncio.sleep(delay)
            if self._restarter is None and (death := await self._by_somebody()) is not None:
                return death
            code = await self._exit_code()
            if code is not None or self._restarter is not None:
                break
        if code is None and self._restarter is None and await self._is_alive():
            return KernelDeath("died", "The server lost its connection to the kernel.")
        # The code of a kernel elsewhere only says that it has ended: provisioners make it up.
        is_unknown = self.is_elsewhere or getattr(self._popen, "lacks_exit_code", False)
        told = _told(None if is_unknown else code)
        return KernelDeath("died", f"The kernel died: {told}.")

    async def _disconnected(self) -> None:
        """Wait until the kernel has disconnected, or its provisioner says that it has ended."""
        is_watched = self.is_elsewhere and self._process is not None
        disconnected = self.connection.disconnected
        while not disconnected.done():
            await asyncio.wait({disconnected}, timeout=LOOK_SECONDS if is_watched else None)
            if is_watched and not self._is_another() and not await self._is_alive():
                self.connection.lost()

    async def _by_somebody(self) -> KernelDeath | None:
        """Return how it was ended deliberately; None if it was not."""
        if self._manager.shutting_down:
            await settled(self._manager)
            if self._restarter is not None:
                return None
            if self._manager.shutting_down:
                return KernelDeath("shut_down", "A user shut the kernel down.")
            return KernelDeath("restarted", "A user restarted the kernel.")
        if self.connection.kernel_id not in self._kernels:
            return KernelDeath("shut_down", "A user shut the kernel down.")
        if self._is_another():
            return KernelDeath("restarted", "A user restarted the kernel.")
        return None

    async def _exit_code(self) -> int | None:
        code: int | None = getattr(self._popen, "returncode", None)
        if code is not None and self._ours is not None:
            return self._ours.exit_code(code)
        if code is None and self._process is not None and self._process.has_process:
            code = None if self._is_another() else await self._process.poll()
        return code

    async def _is_alive(self) -> bool:
        process = self._process
        return process is not None and process.has_process and await process.poll() is None

    def _is_another(self) -> bool:
        return self._manager.ready is not self._ready

    def _told_by_restarter(self, event: str) -> Callable[[], None]:
        def restarter_event() -> None:
            self._restarter = self._restarter or event  # type: ignore[assignment]
            self.connection.lost()

        return restarter_event


async def settled(manager: Any, timeout: float = TRANSITION_TIMEOUT) -> bool:
    """Wait until a kernel is not being started or shut down; False if that takes too long."""
    ready = manager.ready
    if isinstance(ready, ThreadFuture):
        ready = asyncio.wrap_future(ready)
    done, _ = await asyncio.wait({ready}, timeout=timeout)
    for future in done:
        with suppress(asyncio.CancelledError):
            future.exception()  # the manager has logged it
    return bool(done)


def _told(code: int | None) -> str:
    if code is None:
        return "nobody can tell how"
    if code >= 0:
        return f"its process exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = {
        "SIGKILL": " (perhaps for lack of memory)",
        "SIGSEGV": " (segmentation fault)",
        "SIGABRT": " (abort)",
        "SIGXCPU": " (its processor time is used up)",
    }.get(name, "")
    return f"its process was ended by {name}{hint}"
