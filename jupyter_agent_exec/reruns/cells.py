"""The cells to run again, made from a session's executions or from a notebook. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import nbformat

from ..errors import InvalidRequest
from ..records import ExecutionRecord
from ..redaction import marks_in
from ..types import CellId, ExecutionId, Output

SKIP_TAGS: Final = frozenset({"skip-execution", "nbval-skip"})
"""Tags of cells that do not run, as nbmake, MyST-NB and nbval know them."""

IGNORE_TAGS: Final = frozenset({"nbval-ignore-output"})
"""Tags of cells that run, and whose outputs are not compared."""

REDACTED: Final = "Secrets in its source were replaced, so it cannot run again."

_NOT_FINISHED: Final = {
    "interrupted": "It was interrupted.",
    "timed_out": "It timed out.",
    "kernel_died": "Its kernel died.",
    "lost": "It is not known how it ended.",
}
"""Why the outputs of an execution that ran cannot be compared, by its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellToRerun:
    """A cell, with what it showed before."""

    cell_id: CellId
    source: str
    outputs: list[Output]
    of: ExecutionId | None
    timeout: float | None = None
    """Seconds; None for the server's default."""
    incarnation: int | None = None
    """The kernel in which it ran: another one had none of the variables. None if unknown."""
    skipped: str | None = None
    """Why it does not run, in a sentence."""
    unclear: str | None = None
    """Why its outputs cannot be compared, in a sentence."""

    @property
    def redacted(self) -> str | None:
        """Why its source is not what ran, in a sentence; None if it is."""
        return REDACTED if self.skipped is None and marks_in(self.source) else None

    @property
    def raised(self) -> bool:
        """Whether it raised an error before."""
        return any(output["output_type"] == "error" for output in self.outputs)


class _About(msgspec.Struct, frozen=True):
    """What an export says about a cell, as far as it matters here."""

    execution_id: ExecutionId | None = None
    status: str | None = None
    incarnation: int | None = None
    outputs_complete: bool = True


def cells_of_executions(records: Iterable[ExecutionRecord]) -> list[CellToRerun]:
    """Return the cells of a session's executions, which have ended; a trial has none."""
    return [_cell_of_execution(record) for record in records if not record.trial]


def _cell_of_execution(record: ExecutionRecord) -> CellToRerun:
    skipped = unclear = None
    if record.started_at is None:
        skipped = f"It did not run before: {record.status}."
    elif record.status in _NOT_FINISHED:
        skipped = _NOT_FINISHED[record.status]
    elif not record.outputs_complete:
        unclear = "The record does not have its complete output."
    return CellToRerun(
        cell_id=CellId(record.id),
        source=record.source,
        outputs=record.outputs,
        of=record.id,
        timeout=record.timeout,
        incarnation=None if record.kernel is None else record.kernel.incarnation,
        skipped=skipped,
        unclear=unclear,
    )


def cells_of_notebook(notebook: dict[str, Any]) -> tuple[list[CellToRerun], str | None]:
    """Return the code cells of a notebook, and the name of its kernelspec if it says one.

    Raises
    ------
    InvalidRequest
        It is not a valid notebook.
    """
    try:
        read = nbformat.reads(msgspec.json.encode(notebook).decode(), as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(read)
    except (
        nbformat.ValidationError,
        nbformat.reader.NotJSONError,
        ValueError,
        LookupError,
    ) as error:
        said = str(error).split("\n")[0][:300]
        raise InvalidRequest(f"notebook: not a valid notebook: {said}", field="notebook") from error
    cells = [_cell_of_notebook(cell) for cell in read.cells if cell.cell_type == "code"]
    name = read.metadata.get("kernelspec", {}).get("name")
    return cells, name if isinstance(name, str) else None


def _about(cell: Any) -> _About:
    try:
        return msgspec.convert(cell.metadata.get("agent_exec", {}), _About)
    except msgspec.ValidationError:  # others may write there too
        return _About()


def _cell_of_notebook(cell: Any) -> CellToRerun:
    tags = set(cell.metadata.get("tags", []))
    about = _about(cell)
    of = about.execution_id or (ExecutionId(cell.id) if cell.id.startswith("x_") else None)
    skipped = unclear = None
    if tags & SKIP_TAGS:
        skipped = f"It has the tag {min(tags & SKIP_TAGS)}."
    elif not cell.source.strip():
        skipped = "It is empty."
    elif about.status in _NOT_FINISHED:
        skipped = _NOT_FINISHED[about.status]
    elif tags & IGNORE_TAGS:
        unclear = f"It has the tag {min(tags & IGNORE_TAGS)}."
    elif cell.execution_count is None and not cell.outputs and of is None:
        unclear = "The notebook does not have its output."
    elif not about.outputs_complete:
        unclear = "The notebook does not have its complete output."
    return CellToRerun(
        cell_id=CellId(cell.id),
        source=cell.source,
        outputs=cell.outputs,
        of=of,
        incarnation=about.incarnation,
        skipped=skipped,
        unclear=unclear,
    )
