"""The routes to run code again and compare."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from tornado import web

from ..auth.operations import requires
from ..models import Request, Rerun, Restoration, Restore, RunAgain
from ..sessions.answers import NAMESPACE
from ..sessions.handlers import SessionsBase
from .manager import Reruns
from .restores import Restores


class RerunQuery(Request, frozen=True, kw_only=True):
    """How long to wait for more."""

    after: Annotated[int, Meta(ge=0)] = 0
    """The number of cells that the client has seen."""
    wait: Annotated[float, Meta(ge=0, le=60)] = 0
    """Seconds to hold the answer until more cells are compared."""


class RerunsBase(SessionsBase):
    """Base of the handlers below."""

    reruns: Reruns
    restores: Restores


class RerunsHandler(RerunsBase):
    """All code that runs again."""

    @web.authenticated
    @requires("decide", body=RunAgain, answers={202: Rerun})
    async def post(self, body: RunAgain) -> None:
        """Run a session's code, or a notebook's, again in a fresh kernel, and compare."""
        await self.authorize("exec")
        rerun = await self.reruns.start(body, self.caller)
        location = f"{self.public_path}{NAMESPACE}/reruns/{rerun.session_id}"
        self.answer(rerun, 202, location=location)


class RerunHandler(RerunsBase):
    """A session in which code runs again."""

    @web.authenticated
    @requires("history:read", query=RerunQuery, answers={200: Rerun})
    async def get(self, session_id: str, query: RerunQuery) -> None:
        """Read how its outputs compare with those before."""
        with self.manager.holding(self.caller, query.wait):
            rerun = await self.reruns.rerun(session_id, after=query.after, wait=query.wait)
        self.check_token()
        self.answer(rerun)


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
    ("/reruns", RerunsHandler),
    ("/reruns/{session_id}", RerunHandler),
    ("/sessions/{session_id}/restore", RestoreHandler),
]
