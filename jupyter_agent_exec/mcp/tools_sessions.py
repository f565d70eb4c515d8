"""The tools that open, list, stop and export sessions, and inspect their kernels."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from mcp_types import ToolAnnotations
from msgspec import Meta

from .. import models
from ..errors import InvalidRequest
from ..files.file import Conditions
from ..models import derive
from ..sessions.answers import NAMESPACE
from ..text.counts import counted
from ..text.guide import about_session
from ..types import ExecutionId, NextApproval, SessionId, SessionStatus
from . import budget
from .call import Call
from .results import cut, execution_answer, fitting, next_code, nothing
from .tool import READS, Answered, Tool

NAME_CHARACTERS: Final = 200
"""Maximum characters of an agent's name."""

RUNS: Final = ("exec:scratch", "exec:notebook")
LOOKS: Final = (*RUNS, "look:notebook")

TARGET: Final = (
    '{"kind": "scratch"}: a kernel of your own; also `kernel_name`, `cwd`, `isolated`. '
    '{"kind": "notebook", "path": …}: the user\'s notebook and kernel; your code becomes cells; '
    '`"create": true` makes it. {"kind": "kernel", "kernel_id": …}.'
)


class SessionAnswer(models.Answer, frozen=True, kw_only=True):
    """A session. What is null is left out."""

    session_id: SessionId
    status: SessionStatus
    close_reason: str | None
    agent: str
    title: str | None
    path: str | None
    """Current path of its notebook."""
    kernel: str | None
    """Name and state of its kernel."""
    executions: int
    """Number of executions that the server has accepted."""
    next_approval: NextApproval | None
    """What happens to the code that you send next; null if it is closed."""
    notes: list[str] | None
    """What else the text says."""
    is_new: bool | None = None


def session_answer(
    session: models.Session, notes: list[str] | None = None, *, is_new: bool | None = None
) -> SessionAnswer:
    """Return a session for an answer."""
    kernel = session.kernel
    return derive(
        SessionAnswer,
        session,
        session_id=session.id,
        agent=session.agent.name,
        kernel=None if kernel is None else f"{kernel.name} {kernel.execution_state}",
        notes=notes,
        is_new=is_new,
    )


def _answer(
    session: models.Session, notes: list[str] | None = None, *, is_new: bool | None = None
) -> Answered:
    """Return the answer about one session."""
    known = ["It was open already."] if is_new is False else []
    return Answered(
        text=cut("\n".join([_line(session), *known, *(notes or ())]), budget.LIST_BYTES),
        structured=session_answer(session, notes, is_new=is_new),
    )


def _line(session: models.Session) -> str:
    where = {
        models.ScratchTarget: "its own kernel",
        models.NotebookTarget: f"notebook {session.path!r}",
    }.get(type(session.target), "a kernel that others use")
    title = "" if session.title is None else f", {session.title!r}"
    kernel = session.kernel
    state = "no kernel" if kernel is None else f"{kernel.name!r} {kernel.execution_state}"
    asking = f", {session.asking} await approval" if session.asking else ""
    why = "" if session.close_reason in (None, "closed") else f" ({session.close_reason})"
    return (
        f"{session.id}: {session.status}{why}, calls itself {session.agent.name!r}{title}, in "
        f"{where} ({state}), {counted(session.executions, 'execution')}{asking}"
    )


# -- open --------------------------------------------------------------------------------------


class OpenArguments(models.Request, frozen=True, kw_only=True):
    """The agent, the kernel or notebook that it works in, and options of the session."""

    target: Annotated[models.Target, Meta(description="As in execute.")] = models.ScratchTarget()
    agent: Annotated[models.Name | None, Meta(description="Your name.")] = None
    model: Annotated[models.Name | None, Meta(description="Your model.")] = None
    title: Annotated[
        Annotated[str, Meta(max_length=500)] | None,
        Meta(description="What you will do, for the user."),
    ] = None
    client_id: Annotated[
        models.Name | None,
        Meta(description="Any id: the same one gets the same session."),
    ] = None
    allow_stdin: Annotated[bool, Meta(description="Code may ask for input; see give_input.")] = (
        False
    )
    timeout: Annotated[
        models.Seconds | None, Meta(description="Seconds that each execution may run.")
    ] = None
    restore: Annotated[
        SessionId | None,
        Meta(description="A session whose kernel ended: run again what made its variables."),
    ] = None


async def begin_session(
    call: Call, asked: OpenArguments, key: str | None = None
) -> tuple[models.Session, bool]:
    """Open a session; return it, and whether it is new.

    Parameters
    ----------
    key
        The client's id if it gives none; in a chat, that is the chat's.
    """
    chat = call.asker.chat
    await call.authorize("look")
    if isinstance(asked.target, models.NotebookTarget) and call.caller.grants is None:
        await call.authorize("edit:notebook")
    wanted = derive(
        models.OpenSession,
        asked,
        agent=models.Agent(
            name=chat.persona if chat else asked.agent or _client_name(call), model=asked.model
        ),
        client_id=asked.client_id or (chat.client_id(asked.target) if chat else key),
        limits=models.Limits(timeout=asked.timeout),
    )
    return await call.managers.sessions.open(wanted, call.caller)


async def _restore(call: Call, session_id: SessionId) -> Answered:
    await call.reach_session("exec", session_id)
    told = await call.managers.restores.restore(session_id, models.Restore(), call.caller)
    session = await call.managers.sessions.history.session(told.session_id)
    lines = [f"Restore: {told.status}."]
    for cell in told.cells:
        ran = f"{cell.execution_id} {cell.status}" if cell.execution_id else cell.left_out
        lines.append(cut(f"#{cell.seq} {cell.source}: {ran}"))
    return _answer(session, lines)


async def open_session(call: Call, asked: OpenArguments) -> Answered:
    """Open a session: a kernel that keeps its variables.

    Pass its `session_id` to the other tools. `execute` with a `target` does it too.
    """
    if asked.restore is not None:
        return await _restore(call, asked.restore)
    session, is_new = await begin_session(call, asked)
    return _answer(session, list(about_session(session)), is_new=is_new)


def _client_name(call: Call) -> str:
    """Return the name that users see for an agent that gives no name."""
    name = (call.client_name or "").replace("\0", "")
    return name.strip()[:NAME_CHARACTERS] or "MCP agent"


OPEN: Final = Tool(
    run=open_session,
    title="Open a session",
    scopes=LOOKS,
    alternatives=tuple(
        ("restore", name) for name in OpenArguments.__struct_fields__ if name != "restore"
    ),
    hints=ToolAnnotations(destructive_hint=False, open_world_hint=False),
    examples=(
        {"agent": "analyst", "title": "Sales by region", "client_id": "sales-1"},
        {"target": {"kind": "notebook", "path": "work/sales.ipynb"}},
    ),
)


# -- list --------------------------------------------------------------------------------------


class ListArguments(models.Request, frozen=True, kw_only=True):
    """The sessions to list."""

    status: SessionStatus | Literal["all"] = "open"
    after: Annotated[str | None, Meta(description="The last id before.")] = None


class SessionsAnswer(models.Answer, frozen=True, kw_only=True):
    """Sessions: first open ones, then closed ones, with the newest of each first."""

    sessions: list[SessionAnswer]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
    kernel_names: list[str]
    """Names of the kernels that can be started."""


async def list_sessions(call: Call, asked: ListArguments) -> Answered:
    """List your sessions, and the kernels that can be started."""
    await call.authorize("history:read")
    query = models.SessionsQuery(
        status=None if asked.status == "all" else asked.status, after=asked.after
    )
    found = await call.managers.sessions.history.sessions(
        query, only=call.managers.access.only(call.caller)
    )
    shown = fitting(found.sessions)
    next_after = found.next_after
    if len(shown) < len(found.sessions):
        next_after = shown[-1].id
    lines = [_line(session) + next_code(session.next_approval) for session in shown] or [
        "There is no such session."
    ]
    if next_after is not None:
        lines.append(f'[more: list_sessions(after="{next_after}")]')
    names = await call.managers.kernel_names()
    lines.append(f"[kernel_name may be: {', '.join(names)}]")
    return Answered(
        text="\n".join(lines),
        structured=SessionsAnswer(
            sessions=[session_answer(session) for session in shown],
            next_after=next_after,
            kernel_names=names,
        ),
    )


LIST: Final = Tool(
    run=list_sessions,
    title="List sessions",
    scopes=("history:read",),
    hints=READS,
    examples=({}, {"status": "closed"}),
)


# -- stop --------------------------------------------------------------------------------------


class StopArguments(models.Request, frozen=True, kw_only=True):
    """The execution or session to stop."""

    execution_id: ExecutionId | None = None
    session_id: SessionId | None = None
    restart: Annotated[bool, Meta(description="Give the session a fresh kernel instead.")] = False


async def stop(call: Call, asked: StopArguments) -> Answered:
    """Cancel or interrupt an execution; variables stay.

    Or close a session when its work is done; variables are lost, but not in the user's kernel.
    """
    manager = call.managers.sessions
    if asked.execution_id is None and asked.session_id is None:
        raise InvalidRequest(
            "execution_id: give either execution_id or session_id.", field="execution_id"
        )
    if asked.execution_id is not None:
        await call.reach_execution("stop", asked.execution_id)
        record = await manager.cancel(asked.execution_id, call.caller)
        limit = budget.CELL_TEXT
        return await execution_answer(record, base_url=call.asker.base_url, limit=limit)
    assert asked.session_id is not None
    if asked.restart:
        await call.reach_session("exec", asked.session_id)
        session = await manager.restart(asked.session_id, call.caller)
        return _answer(session, ["The kernel is a fresh one: variables and imports are gone."])
    await call.reach_session("stop", asked.session_id)
    return _answer(await manager.close(asked.session_id, call.caller))


STOP: Final = Tool(
    run=stop,
    title="Stop",
    scopes=LOOKS,
    alternatives=(("execution_id", "session_id"), ("execution_id", "restart")),
    hints=ToolAnnotations(idempotent_hint=True, open_world_hint=False),
    examples=(
        {"execution_id": "x_01…"},
        {"session_id": "s_01…"},
        {"session_id": "s_01…", "restart": True},
    ),
)


# -- export ------------------------------------------------------------------------------------


class ExportArguments(models.Request, frozen=True, kw_only=True):
    """The session to export, and the file."""

    session_id: SessionId
    path: Annotated[
        Annotated[str, Meta(min_length=1, max_length=20_000)] | None,
        Meta(description="An `.ipynb` in the session's folder to write; else get its URL."),
    ] = None


async def export_notebook(call: Call, asked: ExportArguments) -> Answered:
    """Export all that a session ran as a notebook."""
    await call.reach_session("history:read", asked.session_id)
    history = call.managers.sessions.history
    session = await history.session(asked.session_id)
    executions = counted(session.executions, "execution")
    if asked.path is not None:
        await call.reach_session("files", asked.session_id)
        if not asked.path.endswith(".ipynb"):
            raise InvalidRequest("path: must end in .ipynb.", field="path")
        pieces = await history.notebook(asked.session_id)
        data = await call.managers.sessions.history.in_thread(lambda: "".join(pieces).encode())
        done = await call.managers.files.put(
            asked.session_id, asked.path, data, Conditions(), call.caller, is_export=True
        )
        return Answered(text=f"{done.file.path!r}: {executions}, {len(data):,} bytes")
    url = f"{call.asker.base_url}{NAMESPACE}/sessions/{session.id}/notebook"
    return Answered(text=f"{executions} as a notebook: GET {url}")


EXPORT: Final = Tool(
    run=export_notebook,
    title="Export as a notebook",
    scopes=("history:read",),
    hints=ToolAnnotations(idempotent_hint=True, open_world_hint=False),
    examples=({"session_id": "s_01…", "path": "work.ipynb"},),
)


class MatchArguments(models.Request, frozen=True, kw_only=True):
    """The session whose kernel to inspect, and a filter for names."""

    session_id: SessionId
    match: Annotated[models.Match, Meta(description="Only names with this text.")] = ""


async def list_variables(call: Call, asked: MatchArguments) -> Answered:
    """List the variables of a session's kernel with type, shape, columns and preview.

    Also while it runs code.
    """
    await call.reach_session("look", asked.session_id)
    found = await call.managers.inspection.variables(
        asked.session_id, models.VariablesQuery(match=asked.match)
    )
    shown = fitting(found.variables)
    lines = [_variable_line(variable) for variable in shown] or [nothing("variable", asked.match)]
    return _list_answer(lines, found.more + len(found.variables) - len(shown))


def _variable_line(variable: models.Variable) -> str:
    told = [f"{variable.name}: {variable.type}"]
    if variable.shape is not None:
        told.append(f"shape {tuple(variable.shape)}")
    if variable.length is not None:
        told.append(f"length {variable.length}")
    if variable.preview is not None:
        told.append(f"= {variable.preview}")
    if variable.dtype is not None:
        told.append(variable.dtype)
    if variable.index is not None:
        told.append(f"index {variable.index}")
    if variable.dtypes is not None:
        columns = (f"{name} {dtype}" for name, dtype in variable.dtypes.items())
        told.append(f"columns: {cut('; '.join(columns))}")
    return ", ".join(told)


def _list_answer(lines: list[str], more: int) -> Answered:
    note = [f"[{more:,} more; narrow with match]"] if more else []
    return Answered(text="\n".join([*lines, *note]))


VARIABLES: Final = Tool(
    run=list_variables,
    title="List variables",
    scopes=LOOKS,
    hints=READS,
    examples=({"session_id": "s_01…"}, {"session_id": "s_01…", "match": "df"}),
)


async def list_packages(call: Call, asked: MatchArguments) -> Answered:
    """List the packages that a session's kernel can import."""
    await call.reach_session("look", asked.session_id)
    packages = await call.managers.inspection.packages(
        asked.session_id, models.PackagesQuery(match=asked.match)
    )
    listed = fitting(packages.packages, budget.PACKAGES_BYTES)
    lines = [_package_line(package) for package in listed] or [nothing("package", asked.match)]
    return _list_answer(lines, packages.more + len(packages.packages) - len(listed))


def _package_line(package: models.Package) -> str:
    names = [name for name in package.import_names if name != package.name]
    imported = f" (import {', '.join(names)})" if names else ""
    return f"{package.name} {package.version}{imported}"


PACKAGES: Final = Tool(
    run=list_packages,
    title="List packages",
    scopes=LOOKS,
    hints=READS,
    examples=({"session_id": "s_01…", "match": "pandas"},),
)

TOOLS: Final = (OPEN, LIST, STOP, EXPORT, VARIABLES, PACKAGES)
