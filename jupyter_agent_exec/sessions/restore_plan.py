"""Which of a session's executions run again to restore its last kernel. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..records import ExecutionRecord
from ..text.counts import counted
from ..text.redaction import marks_in
from ..types import ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class CellToRestore:
    """An execution that ended well in the kernel whose state is to come back."""

    record: ExecutionRecord
    left_out: str | None
    """Why it does not run, in a sentence; None if it runs."""


def plan(
    records: Sequence[ExecutionRecord],
    *,
    current: int | None,
    done: Collection[ExecutionId],
    with_first_sources: bool,
    leave_out: Collection[ExecutionId],
) -> list[CellToRestore]:
    """Return what ended with `ok` in the last kernel before the current one, in order.

    Parameters
    ----------
    records
        All executions of the session, in order.
    current
        The incarnation that the session has now; None if it has no kernel.
    done
        Executions that ran again in the present kernel already, or wait there.
    with_first_sources
        Whether what ran first in the kernel counts; else a new kernel of the session runs it.
    leave_out
        Executions that do not run again.
    """
    ended = [
        record
        for record in records
        if record.status == "ok" and not record.trial and (with_first_sources or not record.init)
    ]
    last = max((life(record) for record in ended if life(record) != current), default=0)
    cells = []
    for record in ended:
        if life(record) != last:
            continue
        left_out = None
        if record.id in done:
            left_out = "It ran again already."
        elif marks_in(record.source):
            left_out = "The record does not have its code: a secret in it was replaced."
        elif record.id in leave_out:
            left_out = "The request leaves it out."
        cells.append(CellToRestore(record=record, left_out=left_out))
    return cells


def first_line(source: str) -> str:
    """Return the first line of a source that says something, with how many follow."""
    lines = [line for line in source.split("\n") if line.strip()] or [""]
    more = f" (+{counted(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return lines[0].strip()[:120] + more


def life(record: ExecutionRecord) -> int:
    """Return the incarnation in which an execution ran; 0 if it did not."""
    return 0 if record.kernel is None else record.kernel.incarnation
