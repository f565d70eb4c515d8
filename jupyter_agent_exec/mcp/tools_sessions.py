"""The tools that open, list, restart, export and close sessions."""

from __future__ import annotations

from typing import Annotated, Final

from mcp_types import ResourceLink, TextContent
from msgspec import Meta, field
from msgspec.structs import replace

from ..guide import guide
from ..models import (
    Agent,
    Answer,
    Indexing,
    Limits,
    Name,
    NotebookTarget,
    OpenSession,
    Preload,
    Request,
    ScratchTarget,
    Seconds,
    Session,
    SessionKernel,
    Target,
    derive,
)
from ..sessions.queries import SessionsQuery
from ..types import ApprovalMode, SessionId, SessionStatus, TargetKind
from .call import Call
from .results import cut, fitting, notebook_uri
from .tool import Answered, Hints, Tool

NAME_CHARACTERS: Final = 200
"""Maximum characters of an agent's name."""

_RUNS: Final = ("exec:scratch", "exec:notebook")


class SessionAnswer(Answer, frozen=True, kw_only=True):
    """A session."""

    session_id: SessionId
    status: SessionStatus
    close_reason: str | None
    agent: str
    title: str | None
    target: Target
    path: str | None
    """Current path of its notebook."""
    kernel: SessionKernel | None
    executions: int
    """Number of executions that the server has accepted."""
    approval: ApprovalMode
    """Which executions need the user's approval."""
    asking: int
    """Number of executions that wait for approval."""
    last_activity_at: str


def session_answer(session: Session) -> SessionAnswer:
    """Return a session for an answer."""
    return derive(
        SessionAnswer,
        session,
        session_id=session.id,
        agent=session.agent.name,
        target=_without_env(session.target),
    )


def _without_env(target: Target) -> Target:
    """Return a target without its environment variables, which may be long or private."""
    if not isinstance(target, ScratchTarget):
        return target
    return replace(target, env={})


def _line(told: SessionAnswer) -> str:
    where = {ScratchTarget: "its own kernel", NotebookTarget: f"notebook {told.path!r}"}.get(
        type(told.target), "a kernel that others use"
    )
    title = "" if told.title is None else f", {told.title!r}"
    state = "no kernel" if told.kernel is None else f"kernel {told.kernel.execution_state}"
    return (
        f"{told.session_id}: {told.status}, calls itself {told.agent!r}{title}, in {where}, "
        f"{state}, {told.executions} executions"
    )


# -- open --------------------------------------------------------------------------------------


class OpenArguments(Request, frozen=True, kw_only=True):
    """The agent, the kernel or notebook that it works in, and options of the session."""

    agent: Annotated[
        Name | None, Meta(description="Your name, which users see; null for the client's name.")
    ] = None
    model: Annotated[
        Name | None, Meta(description="The name of your language model, if you know it.")
    ] = None
    title: Annotated[
        Annotated[str, Meta(max_length=500)] | None,
        Meta(description="What you are going to do, in words for the user."),
    ] = None
    target: Annotated[
        Target,
        Meta(
            description="Where your code runs. `scratch`: a kernel of your own. `notebook`: the "
            "kernel of the person's notebook at `path`, where your code appears as cells. "
            "`kernel`: a kernel that runs already."
        ),
    ] = ScratchTarget()
    client_id: Annotated[
        Name | None,
        Meta(
            description=(
                "An id that you choose for this piece of work. If you call again with the "
                "same id and target, you get the same session."
            )
        ),
    ] = None
    allow_stdin: Annotated[
        bool, Meta(description="Whether code may ask for input, which give_input answers.")
    ] = False
    timeout: Annotated[
        Seconds | None,
        Meta(
            description="Seconds that each execution may run, unless it has a `timeout` of its own."
        ),
    ] = None
    preload: Annotated[
        list[Preload],
        Meta(
            description="What is loaded into each of its kernels first, in order: modules by "
            "their names, and functions by their source. For kernels of Python.",
            max_length=100,
        ),
    ] = field(default_factory=list)


class OpenAnswer(Answer, frozen=True, kw_only=True):
    """A session that is open."""

    session: SessionAnswer
    is_new: bool
    guide: str
    """Instructions for working in the session."""


async def _open(call: Call, asked: OpenArguments) -> Answered:
    await call.authorize("exec")
    if isinstance(asked.target, NotebookTarget) and call.caller.grants is None:
        await call.authorize("edit:notebook")
    wanted = derive(
        OpenSession,
        asked,
        agent=Agent(name=asked.agent or _client_name(call), model=asked.model),
        limits=Limits(timeout=asked.timeout),
    )
    session, is_new = await call.managers.sessions.open(wanted, call.caller)
    settings = call.managers.settings.within(call.caller.caps)
    text = guide(session, default_timeout=settings.bounds.timeout)
    told = OpenAnswer(session=session_answer(session), is_new=is_new, guide=text)
    return Answered(content=[TextContent(text=f"{_line(told.session)}\n\n{text}")], structured=told)


def _client_name(call: Call) -> str:
    """Return the name that users see for an agent that gives no name."""
    return (call.client_name or "").strip()[:NAME_CHARACTERS] or "MCP agent"


OPEN: Final = Tool(
    name="open_session",
    title="Open a session",
    description=(
        "Open a session, in which code keeps its variables from one execution to the next: with "
        "a kernel of your own, or in the person's notebook. Do this first; keep the `session_id`, "
        "which every other call names. The answer says how to work in it."
    ),
    scopes=("exec:scratch", "exec:notebook"),
    input=OpenArguments,
    output=OpenAnswer,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=False),
    examples=(
        {"agent": "analyst", "title": "Sales by region", "client_id": "sales-1"},
        {
            "agent": "analyst",
            "target": {"kind": "notebook", "path": "work/sales.ipynb"},
            "client_id": "sales-2",
        },
        {"agent": "analyst", "preload": [{"kind": "module", "name": "pandas", "as": "pd"}]},
    ),
    run=_open,
)


# -- list --------------------------------------------------------------------------------------


class ListArguments(Request, frozen=True, kw_only=True):
    """The sessions to list."""

    status: Annotated[
        SessionStatus | None, Meta(description="`open`, `closed`, or null for both.")
    ] = "open"
    target: TargetKind | None = None
    after: Annotated[str | None, Meta(description="`next_after` of the page before.")] = None


class SessionsAnswer(Answer, frozen=True, kw_only=True):
    """Sessions: first open ones, then closed ones, with the newest of each first."""

    sessions: list[SessionAnswer]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
    indexing: Indexing | None
    """Not null while the index is being rebuilt; sessions may be missing from the list."""


async def _list(call: Call, asked: ListArguments) -> Answered:
    await call.authorize("history:read")
    query = SessionsQuery(status=asked.status, target=asked.target, after=asked.after)
    found = await call.managers.sessions.history.sessions(
        query, only=call.managers.access.only(call.caller)
    )
    sessions = [session_answer(session) for session in found.sessions]
    shown = fitting(sessions)
    next_after = found.next_after
    if len(shown) < len(sessions):
        next_after = shown[-1].session_id
    lines = [_line(session) for session in shown] or ["There is none."]
    if next_after is not None:
        lines.append(f'[more: list_sessions(after="{next_after}")]')
    if found.indexing is not None:
        lines.append(f"[{found.indexing}]")
    return Answered(
        content=[TextContent(text="\n".join(lines))],
        structured=SessionsAnswer(sessions=shown, next_after=next_after, indexing=found.indexing),
    )


LIST: Final = Tool(
    name="list_sessions",
    title="List sessions",
    description="List your sessions, to go on with one: its variables are still there.",
    scopes=("history:read",),
    input=ListArguments,
    output=SessionsAnswer,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    examples=({}, {"status": "closed"}),
    run=_list,
)


# -- one session -------------------------------------------------------------------------------


class SessionArguments(Request, frozen=True, kw_only=True):
    """The session to use."""

    session_id: SessionId


async def _close(call: Call, asked: SessionArguments) -> Answered:
    await call.reach_session("stop", asked.session_id)
    told = session_answer(await call.managers.sessions.close(asked.session_id, call.caller))
    return Answered(content=[TextContent(text=_line(told))], structured=told)


CLOSE: Final = Tool(
    name="close_session",
    title="Close a session",
    description=(
        "Close a session when its work is done: what runs is interrupted, a kernel of its own is "
        "shut down and its variables are gone. A person's kernel stays, and so does the record."
    ),
    scopes=_RUNS,
    input=SessionArguments,
    output=SessionAnswer,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    examples=({"session_id": "s_01…"},),
    run=_close,
)


async def _restart(call: Call, asked: SessionArguments) -> Answered:
    await call.reach_session("exec", asked.session_id)
    told = session_answer(await call.managers.sessions.restart(asked.session_id, call.caller))
    text = f"{_line(told)}\nThe kernel is a fresh one: variables and imports are gone."
    return Answered(content=[TextContent(text=text)], structured=told)


RESTART: Final = Tool(
    name="restart_kernel",
    title="Restart the kernel",
    description=(
        "Give a session a fresh kernel: all variables are lost, files stay. Only for a kernel of "
        "your own; of a person's kernel, ask the person."
    ),
    scopes=_RUNS,
    input=SessionArguments,
    output=SessionAnswer,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    examples=({"session_id": "s_01…"},),
    run=_restart,
)


class ExportAnswer(Answer, frozen=True, kw_only=True):
    """Addresses of a session's notebook."""

    session_id: SessionId
    executions: int
    uri: str
    """URI of the MCP resource."""
    url: str
    """Path on the server, for programs that have a credential."""


async def _export(call: Call, asked: SessionArguments) -> Answered:
    await call.reach_session("history:read", asked.session_id)
    session = await call.managers.sessions.history.session(asked.session_id)
    told = ExportAnswer(
        session_id=session.id,
        executions=session.executions,
        uri=notebook_uri(session.id),
        url=f"{call.managers.base_url}/sessions/{session.id}/notebook",
    )
    text = (
        f"The session's {told.executions} executions as a notebook, with sources, outputs and "
        f"images: the resource {told.uri}, or over HTTP GET {told.url}"
    )
    link = ResourceLink(
        name=f"{session.id}.ipynb",
        uri=told.uri,
        title=None if session.title is None else cut(session.title, 200),
        mime_type="application/x-ipynb+json",
    )
    return Answered(content=[TextContent(text=text), link], structured=told)


EXPORT: Final = Tool(
    name="export_notebook",
    title="Export as a notebook",
    description=(
        "Get all that a session ran as a Jupyter notebook that runs again: its address, to read "
        "or to hand to the person."
    ),
    scopes=("history:read",),
    input=SessionArguments,
    output=ExportAnswer,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    examples=({"session_id": "s_01…"},),
    run=_export,
)

TOOLS: Final = (OPEN, LIST, RESTART, CLOSE, EXPORT)
