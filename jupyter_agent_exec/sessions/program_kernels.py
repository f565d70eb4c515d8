"""Records the code that programs run in their own kernels, if users' code is recorded too.

Such a program starts its kernel through Jupyter's own routes and without a document. An example is
a framework's client for Jupyter servers. It does not open an agent session, so this module opens
one for it.
"""

from __future__ import annotations

import logging
from typing import Final

from ..auth.scopes import Caller
from ..errors import AgentExecError
from ..models import Agent, KernelTarget, OpenSession
from ..records import SERVER
from ..tasks import Tasks
from .manager import AgentSessions

PROGRAM: Final = Agent(name="Jupyter client")
"""The agent name of such a session. Each execution has the program's own name."""


class ProgramKernels:
    """Opens a session for the kernel of each program, and closes it when the kernel has ended."""

    def __init__(self, sessions: AgentSessions, log: logging.Logger) -> None:
        self._sessions = sessions
        self._log = log
        self._tasks = Tasks(log)

    def started(self, kernel_id: str, username: str, display_name: str) -> None:
        """Record the code that runs in a kernel that a user's program has started."""
        caller = Caller(username=username, display_name=display_name, access="full")
        self._tasks.start(self._follow(kernel_id, caller), f"record {kernel_id}")

    async def stop(self) -> None:
        """Wait for pending work. The sessions have ended before."""
        await self._tasks.end()

    async def _follow(self, kernel_id: str, caller: Caller) -> None:
        request = OpenSession(
            agent=PROGRAM, target=KernelTarget(kernel_id=kernel_id), title="Kernel of a program"
        )
        try:
            session, _ = await self._sessions.open(request, caller)
        except AgentExecError as error:
            self._log.error(
                "What is run in kernel %s is not recorded: %s", kernel_id, error.message
            )
            return
        live = self._sessions.open_session(session.id)
        if live is not None:
            live.is_kept = True  # it ends with the kernel
        while live is not None and live.is_open:
            try:
                kernel = await live.fresh()
            except AgentExecError:  # it has ended, or has died and was not restarted
                await self._sessions.end(live, "closed", SERVER)
            else:
                await kernel.death()
