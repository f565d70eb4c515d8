"""The SDK's server: which of our functions answers which of MCP's methods."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from .._version import __version__
from ..auth.scopes import Scope
from ..auth.validation import read_arguments
from ..errors import AgentExecError, Forbidden
from ..guide import guide
from . import prompts, resources
from .answering import Failure, refusal
from .bridge import Application, Exchange
from .call import Asker, Call
from .calls import Calls
from .doors import Doors
from .options import Options
from .revisions import LogLevels, SdkClient
from .schemas import object_schema
from .tool import Tool
from .tools import TOOLS

Context = ServerRequestContext[Any, Any]

ASKER: Final = "jupyter_agent_exec.asker"
"""Under which a request's scope has its `Asker`."""


class Methods:
    """What is answered to MCP's methods; each asks who sends this very request."""

    def __init__(self, doors: Doors, calls: Calls, levels: LogLevels) -> None:
        self._doors = doors
        self._calls = calls
        self._levels = levels
        self._tools: dict[str, Tool[Any]] = {tool.name: tool for tool in TOOLS}
        self._listed = {tool.name: _described(tool) for tool in TOOLS}

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the schema of a tool's arguments; None if there is no such tool."""
        listed = self._listed.get(name)
        return None if listed is None else listed.input_schema

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools that the caller may call."""
        return types.ListToolsResult(
            tools=[self._listed[name] for name in await self._may(context)]
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool."""
        allowed = await self._may(context)
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"There is no tool of this name; there are: {', '.join(allowed) or 'none'}.",
            )
        if tool.name not in allowed:
            return await _refused(_asker(context), tool)
        try:
            arguments = read_arguments(params.arguments or {}, tool.input)
        except AgentExecError as error:
            return refusal(Failure.of(error))
        call = self.call(context, params)
        return await self._calls.run(tool, call, arguments)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List what the caller may want to read."""
        return types.ListResourcesResult(resources=await resources.listed(self.call(context)))

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the forms of addresses that can be read."""
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a resource."""
        read = await resources.read(self.call(context), params.uri)
        return types.ReadResourceResult(contents=[read])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """List the prompts that a person may give to a model."""
        return types.ListPromptsResult(prompts=list(prompts.PROMPTS))

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return what a prompt says."""
        return await prompts.prompt(self.call(context), params.name, params.arguments or {})

    async def set_level(
        self, context: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Remember from which level on the client wants its log."""
        session_id = _session_id(context)
        if session_id is not None:
            self._levels.set(session_id, params.level)
        return types.EmptyResult()

    def call(self, context: Context, params: types.RequestParams | None = None) -> Call:
        """Return what our functions are given of a request."""
        again = params if isinstance(params, types.InputResponseRequestParams) else None
        client = SdkClient(
            context,
            answers=None if again is None else again.input_responses,
            session_id=_session_id(context),
            levels=self._levels,
        )
        return Call(
            asker=_asker(context),
            doors=self._doors,
            client=client,
            state=None if again is None else again.request_state,
        )

    async def _may(self, context: Context) -> list[str]:
        """Return the names of the tools for which the caller has a scope."""
        asker = _asker(context)
        scopes = dict.fromkeys(scope for tool in self._tools.values() for scope in tool.scopes)
        held = [scope for scope in scopes if await _holds(asker, scope)]
        return [
            tool.name
            for tool in self._tools.values()
            if any(scope in held for scope in tool.scopes)
        ]


def make_server(doors: Doors, calls: Calls, options: Options) -> Server[Any]:
    """Return a server that answers with our functions."""
    methods = Methods(doors, calls, LogLevels(options.max_sessions))
    server: Server[Any] = Server(
        "jupyter-agent-exec",
        version=__version__,
        title="Jupyter",
        instructions=guide(None, default_timeout=doors.settings.bounds.timeout),
        get_tool_input_schema=methods.input_schema,
        on_list_tools=methods.list_tools,
        on_call_tool=methods.call_tool,
        on_list_resources=methods.list_resources,
        on_list_resource_templates=methods.list_templates,
        on_read_resource=methods.read_resource,
        on_list_prompts=methods.list_prompts,
        on_get_prompt=methods.get_prompt,
    )
    # Given to the constructor it would warn that later revisions do without.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, methods.set_level)
    server.middleware.append(Guard(options.log))
    return server


class Guard:
    """Lets no words of an unexpected error out: they go to the log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, or raise what MCP has words for."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except AgentExecError as error:
            _asker(ctx).note_denial(error, ctx.method, "")
            detail = {"code": error.code, "detail": error.detail}
            raise MCPError(types.INVALID_PARAMS, error.message, detail) from error
        except Exception as error:
            self._log.exception("MCP's %s failed", ctx.method)
            raise MCPError(types.INTERNAL_ERROR, "Unhandled error") from error


@asynccontextmanager
async def serving(doors: Doors, options: Options) -> AsyncIterator[Application]:
    """Serve clients for as long as the block lasts; one task enters and leaves it."""
    calls = Calls(interrupts=options.disconnect_interrupts, log=options.log)
    manager = StreamableHTTPSessionManager(
        make_server(doors, calls, options),
        session_idle_timeout=options.session_idle_timeout,
        max_sessions=options.max_sessions,
    )

    async def serve(exchange: Exchange, asker: Asker) -> None:
        # By this the SDK knows whose session it is; the token itself is none of its business.
        token = AccessToken(token="", client_id=asker.owner, scopes=[])
        exchange.scope["user"] = AuthenticatedUser(token)
        exchange.scope[ASKER] = asker
        await manager.handle_request(exchange.scope, exchange.receive, exchange.send)

    async with manager.run():
        try:
            yield serve
        finally:
            await calls.stop()


def _described(tool: Tool[Any]) -> types.Tool:
    hints = tool.hints
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=object_schema(tool.input, examples=tool.examples),
        output_schema=object_schema(tool.output),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


async def _refused(asker: Asker, tool: Tool[Any]) -> types.CallToolResult:
    """Refuse a tool that the caller is not shown, in the words of what it lacks first."""
    try:
        await asker.authorize(tool.scopes[0])
    except Forbidden as error:
        asker.note_denial(error, "tools/call", tool.name)
        return refusal(Failure.of(error))
    raise AssertionError(tool.name)  # it would be shown


async def _holds(asker: Asker, scope: Scope) -> bool:
    try:
        await asker.authorize(scope)
    except Forbidden:
        return False
    return True


def _asker(context: Context) -> Asker:
    assert context.request is not None
    asker = context.request.scope[ASKER]
    assert isinstance(asker, Asker)
    return asker


def _session_id(context: Context) -> str | None:
    assert context.request is not None
    session_id: str | None = context.request.headers.get("mcp-session-id")
    return session_id
