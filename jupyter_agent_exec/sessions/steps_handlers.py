"""The routes by which an agent runs several steps at once, and answers what code asks for."""

from __future__ import annotations

from tornado import web

from ..auth.handler import requires
from ..models import Execution, GiveInput, RunSteps, Steps
from ..types import FINAL_STATUSES
from .giving import give_input
from .handlers import SessionsBase


class StepsHandler(SessionsBase):
    """Several executions, one after the other."""

    @web.authenticated
    @requires("exec", body=RunSteps, answers={201: Steps, 202: Steps}, headers=("Idempotency-Key",))
    async def post(self, session_id: str, body: RunSteps) -> None:
        """Run several sources; 201 when all have finished, 202 when they go on."""
        await self.authorize_cells(session_id, *(step.placement for step in body.steps))
        with self.manager.holding(self.caller, body.wait):
            records = await self.manager.running.run_steps(
                session_id, body, self.caller, self.idempotency_key
            )
        self.check_still()
        finished = all(record.status in FINAL_STATUSES for record in records)
        self.set_status(201 if finished else 202)
        await self.answer_large(records, lambda told: Steps(executions=told, finished=finished))


class InputHandler(SessionsBase):
    """What the code of an execution asks for."""

    @web.authenticated
    @requires("exec", body=GiveInput, answers={200: Execution})
    async def post(self, execution_id: str, body: GiveInput) -> None:
        """Answer what an execution's code asks for; of several answers the first counts."""
        with self.manager.holding(self.caller, body.wait):
            record = await give_input(self.manager, execution_id, body, self.caller)
        await self.answer_execution(record)


ROUTES: list[tuple[str, type[SessionsBase]]] = [
    ("/sessions/{session_id}/steps", StepsHandler),
    ("/executions/{execution_id}/input", InputHandler),
]
