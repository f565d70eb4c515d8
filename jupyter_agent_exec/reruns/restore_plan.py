"""Which of a session's executions made the state of its last kernel, and what they do. Pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..code_rules.classifier import reasons_to_ask
from ..models import RestoredVariables
from ..records import ExecutionRecord
from ..redaction import marks_in
from ..types import CodeKind, ExecutionId

_POINTED_OUT: Final[frozenset[CodeKind]] = frozenset({"files", "network", "shell", "install"})
"""What code does that reaches beyond the kernel."""

ONLY_LOOKS: Final = "It only looked."
"""Why a cell is left out that showed something and changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellToRestore:
    """An execution that ended well in the kernel whose state is to come back."""

    record: ExecutionRecord
    does: tuple[str, ...]
    """What it does beyond the kernel, each as the end of a sentence."""
    left_out: str | None
    """Why it does not run, in a sentence; None if it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run, and which variables there were."""

    cells: list[CellToRestore]
    before: set[str] | None
    """None if the record does not know them."""


def plan(
    records: Sequence[ExecutionRecord],
    *,
    current: int | None,
    done: Collection[ExecutionId],
    is_python: bool,
    with_first_sources: bool,
    also: Collection[ExecutionId],
    everything: bool,
) -> Plan:
    """Return what made the state of the last kernel that had any.

    Parameters
    ----------
    records
        All executions of the session, in order.
    current
        The incarnation that the session has now; None if it has no kernel.
    done
        Executions that ran again in the present kernel already, or wait there.
    is_python
        Whether the code is Python. Nothing is known of what other code does.
    with_first_sources
        Whether what ran first in the kernel counts; else a new kernel of the session runs it.
    also
        Executions that run although they would be left out, also those of earlier kernels.
    everything
        Whether code runs that reaches beyond the kernel.
    """
    ended = [
        record
        for record in records
        if record.status == "ok" and (with_first_sources or not record.init)
    ]
    last = max((life(record) for record in ended if life(record) != current), default=0)
    cells = []
    for record in ended:
        is_named = record.id in also
        if life(record) != last and not (is_named and life(record) != current):
            continue
        does = _does(record) if is_python else _wrote(record)
        left_out = None
        if record.id in done:
            left_out = "It ran again already."
        elif marks_in(record.source):
            left_out = "The record does not have its code: a secret in it was replaced."
        elif does and not (is_named or everything):
            left_out = f"It {does[0]}; name it to run it."
        elif is_python and _only_looks(record) and not is_named:
            left_out = ONLY_LOOKS
        cells.append(CellToRestore(record=record, does=tuple(does), left_out=left_out))
    of_last = [record for record in records if life(record) == last]
    return Plan(cells=cells, before=variables_after(of_last))


def variables_after(records: Iterable[ExecutionRecord]) -> set[str] | None:
    """Return the names of the variables after executions in one kernel; None if it is not known."""
    names: set[str] = set()
    is_known = False
    for record in records:
        if record.changes is None:
            continue
        is_known = True
        for variable in record.changes.variables:
            (names.discard if variable.change == "removed" else names.add)(variable.name)
    return names if is_known else None


def compared(before: set[str] | None, now: set[str] | None) -> RestoredVariables | None:
    """Return which variables are back; None if it is not known which there were."""
    if before is None or now is None:
        return None
    return RestoredVariables(back=sorted(before & now), missing=sorted(before - now))


def first_line(source: str) -> str:
    """Return the first line of a source that says something, with how many follow."""
    lines = [line for line in source.split("\n") if line.strip()] or [""]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return lines[0].strip()[:120] + more


def life(record: ExecutionRecord) -> int:
    """Return the incarnation in which an execution ran; 0 if it did not."""
    return 0 if record.kernel is None else record.kernel.incarnation


def _does(record: ExecutionRecord) -> list[str]:
    """Return what code does beyond the kernel, as far as the rules and the record know."""
    found = reasons_to_ask(record.source, ("read", "plot", "variables"), outside={})
    told = [f"{each.text} (line {each.line})" for each in found if each.kind in _POINTED_OUT]
    return told + _wrote(record)


def _wrote(record: ExecutionRecord) -> list[str]:
    files = [] if record.changes is None else record.changes.files
    return [f"wrote {file.path}" for file in files]


def _only_looks(record: ExecutionRecord) -> bool:
    """Return whether code has shown something and changed nothing, as far as the rules know."""
    if not record.outputs or (record.changes is not None and record.changes.variables):
        return False
    try:
        body = ast.parse(record.source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False  # IPython's own syntax, perhaps
    is_expression = len(body) == 1 and isinstance(body[0], ast.Expr)
    return is_expression and not reasons_to_ask(record.source, ("read", "plot"), outside=None)
