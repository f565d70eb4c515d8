"""From a notebook to what an agent reads of it. Pure."""

from __future__ import annotations

from typing import Any

from ..models import NotebookCell, NotebookCells
from ..text import model_text, transcript
from ..types import ExecutionId, Via
from .applying import id_of
from .changes import Notebook
from .edits import notebook_hash, source_hash
from .queries import CellsQuery


def told(
    path: str, via: Via, notebook: Notebook, query: CellsQuery, executions_url: str
) -> NotebookCells:
    """Return a notebook as it is told.

    Parameters
    ----------
    executions_url
        Where the texts of executions can be read in full.
    """
    return NotebookCells(
        path=path,
        hash=notebook_hash(notebook.cells),
        via=via,
        cells=[
            _cell(index, cell, query, executions_url) for index, cell in enumerate(notebook.cells)
        ],
    )


def size(notebook: Notebook) -> int:
    """Return about how much there is to read, in characters."""
    return sum(
        len(cell["source"]) + sum(len(str(output)) for output in cell.get("outputs", ()))
        for cell in notebook.cells
    )


def _cell(index: int, cell: dict[str, Any], query: CellsQuery, executions_url: str) -> NotebookCell:
    ours = cell["metadata"].get("agent_exec")
    ours = ours if isinstance(ours, dict) else {}
    execution_id, agent = ours.get("execution_id"), ours.get("agent")
    agent = agent.get("name") if isinstance(agent, dict) else agent
    execution_id = ExecutionId(execution_id) if isinstance(execution_id, str) else None
    url = None if execution_id is None else f"{executions_url}/{execution_id}/text"
    text = transcript(cell.get("outputs", ())) if query.outputs else ""
    return NotebookCell(
        id=id_of(cell),
        index=index,
        cell_type=cell["cell_type"],
        source=_encodable(cell["source"]),
        source_sha256=source_hash(cell["source"]),
        execution_count=cell.get("execution_count"),
        text=model_text(_encodable(text), limit=query.text_limit, url=url),
        execution_id=execution_id,
        agent=agent if isinstance(agent, str) else None,
    )


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which JSON allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
