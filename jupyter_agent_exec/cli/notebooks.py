"""`jupyter agent-exec notebooks` and `cells`: look at the notebooks that people have open."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from ..client import AgentExecClient
from ..client.display import one_line, quoted
from ..models import NotebookCell, OpenNotebook, Session
from . import exit_codes
from .connection import connected
from .console import Console

_LINES: Final = 10
"""How many lines of a cell's source, and of its outputs, are shown."""


def notebooks(arguments: Namespace, console: Console) -> int:
    """List the notebooks that are in use."""
    with connected(arguments, console, may_start=False) as client:
        found = client.notebooks()
        if arguments.json:
            console.json(found)
            return exit_codes.OK
        rows = [
            (
                notebook.path,
                _where(notebook),
                "-" if notebook.kernel is None else notebook.kernel.execution_state,
                "-" if notebook.kernel is None else notebook.kernel.name,
                "-" if notebook.kernel is None else notebook.kernel.id,
                _agents(client, notebook),
            )
            for notebook in found
        ]
    console.table(("NOTEBOOK", "OPEN IN", "STATE", "KERNEL", "KERNEL ID", "AGENTS"), rows, 60)
    return exit_codes.OK


def cells(arguments: Namespace, console: Console) -> int:
    """Show a notebook's cells, the beginnings of their sources and outputs."""
    with connected(arguments, console, may_start=False) as client:
        notebook = client.cells(arguments.path)
    if arguments.json:
        console.json(notebook)
        return exit_codes.OK
    for cell in notebook.cells:
        console.line(_head(cell))
        _show(cell.source, "  | ", console)
        _show(cell.text, "  ", console)
        console.line()
    console.note(f"{notebook.path}: {len(notebook.cells)} cells, hash {notebook.hash}")
    return exit_codes.OK


def _where(notebook: OpenNotebook) -> str:
    if notebook.via == "collaboration":
        return "live document"
    if notebook.tabs == 0:
        return "-"
    tabs = "1 tab" if notebook.tabs == 1 else f"{notebook.tabs} tabs"
    return f"{tabs}, unsaved" if notebook.unsaved else tabs


def _agents(client: AgentExecClient, notebook: OpenNotebook) -> str:
    sessions = [client.session(session_id).info for session_id in notebook.session_ids]
    return ", ".join(f"{_who(info)} ({info.id})" for info in sessions)


def _who(info: Session) -> str:
    called = quoted(one_line(info.agent.name, 24))
    return called if info.token is None else f"{one_line(info.token.label, 24)} {called}"


def _head(cell: NotebookCell) -> str:
    head = f"{cell.id or f'cell {cell.index}, without an id'}  {cell.cell_type}"
    if cell.execution_count is not None:
        head += f" [{cell.execution_count}]"
    if cell.agent is not None:
        head += f"  by an agent that calls itself {quoted(one_line(cell.agent, 24))}"
    return head if cell.execution_id is None else f"{head}, {cell.execution_id}"


def _show(text: str, margin: str, console: Console) -> None:
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    for line in lines[:_LINES]:
        console.line(f"{margin}{line}".rstrip())
    if len(lines) > _LINES:
        console.line(f"{margin}… {len(lines) - _LINES} more lines (--json has all)")
