"""Kept edits in JupyterLab tabs. Those that a tab loses are proposed again.

A tab loses edits if the user closes it, reloads the page or reads the file again without saving.
Edits of cells that the user deleted there are not proposed again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from ..errors import AgentExecError
from ..journal.proposals import RecordedEdit
from ..tasks import Tasks
from ..types import CellId, ProposedEditId, SessionId
from .backends.tab import CellReport, TabBackend
from .proposals import Proposals


class _UnsavedEdits:
    """The kept edits that a tab has, but not yet its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.cells: dict[tuple[SessionId, ProposedEditId], CellId] = {}
        self.deleted: Collection[CellId] = ()


class TabEdits:
    """Tracks the kept edits of open tabs; see the module's documentation."""

    def __init__(self, proposals: Proposals, tabs: TabBackend, *, log: logging.Logger) -> None:
        self._proposals = proposals
        self._tabs = tabs
        self._log = log
        self._unsaved: dict[str, _UnsavedEdits] = {}  # by panel
        self._tasks = Tasks(log)

    def add(self, session_id: SessionId, path: str, edits: Sequence[RecordedEdit]) -> None:
        """Track edits that were kept in a tab."""
        panel = self._tabs.holder(path)
        unsaved = _UnsavedEdits(path) if panel is None else self._of(panel, path)
        unsaved.cells.update({(session_id, edit.id): edit.cell_id for edit in edits})
        if panel is None:  # meanwhile, the tab was saved, closed or reloaded
            self._start(unsaved)

    def announced(self, report: CellReport) -> None:
        """Find out which edits are saved or lost, now that a tab has told its state."""
        shown = report.tab.shown
        unsaved = self._unsaved.get(shown.panel)
        if unsaved is not None and not report.is_new:
            unsaved.path, unsaved.deleted = shown.path, shown.deleted_cells
        elif unsaved is not None:
            del self._unsaved[shown.panel]
            if shown.file is not None and shown.file.event == "read":
                self._start(unsaved)
        for panel, other in list(self._unsaved.items()):
            if other.path == shown.path and not self._tabs.is_open(panel):
                del self._unsaved[panel]
                self._start(other)

    async def stop(self) -> None:
        """Stop working in the background."""
        await self._tasks.end(timeout=1)

    def _of(self, panel: str, path: str) -> _UnsavedEdits:
        return self._unsaved.setdefault(panel, _UnsavedEdits(path))

    def _start(self, unsaved: _UnsavedEdits) -> None:
        self._tasks.start(self._propose(unsaved), f"lost edits of {unsaved.path}")

    async def _propose(self, unsaved: _UnsavedEdits) -> None:
        ids: dict[SessionId, set[ProposedEditId]] = {}
        for (session_id, id), cell_id in unsaved.cells.items():
            if cell_id not in unsaved.deleted:
                ids.setdefault(session_id, set()).add(id)
        for session_id, its in ids.items():
            try:
                await self._proposals.propose_lost(session_id, unsaved.path, its)
            except AgentExecError as error:
                self._log.warning("Lost edits are not proposed again: %s", error.message)
