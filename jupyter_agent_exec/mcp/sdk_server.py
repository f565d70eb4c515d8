"""The SDK's server: which of our functions answers which of MCP's methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, get_args

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import allowed_log_levels
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .._version import __version__
from ..auth.scopes import Scope
from ..auth.validation import read_arguments
from ..errors import AgentExecError, Forbidden
from ..guide import guide
from ..tasks import Tasks
from . import (
    resources,
    tools_executions,
    tools_files,
    tools_kernels,
    tools_notebooks,
    tools_sessions,
)
from .call import Asker, Call, Elicited, Gone, LogLevel, Managers
from .endpoint import Application, Exchange, Options
from .tool import CANCELLED, INTERNAL, Failure, Tool, object_schema, refusal, result_of

Context = ServerRequestContext[Any, Any]

ASKER: Final = "jupyter_agent_exec.asker"
"""Under which a request's scope has its `Asker`."""


class Methods:
    """What is answered to MCP's methods; each asks who sends this very request."""

    def __init__(self, managers: Managers, calls: Calls, levels: LogLevels) -> None:
        self._managers = managers
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
        return types.ListPromptsResult(prompts=list(resources.PROMPTS))

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return what a prompt says."""
        return await resources.prompt(self.call(context), params.name, params.arguments or {})

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
            managers=self._managers,
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


def make_server(managers: Managers, calls: Calls, options: Options) -> Server[Any]:
    """Return a server that answers with our functions."""
    methods = Methods(managers, calls, LogLevels(options.max_sessions))
    server: Server[Any] = Server(
        "jupyter-agent-exec",
        version=__version__,
        title="Jupyter",
        instructions=guide(None, default_timeout=managers.settings.bounds.timeout),
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
async def serving(managers: Managers, options: Options) -> AsyncIterator[Application]:
    """Serve clients for as long as the block lasts; one task enters and leaves it."""
    calls = Calls(interrupts=options.disconnect_interrupts, log=options.log)
    manager = StreamableHTTPSessionManager(
        make_server(managers, calls, options),
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


STOP_SECONDS = 5.0
"""For which calls that nobody waits for any more may go on when the server stops."""


class Calls:
    """Runs tools, each in a task of its own: a client that goes away ends its wait, not the work.

    Parameters
    ----------
    interrupts
        Whether an execution is interrupted when the client that waits for it goes away.
    """

    def __init__(self, *, interrupts: bool, log: logging.Logger) -> None:
        self._interrupts = interrupts
        self._log = log
        self._tasks = Tasks(log)
        self._going: set[Call] = set()

    async def run(
        self, tool: Tool[Any], call: Call, arguments: Any
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool and return what its client is told."""
        task = self._tasks.start(self._told(tool, call, arguments), f"mcp-{tool.name}")
        self._going.add(call)
        task.add_done_callback(lambda _: self._going.discard(call))

        def leave(_: asyncio.Future[None]) -> None:
            call.cancel()

        call.asker.gone.add_done_callback(leave)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            call.asker.gone.remove_done_callback(leave)
        return task.result()

    async def stop(self) -> None:
        """End the waits of all calls, and return when what they had begun is done."""
        self._interrupts = False  # the server ends all code in its own order
        for call in tuple(self._going):
            call.cancel()
        await self._tasks.end(STOP_SECONDS)

    async def _told(
        self, tool: Tool[Any], call: Call, arguments: Any
    ) -> CallToolResult | InputRequiredResult:
        try:
            answered = await tool.run(call, arguments)
            call.asker.check_still()
            return result_of(answered)
        except AskFirst as question:
            return question.result
        except Gone:
            await self._interrupt(call)
            return refusal(CANCELLED)
        except AgentExecError as error:
            call.asker.note_denial(error, "tools/call", tool.name)
            return refusal(Failure.of(error))
        except Exception:
            self._log.exception("The tool %s failed", tool.name)
            return refusal(INTERNAL)

    async def _interrupt(self, call: Call) -> None:
        if self._interrupts and call.watched is not None:
            with suppress(AgentExecError):  # as when it has just finished
                await call.managers.sessions.cancel(call.watched, call.caller)


_QUESTION: Final = "question"
"""The key of the one thing that a call asks."""

_LEVELS: Final[tuple[str, ...]] = get_args(types.LoggingLevel)


class AskFirst(Exception):
    """The call ends with a question; the client sends it again with the answer.

    Parameters
    ----------
    result
        What the client is told instead of an answer.
    """

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class LogLevels:
    """From which level on a client of the older revisions wants its log; it sets this once.

    Parameters
    ----------
    most
        For how many of the clients' sessions it is remembered; the oldest is forgotten.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._levels: dict[str, types.LoggingLevel] = {}

    def set(self, session_id: str, level: types.LoggingLevel) -> None:
        """Remember a client's level."""
        self._levels.pop(session_id, None)
        while len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[session_id] = level

    def takes(self, session_id: str | None, level: LogLevel) -> bool:
        """Return whether a client wants what is written with a level."""
        least = self._levels.get(session_id or "", "info")
        return _LEVELS.index(level) >= _LEVELS.index(least)


class SdkClient:
    """The client of one call, as the SDK knows it.

    Parameters
    ----------
    context
        Of the SDK, for this call.
    answers
        What the client answered in the rounds before.
    session_id
        The client's own; None in revisions without.
    """

    def __init__(
        self,
        context: ServerRequestContext[Any, Any],
        *,
        answers: types.InputResponses | None,
        session_id: str | None,
        levels: LogLevels,
    ) -> None:
        self._context = context
        self._answers = answers or {}
        self._session_id = session_id
        self._levels = levels
        self._told = 0

    @property
    def _stateless(self) -> bool:
        return self._context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def name(self) -> str | None:
        """What it calls itself; None if it does not say."""
        params = self._context.session.client_params
        return None if params is None else params.client_info.name

    @property
    def can_elicit(self) -> bool:
        """Whether it can ask its person something, with a form."""
        able = self._context.session.client_capabilities
        if able is None or able.elicitation is None:
            return False
        only_urls = able.elicitation.form is None and able.elicitation.url is not None
        return not only_urls and (self._stateless or self._context.session.can_send_request)

    async def progress(self, message: str, fraction: float | None) -> None:
        """Tell how far a call is, if the client asked for that; the number only ever grows."""
        self._told += 1
        progress, total = (self._told, None) if fraction is None else (fraction, 1.0)
        await self._context.session.report_progress(progress, total, message)

    async def log(self, level: LogLevel, text: str) -> None:
        """Write to the client's log, if it takes that level."""
        if self._stateless:
            wanted = level in allowed_log_levels(self._context.protocol_version, self._context.meta)
        else:
            wanted = self._levels.takes(self._session_id, level)
        if wanted:
            params = types.LoggingMessageNotificationParams(
                level=level, data=text, logger="jupyter-agent-exec"
            )
            await self._context.session.send_notification(
                types.LoggingMessageNotification(params=params), self._context.request_id
            )

    async def elicit(self, message: str, schema: dict[str, Any], state: str) -> Elicited:
        """Ask the client's person; end the call with the question where the revision wants that."""
        if not self._stateless:
            answer: Any = await self._context.session.elicit_form(
                message, schema, self._context.request_id
            )
            return _elicited(answer)
        answer = self._answers.get(_QUESTION)
        if isinstance(answer, types.ElicitResult):
            return _elicited(answer)
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        raise AskFirst(
            types.InputRequiredResult(
                input_requests={_QUESTION: types.ElicitRequest(params=params)},
                request_state=state,
            )
        )


def _elicited(answer: types.ElicitResult) -> Elicited:
    return Elicited(action=answer.action, content=answer.content or {})


TOOLS: tuple[Tool[Any], ...] = (
    *tools_sessions.TOOLS,
    *tools_executions.TOOLS,
    *tools_kernels.TOOLS,
    *tools_notebooks.TOOLS,
    *tools_files.TOOLS,
)
