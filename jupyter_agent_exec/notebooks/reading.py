"""From a notebook to what an agent reads of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ..models import NotebookCell, NotebookCells
from ..text import model_text, output_size, transcript
from ..types import ExecutionId, Via
from .applying import id_of
from .changes import Notebook
from .edits import notebook_hash, source_hash
from .queries import CellsQuery

ReadExecutionOn: TypeAlias = Callable[[ExecutionId, int], str]
"""Says how to read the text of an execution on, from a byte of it."""


def told(
    path: str, via: Via, notebook: Notebook, query: CellsQuery, read_on: ReadExecutionOn
) -> NotebookCells:
    """Return a notebook as it is told.

    Parameters
    ----------
    read_on
        Says how to read the text of an execution on.
    """
    return NotebookCells(
        path=path,
        hash=notebook_hash(notebook.cells),
        via=via,
        cells=[_cell(index, cell, query, read_on) for index, cell in enumerate(notebook.cells)],
    )


def size(notebook: Notebook, *, most: int) -> int:
    """Return about how many characters there are to read; of more than `most`, at least that."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return sum(len(cell["source"]) for cell in notebook.cells) + output_size(outputs, most=most)


def _cell(
    index: int, cell: dict[str, Any], query: CellsQuery, read_on: ReadExecutionOn
) -> NotebookCell:
    ours = cell["metadata"].get("agent_exec")
    ours = ours if isinstance(ours, dict) else {}
    execution_id, agent = ours.get("execution_id"), ours.get("agent")
    agent = agent.get("name") if isinstance(agent, dict) else agent
    execution_id = ExecutionId(execution_id) if isinstance(execution_id, str) else None
    text = transcript(cell.get("outputs", ())) if query.outputs else ""
    return NotebookCell(
        id=id_of(cell),
        index=index,
        cell_type=cell["cell_type"],
        source=_encodable(cell["source"]),
        source_sha256=source_hash(cell["source"]),
        execution_count=cell.get("execution_count"),
        text=model_text(
            _encodable(text),
            limit=query.text_limit,
            read_on=None if execution_id is None else partial(read_on, execution_id),
        ),
        execution_id=execution_id,
        agent=agent if isinstance(agent, str) else None,
    )


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which JSON allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
