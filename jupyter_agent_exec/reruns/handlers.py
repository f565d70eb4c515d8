"""The routes to run code again and compare."""

from __future__ import annotations

from tornado import web

from ..auth.operations import requires
from ..models import Restoration, Restore
from ..sessions.answers import NAMESPACE
from ..sessions.handlers import SessionsBase
from .restores import Restores


class RerunsBase(SessionsBase):
    """Base of the handlers below."""

    restores: Restores


class RestoreHandler(RerunsBase):
    """A session whose kernel ended, restored."""

    @web.authenticated
    @requires("exec", body=Restore, answers={200: Restoration, 201: Restoration, 202: Restoration})
    async def post(self, session_id: str, body: Restore) -> None:
        """Run again what made the state of its last kernel; 202 while it goes on."""
        with self.manager.holding(self.caller, body.wait):
            told = await self.restores.restore(session_id, body, self.caller)
        self.check_token()
        location = f"{self.public_path}{NAMESPACE}/sessions/{told.session_id}"
        ran = any(cell.execution_id is not None for cell in told.cells)
        status = 202 if told.status == "running" else 201 if ran else 200
        self.answer(told, status, location=location)


ROUTES: list[tuple[str, type[RerunsBase]]] = [
    ("/sessions/{session_id}/restore", RestoreHandler),
]
