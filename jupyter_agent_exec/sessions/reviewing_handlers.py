"""The routes by which people decide about outputs of agents."""

from __future__ import annotations

from tornado import web

from ..access.handler import requires
from ..models import AcceptOutputs, DiscardOutputs, Execution, ExecutionList
from .accepting import Decisions
from .handlers import SessionsBase


class DecisionsBase(SessionsBase):
    """Base of the handlers below."""

    decisions: Decisions


class AcceptHandler(DecisionsBase):
    """An execution's outputs, accepted."""

    @web.authenticated
    @requires("edit:notebook", body=AcceptOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: AcceptOutputs) -> None:
        """Bring an execution's original outputs into the notebook, and trust its cell."""
        await self.answer_execution(await self.decisions.accept(execution_id, self.caller))


class DiscardHandler(DecisionsBase):
    """An execution's outputs, discarded."""

    @web.authenticated
    @requires("edit:notebook", body=DiscardOutputs, answers={200: Execution})
    async def post(self, execution_id: str, body: DiscardOutputs) -> None:
        """Take an execution's outputs out of the notebook; accepting brings them back."""
        await self.answer_execution(await self.decisions.discard(execution_id, self.caller))


class AcceptAllHandler(DecisionsBase):
    """All outputs of a session that are held, accepted."""

    @web.authenticated
    @requires("edit:notebook", body=AcceptOutputs, answers={200: ExecutionList})
    async def post(self, session_id: str, body: AcceptOutputs) -> None:
        """Accept all outputs of a session of which something is held back in the notebook."""
        records = await self.decisions.accept_all(session_id, self.caller)
        await self.answer_large(
            records, lambda told: ExecutionList(executions=told, next_after=None)
        )


ROUTES: list[tuple[str, type[DecisionsBase]]] = [
    ("/executions/{execution_id}/accept", AcceptHandler),
    ("/executions/{execution_id}/discard", DiscardHandler),
    ("/sessions/{session_id}/accept", AcceptAllHandler),
]
