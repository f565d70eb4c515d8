"""Records what is run in kernels that no agent uses, if users' code is recorded too.

By default these are kernels of programs. Such a program starts its kernel through Jupyter's own
routes and without a document. An example is a framework's client for Jupyter servers. It does not
open an agent session, so this module opens one for it. If people are recorded in all kernels, each
kernel that somebody connects to has one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, NamedTuple

import msgspec

from ..auth.scopes import Caller
from ..errors import AgentExecError
from ..models import Agent, KernelTarget, OpenSession
from ..records import SERVER, Payload, PersonRan
from ..tasks import Tasks
from .manager import AgentSessions
from .session import LiveSession

PROGRAM: Final = Agent(name="Jupyter client")
"""The agent name of such a session. Each execution has the program's own name."""


class SentRequest(NamedTuple):
    """A user's request to run code."""

    at: str
    msg_id: str
    source: str
    expressions: dict[str, Any] | None
    """Its `user_expressions`."""


class ProgramKernels:
    """Opens a session for each kernel that is told, and closes it when the kernel has ended.

    Parameters
    ----------
    counts
        Whether these sessions count towards the most that may be open.
    """

    def __init__(self, sessions: AgentSessions, log: logging.Logger, *, counts: bool) -> None:
        self._sessions = sessions
        self._counts = counts
        self._of: dict[str, asyncio.Future[LiveSession]] = {}
        self._log = log
        self._tasks = Tasks(log)

    def started(self, kernel_id: str, username: str, display_name: str) -> None:
        """Record the code that runs in a kernel that a user's program has started."""
        self.connected(
            kernel_id, Caller(username=username, display_name=display_name, access="full")
        )

    def connected(self, kernel_id: str, caller: Caller) -> None:
        """Record the code that runs in a kernel from now on, if it is not recorded yet."""
        if self._owner(kernel_id) is None:
            self._session(kernel_id, caller)

    async def record(self, kernel_id: str, caller: Caller, request: SentRequest) -> None:
        """Record a user's request before the kernel gets it; return when it is on disk.

        If the disk is full, the entry is kept in memory until there is room.

        Raises
        ------
        AgentExecError
            It is not recorded, because the kernel has no session and none can be opened.
        """
        live = self._owner(kernel_id)
        if live is None:
            live = await asyncio.shield(self._session(kernel_id, caller))
        source = Payload.of(request.source.encode("utf-8", "surrogatepass"))
        payloads = [source]
        if request.expressions is not None:
            payloads.append(Payload.of(msgspec.json.encode(request.expressions)))
        entry = PersonRan(
            at=request.at,
            by=caller.by(),
            kernel_id=kernel_id,
            msg_id=request.msg_id,
            source=source.digest,
            execution_count=None,
            via="websocket",
            expressions=None if request.expressions is None else payloads[1].digest,
        )
        await live.person_runs(entry, payloads)

    async def stop(self) -> None:
        """Wait for pending work. The sessions have ended before."""
        await self._tasks.end()

    def _owner(self, kernel_id: str) -> LiveSession | None:
        """Return the session whose own kernel this is."""
        for session in self._sessions.all_open():
            kernel = session.kernel
            if kernel is not None and kernel.owned and kernel.id == kernel_id:
                return session
        return None

    def _session(self, kernel_id: str, caller: Caller) -> asyncio.Future[LiveSession]:
        """Return the session of a kernel, which may be about to open."""
        recording = self._of.get(kernel_id)
        if recording is None or _is_over(recording):
            recording = self._of[kernel_id] = asyncio.get_running_loop().create_future()
            self._tasks.start(self._follow(kernel_id, caller, recording), f"record {kernel_id}")
        return recording

    async def _follow(
        self, kernel_id: str, caller: Caller, opened: asyncio.Future[LiveSession]
    ) -> None:
        request = OpenSession(
            agent=PROGRAM, target=KernelTarget(kernel_id=kernel_id), title="Kernel of a program"
        )
        try:
            session, _ = await self._sessions.open(request, caller, counts=self._counts)
        except AgentExecError as error:
            self._log.error(
                "What is run in kernel %s is not recorded: %s", kernel_id, error.message
            )
            opened.set_exception(error)
            opened.exception()  # nobody may wait for it
            return
        live = self._sessions.open_session(session.id)
        if live is not None:
            live.is_kept = True  # it ends with the kernel
            opened.set_result(live)
        while live is not None and live.is_open:
            try:
                kernel = await live.fresh()
            except AgentExecError:  # it has ended, or has died and was not restarted
                await self._sessions.end(live, "closed", SERVER)
            else:
                await kernel.death()


def _is_over(opened: asyncio.Future[LiveSession]) -> bool:
    return opened.done() and (opened.exception() is not None or not opened.result().is_open)
