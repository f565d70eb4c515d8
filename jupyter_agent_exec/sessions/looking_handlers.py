"""The routes by which an agent looks into its session's kernel."""

from __future__ import annotations

from tornado import web

from ..auth.handler import AgentExecHandler, requires
from ..models import Complete, Completions, Inspect, Inspection, PackageList, VariableList
from .inspection import Looking
from .queries import PackagesQuery, VariablesQuery


class LookingBase(AgentExecHandler):
    """Base of the handlers below."""

    looking: Looking


class VariablesHandler(LookingBase):
    """The variables in a session's kernel."""

    @web.authenticated
    @requires("exec:scratch", query=VariablesQuery, answers={200: VariableList})
    async def get(self, session_id: str, query: VariablesQuery) -> None:
        """List the variables of the kernel's user, by name."""
        self.answer(await self.looking.variables(session_id, query))


class CompleteHandler(LookingBase):
    """Completion in a session's kernel."""

    @web.authenticated
    @requires("exec:scratch", body=Complete, answers={200: Completions})
    async def post(self, session_id: str, body: Complete) -> None:
        """Say what may follow at a place in code."""
        self.answer(await self.looking.complete(session_id, body, self.caller))


class InspectHandler(LookingBase):
    """Documentation from a session's kernel."""

    @web.authenticated
    @requires("exec:scratch", body=Inspect, answers={200: Inspection})
    async def post(self, session_id: str, body: Inspect) -> None:
        """Say what the documentation has on what stands at a place in code."""
        self.answer(await self.looking.inspect(session_id, body, self.caller))


class PackagesHandler(LookingBase):
    """The packages of a session's kernel."""

    @web.authenticated
    @requires("exec:scratch", query=PackagesQuery, answers={200: PackageList})
    async def get(self, session_id: str, query: PackagesQuery) -> None:
        """List the distributions that code in the kernel can import, by name."""
        self.answer(await self.looking.packages(session_id, query))


ROUTES: list[tuple[str, type[LookingBase]]] = [
    ("/sessions/{session_id}/variables", VariablesHandler),
    ("/sessions/{session_id}/complete", CompleteHandler),
    ("/sessions/{session_id}/inspect", InspectHandler),
    ("/sessions/{session_id}/packages", PackagesHandler),
]
