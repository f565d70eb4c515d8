"""The calls of tools that go on, and what becomes of them when their client goes away."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from mcp_types import CallToolResult, InputRequiredResult

from ..errors import AgentExecError
from ..tasks import Tasks
from .answering import CANCELLED, INTERNAL, Failure, refusal, result_of
from .call import Call, Gone
from .revisions import AskFirst
from .tool import Tool

STOP_SECONDS = 5.0
"""For which calls that nobody waits for any more may go on when the server stops."""


class Calls:
    """Runs tools, each in a task of its own: a client that goes away ends its wait, not the work.

    Parameters
    ----------
    interrupts
        Whether an execution is interrupted when the client that waits for it goes away.
    """

    def __init__(self, *, interrupts: bool, log: logging.Logger) -> None:
        self._interrupts = interrupts
        self._log = log
        self._tasks = Tasks(log)
        self._going: set[Call] = set()

    async def run(
        self, tool: Tool[Any], call: Call, arguments: Any
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool and return what its client is told."""
        task = self._tasks.start(self._told(tool, call, arguments), f"mcp-{tool.name}")
        self._going.add(call)
        task.add_done_callback(lambda _: self._going.discard(call))

        def leave(_: asyncio.Future[None]) -> None:
            call.cancel()

        call.asker.gone.add_done_callback(leave)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            call.asker.gone.remove_done_callback(leave)
        return task.result()

    async def stop(self) -> None:
        """End the waits of all calls, and return when what they had begun is done."""
        self._interrupts = False  # the server ends all code in its own order
        for call in tuple(self._going):
            call.cancel()
        await self._tasks.end(STOP_SECONDS)

    async def _told(
        self, tool: Tool[Any], call: Call, arguments: Any
    ) -> CallToolResult | InputRequiredResult:
        try:
            answered = await tool.run(call, arguments)
            call.asker.check_still()
            return result_of(answered)
        except AskFirst as question:
            return question.result
        except Gone:
            await self._interrupt(call)
            return refusal(CANCELLED)
        except AgentExecError as error:
            call.asker.note_denial(error, "tools/call", tool.name)
            return refusal(Failure.of(error))
        except Exception:
            self._log.exception("The tool %s failed", tool.name)
            return refusal(INTERNAL)

    async def _interrupt(self, call: Call) -> None:
        if self._interrupts and call.watched is not None:
            with suppress(AgentExecError):  # as when it has just finished
                await call.doors.manager.cancel(call.watched, call.caller)
