"""Waiting for an execution, and telling the client meanwhile how it goes.

What is told follows from what happens, at most once in `INTERVAL`, so that code that prints
without end does not flood a client; and now and then something is told also of silent code, since
clients count the time in which they hear nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ..executions.execution import LiveExecution
from ..models import OutputChange, WaitingFor
from ..records import ExecutionRecord
from ..tasks import first_of
from ..terminal import clean
from ..types import ExecutionId
from .call import Call

QUIET: Final = 0.5
"""Seconds in which most executions end; nothing is told before, so that their answer comes as one
piece of JSON."""

INTERVAL: Final = 1.0
"""Seconds between two notifications, at the least."""

HEARTBEAT: Final = 10.0
"""Seconds after which a call that has nothing new to tell says that it goes on."""

LOG_CHARACTERS: Final = 1_000
"""Of new output in one notification: its end."""

LOG_TOTAL: Final = 20_000
"""Characters of output in all notifications of a call."""

_KEPT: Final = 4 * LOG_CHARACTERS
"""Characters of new output that are looked at: some of them only colour or move."""

DOCUMENT_WAIT: Final = 1.0
"""Seconds for which a finished execution is held back until its cell is in the notebook."""


async def until_finished(call: Call, id: ExecutionId, wait: float) -> ExecutionRecord:
    """Return an execution when it has finished or asks for input, or `wait` seconds are over.

    Raises
    ------
    ExecutionNotFound, SessionElsewhere
    Gone
        The client cancelled the call, or went away; the execution goes on.
    """
    found = call.managers.sessions.watching(id)
    if found is None or not wait:
        return await call.managers.sessions.execution(id, wait)
    session, execution = found
    call.watched = id
    await call.until(_follow(call, execution, wait))
    call.watched = None
    if execution.finished.done():
        await session.cells.until_shown(execution, DOCUMENT_WAIT)
    return session.execution_record(execution)


async def _follow(call: Call, execution: LiveExecution, wait: float) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await first_of(execution.finished, execution.input_requested, timeout=min(wait, QUIET))
    told = Told()
    with execution.watching() as changed:
        while (left := begun + wait - loop.time()) > 0 and not _is_told(execution):
            changed.clear()
            told.take(execution)
            await call.progress(told.sentence(execution, loop.time() - begun))
            if text := told.text():
                await call.log("info", text)
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await first_of(execution.finished, waiting, timeout=min(left, HEARTBEAT))
            finally:  # the call may be given up meanwhile
                waiting.cancel()
            left = begun + wait - loop.time()
            if left > 0 and not _is_told(execution):
                await first_of(
                    execution.finished, execution.input_requested, timeout=min(left, INTERVAL)
                )


def _is_told(execution: LiveExecution) -> bool:
    """Whether there is nothing to wait for: it has finished, or asks for input."""
    return execution.finished.done() or execution.input is not None


class Told:
    """What a client has been told of an execution's output."""

    def __init__(self) -> None:
        self.lines = 0
        self._version = 0
        self._new = ""
        self._logged = 0

    def take(self, execution: LiveExecution) -> None:
        """Take what came since."""
        self._version, changes = execution.changes(self._version)
        for text in _texts(changes):
            self.lines += text.count("\n")
            self._new = (self._new + text[-_KEPT:])[-_KEPT:]

    def sentence(self, execution: LiveExecution, seconds: float) -> str:
        """Return how it goes, in one line."""
        waiting_for = execution.waiting_for
        if waiting_for is not None:
            return f"Waits {_for_whom(waiting_for)}; {seconds:.0f} s."
        lines = f", {self.lines:,} lines of output" if self.lines else ""
        return f"Runs; {seconds:.0f} s{lines}."

    def text(self) -> str:
        """Return new output as far as it is told: of much its end, of very much nothing more."""
        text, self._new = clean(self._new).rstrip("\n"), ""
        if not text or self._logged >= LOG_TOTAL:
            return ""
        self._logged += min(len(text), LOG_CHARACTERS)
        if self._logged >= LOG_TOTAL:
            return "[… more output is not told here; the answer has it …]"
        return text if len(text) <= LOG_CHARACTERS else f"[…]{text[-LOG_CHARACTERS:]}"


def _texts(changes: Iterable[OutputChange]) -> Iterable[str]:
    for change in changes:
        if isinstance(change.append, str):
            yield change.append
        elif isinstance(change.output, dict) and change.output.get("output_type") == "stream":
            yield change.output["text"]


def _for_whom(waiting_for: WaitingFor) -> str:
    return {
        "agent": "behind another agent's code",
        "person": "behind a person's code",
        "kernel": "for the kernel",
        "approval": "for a person's approval in JupyterLab",
        "pause": "because a person has paused all agents",
    }[waiting_for.who]
