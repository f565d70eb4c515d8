"""The routes by which people decide what of agents stays in a notebook: outputs and cells.

Whoever decides changes a notebook, and must be allowed both.
"""

from __future__ import annotations

from collections.abc import Sequence

from tornado import web

from ..auth.handler import requires
from ..models import (
    AcceptOutputs,
    DiscardCell,
    DiscardOutputs,
    Execution,
    ExecutionList,
    RestoreCell,
    RestoreOutputs,
)
from ..records import ExecutionRecord
from ..sessions.handlers import SessionsBase
from .discarded_cells import CellDecisions
from .output_decisions import OutputDecisions


class DecisionsBase(SessionsBase):
    """Base of the handlers below."""

    output_decisions: OutputDecisions
    cell_decisions: CellDecisions

    async def answer_executions(self, records: Sequence[ExecutionRecord]) -> None:
        """Answer with all executions that were decided on."""
        await self.answer_large(
            records, lambda told: ExecutionList(executions=told, next_after=None)
        )


class AcceptHandler(DecisionsBase):
    """An execution's outputs, accepted."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=AcceptOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: AcceptOutputs) -> None:
        """Bring an execution's original outputs into the notebook, and trust its cell."""
        await self.answer_execution(await self.output_decisions.accept(execution_id, self.caller))


class DiscardHandler(DecisionsBase):
    """An execution's outputs, discarded."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=DiscardOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: DiscardOutputs) -> None:
        """Take an execution's outputs out of the notebook; accepting brings them back."""
        await self.answer_execution(await self.output_decisions.discard(execution_id, self.caller))


class RestoreHandler(DecisionsBase):
    """An execution's outputs, as they were before a decision."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=RestoreOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: RestoreOutputs) -> None:
        """Take back the last decision about an execution's outputs."""
        await self.answer_execution(await self.output_decisions.restore(execution_id, self.caller))


class DiscardCellHandler(DecisionsBase):
    """An execution's cell, taken out of its notebook."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=DiscardCell, answers={200: Execution})
    async def post(self, execution_id: str, body: DiscardCell) -> None:
        """Take an execution's cell out of the notebook, if it is as the agent left it."""
        await self.answer_execution(await self.cell_decisions.discard(execution_id, self.caller))


class RestoreCellHandler(DecisionsBase):
    """An execution's cell, back in its notebook."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=RestoreCell, answers={200: Execution})
    async def post(self, execution_id: str, body: RestoreCell) -> None:
        """Put a cell that was discarded back to where it was, as it was."""
        await self.answer_execution(await self.cell_decisions.restore(execution_id, self.caller))


class AcceptAllHandler(DecisionsBase):
    """All outputs of a session that are held, accepted."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=AcceptOutputs, answers={200: ExecutionList})
    async def post(self, session_id: str, body: AcceptOutputs) -> None:
        """Accept all outputs of a session of which something is held back in the notebook."""
        decided = await self.output_decisions.accept_all(session_id, self.caller)
        await self.answer_executions(decided)


class DiscardAllHandler(DecisionsBase):
    """All outputs of a session that nobody has decided on, discarded."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=DiscardOutputs, answers={200: ExecutionList})
    async def post(self, session_id: str, body: DiscardOutputs) -> None:
        """Take all outputs of a session out of the notebook that nobody has decided on."""
        decided = await self.output_decisions.discard_all(session_id, self.caller)
        await self.answer_executions(decided)


class DiscardCellsHandler(DecisionsBase):
    """All cells of a session, taken out of its notebook."""

    @web.authenticated
    @requires("edit:notebook", "decide", body=DiscardCell, answers={200: ExecutionList})
    async def post(self, session_id: str, body: DiscardCell) -> None:
        """Take all cells of a session out of the notebook that are as the agent left them."""
        decided = await self.cell_decisions.discard_all(session_id, self.caller)
        await self.answer_executions(decided)


ROUTES: list[tuple[str, type[DecisionsBase]]] = [
    ("/executions/{execution_id}/accept", AcceptHandler),
    ("/executions/{execution_id}/discard", DiscardHandler),
    ("/executions/{execution_id}/restore", RestoreHandler),
    ("/executions/{execution_id}/cell/discard", DiscardCellHandler),
    ("/executions/{execution_id}/cell/restore", RestoreCellHandler),
    ("/sessions/{session_id}/accept", AcceptAllHandler),
    ("/sessions/{session_id}/discard", DiscardAllHandler),
    ("/sessions/{session_id}/cells/discard", DiscardCellsHandler),
]
