"""Calling tools without a client: with the managers of a real server, and a client that notes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from mcp_types import CallToolResult, TextContent

from jupyter_agent_exec.approvals.manager import Approvals
from jupyter_agent_exec.auth.scopes import Caller, Scope
from jupyter_agent_exec.errors import Forbidden
from jupyter_agent_exec.mcp.call import Call, LogLevels
from jupyter_agent_exec.mcp.endpoint import Chat, Managers, RequestSender
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from jupyter_agent_exec.mcp.tool import PROGRAMS, result_of
from jupyter_agent_exec.mcp.tool import arguments as read_arguments

PERSON = Caller(username="ada", display_name="Ada", access="full")


class NotingClient:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.called: str | None = None
        self.told: list[str] = []
        self.logged: list[str] = []
        self.heard = asyncio.Event()
        """Set when it is sent new output."""


class NotingCall(Call):
    """A call of such a client."""

    def __init__(self, client: NotingClient, *, asker: RequestSender, managers: Managers) -> None:
        context: Any = None
        super().__init__(context, asker=asker, managers=managers, levels=LogLevels(1))
        self._client = client

    async def _send(self, progress: str, output: str) -> None:
        self._client.told.append(progress)
        if output:
            self._client.logged.append(output)
            self._client.heard.set()

    @property
    def client_name(self) -> str | None:
        return self._client.called


class Bench:
    """Calls tools."""

    def __init__(self, managers: Managers, approvals: Approvals) -> None:
        self.managers = managers
        self.approvals = approvals
        self.caller = PERSON
        self.client = NotingClient()
        self.chat: Chat | None = None
        self.scopes: list[Scope] = []
        """Those that were asked for."""
        self.refused: set[Scope] = set()
        """Those that the caller does not have."""

    async def authorize(self, scope: Scope) -> None:
        self.scopes.append(scope)
        if scope in self.refused:
            raise Forbidden(f"No {scope}.")
        self.managers.access.check(self.caller, scope)

    def begin(self) -> Call:
        asker = RequestSender(
            caller=self.caller,
            authorize=self.authorize,
            gone=asyncio.get_running_loop().create_future(),
            owner="tester",
            check_still=lambda: None,
            refused=lambda error, method, tool: None,
            base_url="/",
            lab_url="http://localhost:8888/lab",
            chat=self.chat,
        )
        return NotingCall(self.client, asker=asker, managers=self.managers)

    async def call(self, name: str, /, call: Call | None = None, **arguments: Any) -> Any:
        """Call a tool and return what is structured."""
        return (await self.whole(name, call, **arguments)).structured_content

    async def text(self, name: str, /, **arguments: Any) -> str:
        """Call a tool and return what a model reads first."""
        first = (await self.whole(name, **arguments)).content[0]
        assert isinstance(first, TextContent)
        return first.text

    async def whole(
        self, name: str, /, call: Call | None = None, **arguments: Any
    ) -> CallToolResult:
        """Call a tool as the endpoint does."""
        tool = next(tool for tool in TOOLS if tool.name == name)
        answered = await tool.run(call or self.begin(), read_arguments(tool, arguments))
        result = result_of(answered, PROGRAMS[0])
        assert not result.is_error, result.content
        return result

    async def open(self, **arguments: Any) -> str:
        """Open a session; return its id."""
        opened = await self.call("open_session", **arguments)
        return str(opened["session_id"])

    async def run(self, session_id: str, source: str, **arguments: Any) -> Any:
        """Run code; return what is structured."""
        return await self.call("execute", session_id=session_id, source=source, **arguments)


def size(result: CallToolResult) -> int:
    """Return the bytes of an answer as it is sent."""
    return len(msgspec.json.encode(result.model_dump(mode="json", by_alias=True)))


@pytest.fixture
def bench(jp_serverapp: Any) -> Bench:
    """The tools of a real server, called in its process."""
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    return Bench(app.services.mcp_endpoint._managers, app.services.approvals)
