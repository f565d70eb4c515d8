"""Keeps the checkpoints of one kernel, and lets one of them take the kernel's place."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from ..errors import AgentExecError, KernelUnavailable
from ..kernels.channels import KernelDeath
from ..kernels.inspection import ASIDE, MAIN
from ..kernels.kernel import Kernel
from ..kernels.live_kernels import LiveKernels
from ..kernels.provisioner import FolderProvisioner
from ..models import CheckpointList, Rescue
from ..tasks import start_apart
from ..types import OF_EARLIER, ExecutionId
from ..workarounds import tell_restarted
from .checkpoint import Checkpoint, Refused
from .process import (
    END_SECONDS,
    KernelProcess,
    clients_of,
    end_holders,
    free_bytes,
    own_bytes,
)

NOT_UNDONE: Final = [
    "Files and databases on disk: what the code wrote, changed or removed.",
    "What it sent over the network or to other programs, and the programs that it started.",
    "How far files that were open before have been read or written, and shared memory.",
    "The outputs that it showed; they stay in the record, and in the notebook unless its changes "
    "are undone too.",
]
"""What a user reads beside the button."""
NOT_HERE: Final = "Undo is not available here: "
OURS: Final = ("x_", MAIN, ASIDE)
"""How the ids of our requests begin, also of those of an earlier connection."""
RETURN_SECONDS: Final = 3.0
"""Seconds to wait until the clients of a kernel have connected again."""
RESCUE_SECONDS: Final = 1.0
"""The same after a crash, when it is not known how many there are."""


class Keeper:
    """The checkpoints of one kernel, for which a user has turned them on.

    Parameters
    ----------
    manager
        The server's manager of this kernel.
    most
        The most checkpoints to keep.
    share
        The largest part of the free memory that a checkpoint may come to take.
    gone
        Called when the kernel has been shut down.
    """

    def __init__(
        self,
        kernel_id: str,
        manager: Any,
        live: LiveKernels,
        gone: Callable[[str], object],
        *,
        most: int,
        share: float,
        log: logging.Logger,
    ) -> None:
        self.kernel_id = kernel_id
        self.manager = manager
        self.checkpoints: list[Checkpoint] = []
        self.reason: str | None = None
        """Why the last checkpoint was not made, in a sentence; None if it was."""
        self.ran: list[ExecutionId] = []
        """The agents' executions since the oldest checkpoint, oldest first."""
        self._live = live
        self._gone = gone
        self._most = most
        self._share = share
        self._log = log
        self._ending: list[Checkpoint] = []
        """Those that have been told to end."""
        self._lock = asyncio.Lock()
        self._process: KernelProcess | None = None
        self._adopted: Checkpoint | None = None
        self._held: Kernel | None = None
        self._watch: asyncio.Task[None] | None = None
        self._rescue: asyncio.Task[None] | None = None
        self._rescued: Rescue | None = None
        self._fate: asyncio.Future[KernelDeath | None] | None = None

    async def answer(self) -> CheckpointList:
        """Return what the routes say of them."""
        self.look_for_user()
        if self._rescue is not None:  # a page that sees the kernel die asks at once
            await asyncio.wait({self._rescue})
        kept = [await each.answer() for each in list(self.checkpoints) if each.is_alive]
        return CheckpointList(
            enabled=True,
            available=self.reason is None,
            reason=self.reason,
            checkpoints=kept,
            rescued=self._rescued,
            not_undone=NOT_UNDONE,
        )

    # -- before an execution -----------------------------------------------------------------------

    async def take(self, kernel: Kernel, execution: ExecutionId) -> None:
        """Make a checkpoint, or note why there is none. The caller holds the kernel's turn."""
        self.look_for_user()
        async with self._lock:
            try:
                await self._take(kernel, execution)
                self.reason = None
            except Refused as error:
                self.reason = f"{NOT_HERE}{error}."
            except AgentExecError as error:
                self.reason = f"{NOT_HERE}{error.message}"
            self.checkpoints = [each for each in self.checkpoints if each.is_alive]
            self.ran.append(execution)
            oldest = self.checkpoints[0].execution_id if self.checkpoints else None
            del self.ran[: self.ran.index(oldest) if oldest in self.ran else None]

    async def _take(self, kernel: Kernel, execution: ExecutionId) -> None:
        process = self._watched_process()
        need, free = own_bytes(process.pid), free_bytes()
        if need > self._share * free:
            raise Refused(
                f"the kernel takes {need >> 20:,} MB, and a checkpoint may come to take at most "
                f"{self._share:.0%} of the {free >> 20:,} MB of free memory"
            )
        taken = await Checkpoint.take(kernel, process.pid, execution)
        self.checkpoints.append(taken)
        await self._follow()
        while len(self.checkpoints) > self._most:
            self._end(self.checkpoints.pop(0))

    def _watched_process(self) -> KernelProcess:
        """Return the kernel's process, which tells from now on before it counts as dead."""
        provisioner = self.manager.provisioner
        if provisioner.process is None:
            raise Refused("the kernel has ended")
        if self._process is None or provisioner.process is not self._process:
            process = provisioner.process
            first = process.now if isinstance(process, KernelProcess) else process
            provisioner.process = self._process = KernelProcess(first, self.is_replaced)
            self._adopt(None)
        return self._process

    async def _follow(self) -> None:
        """Hear of what the user runs, also when no session is connected to the kernel."""
        if self._held is not None and not self._held.is_ending:
            return
        await self._let_go()
        self._held = await self._live.adopt(self.kernel_id)
        self._held.turns.on_change.add(self._changed)
        self._watch = start_apart(self._until_end(self._held), f"checkpoints of {self.kernel_id}")

    async def _until_end(self, held: Kernel) -> None:
        """Let go of the kernel when its life has ended; `is_replaced` ends the checkpoints."""
        death = await held.death()
        if self._held is held and death.reason not in OF_EARLIER:
            await self._let_go()
        if death.reason == "shut_down":
            self._gone(self.kernel_id)

    def _changed(self, _: None) -> None:
        self.look_for_user()

    def look_for_user(self) -> None:
        """Note if the kernel has run something of the user's."""
        if self._held is None:
            return
        latest = self._held.connection.activity.latest_request.msg_id
        if latest and not latest.startswith(OURS):
            for each in self.checkpoints:
                each.is_undoable = False

    async def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.turns.on_change.remove(self._changed)
            await held.let_go()  # the watch ends with it, if nobody else holds the kernel

    # -- undo --------------------------------------------------------------------------------------

    async def undo(
        self,
        execution: ExecutionId,
        death: KernelDeath,
        execution_count: int,
        check: Callable[[Sequence[ExecutionId]], Awaitable[None]],
        record: Callable[[Sequence[ExecutionId]], Awaitable[None]],
    ) -> list[ExecutionId]:
        """Make the kernel as it was before an execution; return what was taken back, oldest first.

        Parameters
        ----------
        death
            How the life of the kernel ends that this replaces.
        execution_count
            The number of the next cell.
        check
            Raises Refused if these executions must not be taken back.
        record
            Records it, when all that is needed is ready. If that fails, nothing has changed.

        Raises
        ------
        Refused, HistoryUnavailable
            The kernel goes on unchanged.
        KernelUnavailable
            The copy failed in the last moment; the kernel has ended.
        """
        async with self._lock:
            self.look_for_user()
            place = self._place(execution)
            taken_back = self.ran[self.ran.index(execution) :]
            await check(taken_back)
            checkpoint, process = self.checkpoints[place], self._watched_process()
            self._end_from(place + 1)
            self.checkpoints.pop()
            try:
                await checkpoint.prepare(execution_count)
                await record(taken_back)
            except BaseException:
                self._end(checkpoint)
                raise
            del self.ran[self.ran.index(execution) :]
            await self._replace(process, checkpoint, death)
            if self.checkpoints:
                await self._follow()
            return taken_back

    def _place(self, execution: ExecutionId) -> int:
        """Return the place of an execution's checkpoint; raise Refused if it has none any more."""
        found = [
            place for place, each in enumerate(self.checkpoints) if each.execution_id == execution
        ]
        if not found:
            raise Refused(
                "a newer execution has a checkpoint instead"
                if self.checkpoints
                else "there is no checkpoint from before this execution"
            )
        checkpoint = self.checkpoints[found[0]]
        if not checkpoint.is_alive:
            raise Refused("the checkpoint has ended, perhaps for lack of memory")
        if not checkpoint.is_undoable:
            raise Refused("a user has run code in this kernel since")
        return found[0]

    async def _replace(
        self, process: KernelProcess, checkpoint: Checkpoint, death: KernelDeath
    ) -> None:
        """End the kernel's process, and let a copy that is ready go on."""
        before, process.now = process.now, checkpoint.process
        await self._let_go()
        await self._live.replace(self.kernel_id, death)
        info = self.manager.get_connection_info()
        ports = [info[f"{name}_port"] for name in ("shell", "iopub", "stdin", "hb", "control")]
        spared = [each.process.pid for each in (checkpoint, *self.checkpoints)]

        def end_before() -> int:
            held = clients_of(ports)
            end_holders(before.pid, held, spared)
            before.kill()
            with suppress(subprocess.TimeoutExpired):  # it runs nothing more
                before.wait(END_SECONDS)
            return sum(each.port == info["iopub_port"] for each in held)

        there = await asyncio.to_thread(end_before)
        try:
            await self._begin(checkpoint, there, RETURN_SECONDS)
        except Refused as error:
            self._end(checkpoint)
            raise KernelUnavailable(
                f"The kernel was ended, and its copy did not go on: {error}. Jupyter starts it "
                "again, without variables.",
                kernel_id=self.kernel_id,
            ) from error

    async def _begin(self, checkpoint: Checkpoint, there: int, seconds: float) -> None:
        await checkpoint.begin(there, seconds)
        self._adopt(checkpoint)

    def _adopt(self, checkpoint: Checkpoint | None) -> None:
        """Note which checkpoint is the kernel now; None if none is."""
        if self._adopted is not None:
            self._adopted.leave()
        self._adopted = checkpoint

    # -- rescue ------------------------------------------------------------------------------------

    def is_replaced(self) -> bool:
        """Return whether the kernel, whose process has ended, does not count as dead.

        A copy takes the place of the process; or copies that hold its ports, on which the next
        process listens, have not ended yet.
        """
        if self._rescue is not None and not self._rescue.done():
            return True
        code = None if self._process is None else self._process.returncode
        is_crash = code is None or code < 0
        if self.manager.shutting_down or not is_crash or not self.checkpoints:
            self._end_from(0)
            self._adopt(None)
            self._rescued = self._fate = None
            return bool(self._still_ending())
        self._fate = asyncio.get_running_loop().create_future()
        self._rescue = start_apart(self._bring_back(), f"rescue of {self.kernel_id}")
        return True

    async def explain(self, death: KernelDeath) -> KernelDeath:
        """Return how the kernel ended, when it is known whether a copy takes its place."""
        if death.reason != "died" or self._process is None:
            return death
        has_died = self._process.now.poll() is not None
        if (has_died and not self.is_replaced()) or self._fate is None:
            return death
        return await asyncio.shield(self._fate) or death

    async def _bring_back(self) -> None:
        """Let the newest checkpoint take the place of the kernel, which has died."""
        fate = self._fate
        assert fate is not None
        try:
            await self._try_rescue(fate)
        finally:
            if not fate.done():
                fate.set_result(None)

    async def _try_rescue(self, fate: asyncio.Future[KernelDeath | None]) -> None:
        process = self._process
        assert process is not None
        if self._adopted is not None and await self._adopted.exits():
            self._end_from(0)
            return
        async with self._lock:
            how = "The kernel died"
            if process.returncode is not None:
                how += f" (signal {-process.returncode})"
            tell_restarted(self.manager)  # so that nobody waits for cells that it ran
            await self._let_go()
            while self.checkpoints:
                checkpoint = self.checkpoints.pop()
                at = datetime.fromisoformat(checkpoint.at).astimezone()
                of = f"{at:%H:%M}, before cell [{checkpoint.count}]"
                death = KernelDeath("rescued", f"{how}; its variables are those of {of}.")
                try:
                    await checkpoint.prepare(checkpoint.count)
                    fate.set_result(death)
                    await self._live.replace(self.kernel_id, death)
                    process.now = checkpoint.process
                    await self._begin(checkpoint, checkpoint.clients, RESCUE_SECONDS)
                except Refused as error:
                    self._log.warning("%s was not rescued: %s", self.kernel_id, error)
                    self._end(checkpoint)
                    if fate.done():
                        return
                    continue
                self._rescued = Rescue(at=checkpoint.at, execution_count=checkpoint.count)
                self._log.warning("%s: %s", self.kernel_id, death.message)
                return

    # -- the end -----------------------------------------------------------------------------------

    def _end_from(self, place: int) -> None:
        while len(self.checkpoints) > place:
            self._end(self.checkpoints.pop())

    def _end(self, checkpoint: Checkpoint) -> None:
        """End a checkpoint, beside all else: the system takes a while to free its memory."""
        checkpoint.end()
        self._ending = [*self._still_ending(), checkpoint]

    def _still_ending(self) -> list[Checkpoint]:
        self._ending = [each for each in self._ending if each.process.poll() is None]
        return self._ending

    async def stop(self) -> None:
        """Drop all checkpoints. The kernel goes on."""
        if self._rescue is not None:
            await asyncio.wait({self._rescue})
        async with self._lock:
            self._end_from(0)
            for each in self._still_ending():
                await asyncio.to_thread(each.wait)
            self._adopt(None)
            with suppress(AgentExecError):
                await self._let_go()


def why_never(manager: Any, kernel: Kernel | None = None) -> str | None:
    """Return why a kernel can never have checkpoints here, as far as that is known; None if not."""
    provisioner = manager.provisioner
    if not sys.platform.startswith("linux"):
        return "checkpoints need Linux"
    if not isinstance(provisioner, LocalProvisioner):
        return "the kernel may run on another machine"
    if isinstance(provisioner, FolderProvisioner) and provisioner.is_isolated:
        return "the kernel is isolated"
    if kernel is not None and not kernel.connection.inspector.is_python:
        return f"only Python's kernel (ipykernel) can be copied; this one is {kernel.name!r}"
    return None
