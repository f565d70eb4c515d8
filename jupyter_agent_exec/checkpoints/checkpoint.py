"""One checkpoint of a kernel, as the server sees it: the sleeping copy, and the way to wake it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from contextlib import suppress
from typing import Any, Final

import msgspec

from ..kernels.folder import folder_for_sockets
from ..kernels.kernel import Kernel
from ..kernels.trials.trial import FILES as TRIAL_FILES
from ..kernels.trials.trial import call_in_kernel
from ..models import Checkpoint as CheckpointAnswer
from ..records import timestamp
from ..types import ExecutionId
from .process import END_SECONDS, AdoptedProcess, pss_bytes

FILES: Final = (
    *TRIAL_FILES,
    *(f"../../checkpoints/{name}.py" for name in ("guards", "take_over", "freeze")),
)
CONNECT_SECONDS: Final = 10.0
"""Seconds within which a kernel forks, and the copy connects."""
LAST_SECONDS: Final = 0.5
"""Seconds within which the last word of a process that has ended comes."""
READY_SECONDS: Final = 20.0
"""Seconds within which a copy has made all that it needs to take the kernel's place."""


class Refused(Exception):
    """A copy cannot be made, or cannot take the kernel's place; the message says why."""


class Checkpoint:
    """A sleeping copy of a kernel.

    Parameters
    ----------
    told
        What the kernel said of the copy.
    subshell
        A subshell of the kernel that is not needed again: our own.
    """

    def __init__(
        self,
        execution_id: ExecutionId,
        told: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        subshell: str | None,
    ) -> None:
        self.execution_id = execution_id
        self.at = timestamp()
        self.is_undoable = True
        """Whether the user has run nothing since."""
        self.count: int = told["count"]
        """The number of the cell that was next in the kernel."""
        self.clients: int = told["clients"]
        """How many clients heard the kernel's output."""
        self.process = AdoptedProcess(told["pid"])
        self._subshell = subshell
        self._reader = reader
        self._writer = writer

    @classmethod
    async def take(cls, kernel: Kernel, pid: int, execution_id: ExecutionId) -> Checkpoint:
        """Have a kernel, whose turn the caller holds, make a copy of itself.

        Parameters
        ----------
        pid
            The process that the server takes for the kernel's.

        Raises
        ------
        Refused
        """
        folder = folder_for_sockets("agent-exec-checkpoint-")
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(folder / "socket"))
                listener.listen(1)
                listener.setblocking(False)
                plan = {"socket": str(folder / "socket"), "server": os.getpid(), "pid": pid}
                fault = await call_in_kernel(
                    kernel.connection.inspector,
                    *("checkpoint", plan, FILES, "stay_for_checkpoints"),
                )
                if fault is not None:
                    raise Refused(fault)
                accept = asyncio.get_running_loop().sock_accept(listener)
                connected, _ = await asyncio.wait_for(accept, CONNECT_SECONDS)
            reader, writer = await asyncio.open_unix_connection(sock=connected)
            try:
                told = await heard(reader, CONNECT_SECONDS)
                return cls(execution_id, told, reader, writer, kernel.connection.inspector.subshell)
            except BaseException:
                writer.close()
                raise
        except (TimeoutError, OSError) as error:
            raise Refused("the kernel did not answer") from error
        finally:
            (folder / "socket").unlink(missing_ok=True)
            folder.rmdir()

    @property
    def is_alive(self) -> bool:
        """Whether it can still take the kernel's place."""
        return not self._reader.at_eof() and self.process.poll() is None

    async def answer(self) -> CheckpointAnswer:
        """Return what the routes say of it."""
        return CheckpointAnswer(
            execution_id=self.execution_id,
            at=self.at,
            bytes=await asyncio.to_thread(pss_bytes, self.process.pid),
            undoable=self.is_undoable,
        )

    async def prepare(self, execution_count: int) -> None:
        """Have it make all that it needs to take the kernel's place; raise Refused if it fails."""
        self._tell(execution_count=execution_count, subshell=self._subshell)
        await heard(self._reader, READY_SECONDS)

    async def begin(self, clients: int, seconds: float) -> None:
        """Have it go on as the kernel, after the process before has ended.

        Parameters
        ----------
        clients
            How many clients will connect again.
        seconds
            How long to wait for them.
        """
        self._tell(clients=clients, seconds=seconds)
        await heard(self._reader, READY_SECONDS + seconds)

    async def exits(self) -> bool:
        """Return whether the copy, which was the kernel and has ended, ended by itself."""
        with suppress(OSError, ValueError):  # a fork of the user's may hold the connection open
            return bool(await asyncio.wait_for(self._reader.readline(), LAST_SECONDS))
        return False

    def leave(self) -> None:
        """Close the connection to the copy, which goes on as the kernel."""
        self._writer.close()

    def end(self) -> None:
        """Have it end, and do not wait until it has."""
        self._writer.close()
        self.process.kill()

    def wait(self) -> None:
        """Wait until it has ended, so that its ports are free. Blocks."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)

    def _tell(self, **order: object) -> None:
        self._writer.write(msgspec.json.encode(order) + b"\n")


async def heard(reader: asyncio.StreamReader, seconds: float) -> dict[str, Any]:
    """Return what a copy says next; raise Refused if it cannot go on, or says nothing."""
    try:
        line = await asyncio.wait_for(reader.readline(), seconds)
        told: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
    except (TimeoutError, OSError, ValueError, msgspec.MsgspecError) as error:
        raise Refused("the copy of the kernel did not answer") from error
    if "refused" in told:
        raise Refused(str(told["refused"])[:500])
    return told
