"""Wait for an execution, and send progress to the client.

The client gets a notification when something changes, at most one per `INTERVAL`, so that code
that prints endlessly does not flood it. Silent code gets one each `HEARTBEAT`, because clients time
out when they receive nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ..executions.execution import LiveExecution
from ..models import OutputChange
from ..records import ExecutionRecord
from ..tasks import first_of
from ..text.counts import counted
from ..text.terminal import clean
from ..types import ExecutionId
from .call import Call
from .results import waits

QUIET: Final = 0.5
"""Seconds in which most executions end. No notification is sent before, so that the endpoint can
send their answer as plain JSON."""

INTERVAL: Final = 1.0
"""Minimum seconds between two notifications."""

HEARTBEAT: Final = 10.0
"""Seconds after which a call without news sends a notification anyway."""

LOG_CHARACTERS: Final = 1_000
"""Maximum characters of new output in one notification. Of a longer text it has the end."""

LOG_TOTAL: Final = 20_000
"""Characters of output in all notifications of a call."""

_KEPT: Final = 4 * LOG_CHARACTERS
"""Characters of new output to keep. Some are only escape sequences, which are removed later."""

DOCUMENT_WAIT: Final = 1.0
"""Maximum seconds to wait until a finished execution's cell is in the notebook."""


async def until_finished(call: Call, id: ExecutionId, wait: float | None) -> ExecutionRecord:
    """Return an execution when it has finished or asks for input, or after `wait` seconds.

    None is the server's default.

    Raises
    ------
    ExecutionNotFound, SessionElsewhere
    ClientGone
        The client cancelled the call or disconnected. The execution continues.
    """
    found, seconds = call.managers.sessions.history.watching(id), call.managers.settings.wait(wait)
    if found is None or not seconds:
        return await call.managers.sessions.execution(id, seconds)
    session, execution = found
    call.watched = id
    await call.until(_follow(call, execution, seconds))
    call.watched = None
    if execution.finished.done():
        await session.cells.until_shown(execution, DOCUMENT_WAIT)
    return session.execution_record(execution)


async def _follow(call: Call, execution: LiveExecution, wait: float) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await first_of(execution.finished, execution.input_requested, timeout=min(wait, QUIET))
    told = DeliveredOutput()
    with execution.watching() as changed:
        while (left := begun + wait - loop.time()) > 0 and not _is_told(execution):
            changed.clear()
            told.take(execution)
            await call.tell(told.sentence(execution, loop.time() - begun), told.text())
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await first_of(execution.finished, waiting, timeout=min(left, HEARTBEAT))
            finally:  # the call may be cancelled meanwhile
                waiting.cancel()
            left = begun + wait - loop.time()
            if left > 0 and not _is_told(execution):
                await first_of(
                    execution.finished, execution.input_requested, timeout=min(left, INTERVAL)
                )


def _is_told(execution: LiveExecution) -> bool:
    """Return whether the wait is over: the execution has finished, or asks for input."""
    return execution.finished.done() or execution.input is not None


class DeliveredOutput:
    """Tracks which part of an execution's output the client has received."""

    def __init__(self) -> None:
        self.lines = 0
        self._version = 0
        self._new = ""
        self._logged = 0

    def take(self, execution: LiveExecution) -> None:
        """Add the output since the last call."""
        self._version, changes = execution.changes(self._version)
        for text in _texts(changes):
            self.lines += text.count("\n")
            self._new = (self._new + text[-_KEPT:])[-_KEPT:]

    def sentence(self, execution: LiveExecution, seconds: float) -> str:
        """Return the execution's progress in one line."""
        waiting_for = execution.waiting_for
        if waiting_for is not None:
            return f"Waits{waits(waiting_for)}; {seconds:.0f} s."
        lines = f", {counted(self.lines, 'line')} of output" if self.lines else ""
        return f"Runs; {seconds:.0f} s{lines}."

    def text(self) -> str:
        """Return the new output to log, at most `LOG_CHARACTERS` of its end.

        Once `LOG_TOTAL` is reached, return a note, and after that nothing.
        """
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
