"""Our extension with one route too many: its verb names no scope."""

from __future__ import annotations

from typing import Any

from tornado import web

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.handler import AgentExecHandler


class UnscopedHandler(AgentExecHandler):
    @web.authenticated
    async def get(self) -> None:
        self.finish(b"{}")


class UnscopedApp(AgentExecApp):
    routes = (*AgentExecApp.routes, ("/unscoped", UnscopedHandler))


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "tests.auth.unscoped_extension", "app": UnscopedApp}]
