"""The routes of the person's notebooks."""

from __future__ import annotations

from tornado import web

from ..auth.handler import AgentExecHandler, requires
from ..models import EditNotebook, NotebookCells, NotebookEdited, OpenNotebookList
from ..types import ExecutionId
from .manager import NotebookManager
from .queries import CellsQuery


class NotebooksBase(AgentExecHandler):
    """Base of the handlers below."""

    notebooks: NotebookManager
    executions_url: str


class NotebooksHandler(NotebooksBase):
    """The notebooks in use."""

    @web.authenticated
    @requires(
        "read:notebook",
        answers={200: OpenNotebookList},
        agents="the notebooks that it may read",
    )
    async def get(self) -> None:
        """List the notebooks that have a kernel or are open, by path."""
        self.answer(await self.notebooks.list(self.caller, self.access))


class CellsHandler(NotebooksBase):
    """The cells of one notebook."""

    @web.authenticated
    @requires("read:notebook", query=CellsQuery, answers={200: NotebookCells})
    async def get(self, path: str, query: CellsQuery) -> None:
        """Read a notebook's cells as they are now, unsaved edits included."""
        self.answer(await self.notebooks.cells(path, query, self._read_on))

    @web.authenticated
    @requires("edit:notebook", body=EditNotebook, answers={200: NotebookEdited})
    async def patch(self, path: str, body: EditNotebook) -> None:
        """Change a notebook's cells: all edits, in order, or none."""
        self.answer(await self.notebooks.edit(path, body, self.caller))

    def _read_on(self, id: ExecutionId, offset: int) -> str:
        return f"GET {self.executions_url}/{id}/text?offset={offset}"


ROUTES = (
    ("/notebooks", NotebooksHandler),
    ("/notebooks/{path}/cells", CellsHandler),
)
"""Paths under the namespace, and what answers there."""
