"""The routes of notebooks and of users' decisions, and the WebSocket of open tabs."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec
from tornado import iostream, web
from tornado.websocket import WebSocketClosedError

from ..auth.handler import AgentExecHandler, AgentExecWebSocket
from ..auth.operations import requires
from ..auth.validation import given
from ..errors import InvalidRequest
from ..models import (
    AcceptOutputs,
    DecideEdits,
    EditNotebook,
    Execution,
    ExecutionList,
    KeepEdits,
    KernelRunList,
    NotebookCells,
    NotebookEdited,
    OpenNotebookList,
    ProposalList,
    RedoRound,
    RejectEdits,
    Request,
    RoundUndone,
    ShareSession,
    UndoRound,
)
from ..sessions.answers import over_http
from ..sessions.handlers import SessionsBase
from ..types import ExecutionId, SessionId
from .backends.tab import Page, TabBackend
from .edit_decisions import keep_edits, reject_edits, undo_edits
from .manager import CellsQuery, NotebookManager
from .output_decisions import OutputDecisions
from .proposals import Proposals
from .rounds import redo_round, undo_round
from .sharing import CHECK_SECONDS, SharedNotebooks


class NotebooksBase(AgentExecHandler):
    """Base of the handlers below."""

    notebooks: NotebookManager


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


class KernelRunsHandler(NotebooksBase):
    """What ran in a kernel."""

    @web.authenticated
    @requires("decide", answers={200: KernelRunList})
    async def get(self, kernel_id: str) -> None:
        """List what was seen to run in a kernel, and what makes its outputs out of date."""
        self.answer(self.notebooks.runs(kernel_id))


class CellsHandler(NotebooksBase):
    """The cells of one notebook."""

    @web.authenticated
    @requires("read:notebook", query=CellsQuery, answers={200: NotebookCells})
    async def get(self, path: str, query: CellsQuery) -> None:
        """Read a notebook's cells as they are now, unsaved edits included."""
        if not query.outputs and given(query, "text_limit"):
            raise InvalidRequest("text_limit: not together with outputs=false.", field="text_limit")
        if query.proposed_by is not None:
            await self.access.session(self.caller, "history:read", query.proposed_by)
        self.answer(await self.notebooks.cells(path, query, self._read_on))

    @web.authenticated
    @requires(
        "edit:notebook", body=EditNotebook, answers={200: NotebookEdited, 202: NotebookEdited}
    )
    async def patch(self, path: str, body: EditNotebook) -> None:
        """Change a notebook's cells: all edits, in order, or none. 202: they are proposed."""
        edited = await self.notebooks.edit(path, body, self.caller)
        self.answer(edited, status=200 if edited.proposal_id is None else 202)

    def _read_on(self, id: ExecutionId, offset: int) -> str:
        return over_http(id, self.public_path, offset)


MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""Limit for a message of a page, which may hold a whole notebook with its outputs."""


class ChannelHandler(AgentExecWebSocket):
    """The WebSocket of a JupyterLab page; for users, never for agents."""

    tabs: TabBackend
    max_message_bytes = MAX_MESSAGE_BYTES
    _page: Page | None = None

    @web.authenticated
    @requires("edit:notebook", answers={})
    async def get(self) -> None:  # type: ignore[override]
        """Open the WebSocket over which a JupyterLab page announces its open notebooks."""
        await self.accept()

    def open(self) -> None:
        """Connect the page."""
        self._page = self.tabs.connect(self._send, partial(self.close, 1001))

    def on_message(self, message: str | bytes) -> None:
        """Handle a message of the page. Close the socket if the message is not valid."""
        assert self._page is not None
        try:
            self.tabs.receive(self._page, message)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.log.warning("A JupyterLab page sent something that is not a message: %s", error)
            self.close(1007, "This is not a message of a JupyterLab page.")

    def on_close(self) -> None:
        """Forget the page."""
        if self._page is not None:
            self.tabs.disconnect(self._page)

    async def _send(self, message: bytes) -> None:
        try:
            await self.write_message(message)
        except (WebSocketClosedError, iostream.StreamClosedError) as error:
            raise ConnectionError(str(error)) from error


class AcceptBase(SessionsBase):
    """Base of the handlers below."""

    output_decisions: OutputDecisions


class AcceptHandler(AcceptBase):
    """An execution's outputs, accepted."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=AcceptOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: AcceptOutputs) -> None:
        """Put an execution's original outputs into its cell, and trust the cell."""
        await self.answer_execution(await self.output_decisions.accept(execution_id, self.caller))


class AcceptAllHandler(AcceptBase):
    """All held outputs of a session, accepted."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=AcceptOutputs, answers={200: ExecutionList})
    async def post(self, session_id: str, body: AcceptOutputs) -> None:
        """Accept a session's held outputs. Those whose cells were changed since stay held."""
        await self.answer_large(
            await self.output_decisions.accept_all(session_id, self.caller),
            lambda executions: ExecutionList(executions=executions, next_after=None),
        )


class ProposalsQuery(Request, frozen=True, kw_only=True):
    """Which proposals to list."""

    session_id: SessionId | None = None
    """Those of this session, with what became of each edit."""
    path: str | None = None
    """Those for this notebook."""


class ProposalsBase(AgentExecHandler):
    """Base of the handlers below."""

    proposals: Proposals


class ProposalsHandler(ProposalsBase):
    """Agents' proposed edits."""

    @web.authenticated
    @requires(
        "history:read",
        query=ProposalsQuery,
        answers={200: ProposalList},
        agents="those of the sessions that it may read",
    )
    async def get(self, query: ProposalsQuery) -> None:
        """List proposed edits: the open ones, or with `session_id` all of a session."""
        if query.session_id is not None:
            await self.access.session(self.caller, "history:read", query.session_id)
        proposals = await self.proposals.listed(
            session_id=query.session_id,
            path=query.path,
            decided=query.session_id is not None,
            only=self.access.only(self.caller),
        )
        self.answer(proposals)


class KeepEditsHandler(ProposalsBase):
    """A session's proposed edits, kept."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=KeepEdits, answers={200: ProposalList})
    async def post(self, session_id: str, body: KeepEdits) -> None:
        """Make proposed edits in the notebook, those that fit it. Answers with what became."""
        self.answer(await keep_edits(self.proposals, session_id, body, self.caller))


class RejectEditsHandler(ProposalsBase):
    """A session's proposed edits, rejected."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=RejectEdits, answers={200: ProposalList})
    async def post(self, session_id: str, body: RejectEdits) -> None:
        """Reject proposed edits. The notebook is not changed. Answers with what became."""
        self.answer(await reject_edits(self.proposals, session_id, body, self.caller))


class UndoEditsHandler(ProposalsBase):
    """Decisions about a session's proposed edits, undone."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=DecideEdits, answers={200: ProposalList})
    async def post(self, session_id: str, body: DecideEdits) -> None:
        """Propose rejected edits again, and kept ones whose cells are as the agent left them.

        The kept ones are taken out of the notebook.
        """
        self.answer(await undo_edits(self.proposals, session_id, body, self.caller))


class UndoRoundHandler(ProposalsBase):
    """A session's changes of its notebook, taken back."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=UndoRound, answers={200: RoundUndone})
    async def post(self, session_id: str, body: UndoRound) -> None:
        """Take back what a session changed in its notebook, where nobody has changed it since."""
        self.answer(await undo_round(self.proposals, session_id, body, self.caller))


class RedoRoundHandler(ProposalsBase):
    """A session's changes of its notebook, made again."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=RedoRound, answers={200: RoundUndone})
    async def post(self, session_id: str, body: RedoRound) -> None:
        """Make again what was taken back last, where nobody has changed it since."""
        self.answer(await redo_round(self.proposals, session_id, self.caller))


class ShareHandler(SessionsBase):
    """A session as a notebook to share."""

    sharing: SharedNotebooks

    @web.authenticated
    @requires("exec", body=ShareSession, answers={200: "application/x-ipynb+json"})
    async def post(self, session_id: str, body: ShareSession) -> None:
        """Export a session as a notebook for somebody else, and check that it runs."""
        if self.caller.grants is None:  # a token that runs code in a notebook may read it
            await self.authorize("read:notebook")
        with self.manager.holding(self.caller, CHECK_SECONDS):
            pieces = await self.sharing.export(session_id, self.caller)
        self.check_token()
        await self.send_notebook(session_id, pieces)


ROUTES = (
    ("/notebooks", NotebooksHandler),
    ("/notebooks/{path}/cells", CellsHandler),
    ("/kernels/{kernel_id}/runs", KernelRunsHandler),
    ("/proposals", ProposalsHandler),
    ("/sessions/{session_id}/proposals/keep", KeepEditsHandler),
    ("/sessions/{session_id}/proposals/reject", RejectEditsHandler),
    ("/sessions/{session_id}/proposals/undo", UndoEditsHandler),
    ("/sessions/{session_id}/round/undo", UndoRoundHandler),
    ("/sessions/{session_id}/round/redo", RedoRoundHandler),
    ("/sessions/{session_id}/notebook/share", ShareHandler),
    ("/executions/{execution_id}/accept", AcceptHandler),
    ("/sessions/{session_id}/accept", AcceptAllHandler),
)
"""Paths under the namespace, and their handlers."""
