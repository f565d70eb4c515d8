"""The tools that inspect a session's kernel: variables, documentation, completions, packages."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from mcp_types import TextContent
from msgspec import Meta

from ..counts import counted
from ..models import Complete, Inspect, Package, Request, Variable
from ..queries import PackagesQuery, VariablesQuery
from ..types import SessionId
from . import budget
from .call import Call
from .results import cut, fitting, nothing
from .tool import READS, Answered, Hints, Tool
from .tools_sessions import LOOKS, RUNS


class ListArguments(Request, frozen=True, kw_only=True):
    """The session whose kernel to inspect, and a filter for names."""

    session_id: SessionId
    match: Annotated[
        str, Meta(description="Only names that contain this text.", max_length=200)
    ] = ""


async def _variables(call: Call, asked: ListArguments) -> Answered:
    await call.reach_session("look", asked.session_id)
    found = await call.managers.inspection.variables(
        asked.session_id, VariablesQuery(match=asked.match)
    )
    shown = fitting(found.variables)
    lines = [_variable_line(variable) for variable in shown] or [nothing("variable", asked.match)]
    return _answer(lines, found.more + len(found.variables) - len(shown))


def _variable_line(variable: Variable) -> str:
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


def _answer(lines: list[str], more: int) -> Answered:
    note = [f"[{more:,} more; narrow with match]"] if more else []
    return Answered(content=[TextContent(text="\n".join([*lines, *note]))])


VARIABLES: Final = Tool(
    name="list_variables",
    title="List variables",
    description=(
        "List the variables of a session's kernel, with type, shape, columns and preview, even "
        "while it runs code, instead of running code to see them."
    ),
    scopes=LOOKS,
    input=ListArguments,
    hints=READS,
    examples=({"session_id": "s_01…"}, {"session_id": "s_01…", "match": "df"}),
    run=_variables,
)


class LookUpArguments(Request, frozen=True, kw_only=True):
    """The name or line of code to look up."""

    session_id: SessionId
    code: Annotated[
        str,
        Meta(
            description="A name, or a line of code up to the place in question; for packages, a "
            "part of their names.",
            min_length=1,
            max_length=100_000,
        ),
    ]
    what: Literal["documentation", "source", "completions", "packages"] = "documentation"
    offset: Annotated[int, Meta(description="Character at which to start.", ge=0)] = 0


async def _look_up(call: Call, asked: LookUpArguments) -> Answered:
    await call.reach_session("exec", asked.session_id)
    inspection = call.managers.inspection
    if asked.what == "packages":
        packages = await inspection.packages(
            asked.session_id, PackagesQuery(match=asked.code[:200])
        )
        listed = fitting(packages.packages, budget.LOOK_UP)
        lines = [_package_line(package) for package in listed] or [nothing("package", asked.code)]
        return _answer(lines, packages.more + len(packages.packages) - len(listed))
    if asked.what == "completions":
        found = await inspection.complete(asked.session_id, Complete(code=asked.code), call.caller)
        shown = fitting([cut(each.text) for each in found.completions], budget.LOOK_UP)
        more = found.more + len(found.completions) - len(shown)
        return _answer(shown or [f"Nothing completes {cut(asked.code, 100)!r}."], more)
    level: Literal[0, 1] = 1 if asked.what == "source" else 0
    inspected = await inspection.inspect(
        asked.session_id, Inspect(code=asked.code, detail_level=level), call.caller
    )
    if not inspected.found:
        text = f"The kernel knows nothing about {cut(asked.code, 100)!r}."
    else:
        text = _part(inspected.text, asked.offset)
    return Answered(content=[TextContent(text=text)])


def _part(text: str, offset: int) -> str:
    """Return a part of a text, of whole lines if they are short, and how to read on."""
    part = text[offset : offset + budget.LOOK_UP]
    end = offset + len(part)
    if end < len(text):
        end = offset + (part.rfind("\n", budget.LOOK_UP // 2) + 1 or len(part))
        note = f"{counted(len(text) - end, 'more character')}: look_up(…, offset={end})"
        return f"{text[offset:end].rstrip()}\n[{note}]"
    return part or f"It ends before offset {offset:,}."


def _package_line(package: Package) -> str:
    names = [name for name in package.import_names if name != package.name]
    imported = f" (import {', '.join(names)})" if names else ""
    return f"{package.name} {package.version}{imported}"


LOOK_UP: Final = Tool(
    name="look_up",
    title="Look up a name",
    description=(
        "Read the documentation or source of a name as the kernel knows it, complete code, or find "
        "installed packages. It may run code, so it needs approval where code does."
    ),
    scopes=RUNS,
    input=LookUpArguments,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    examples=(
        {"session_id": "s_01…", "code": "df.groupby"},
        {"session_id": "s_01…", "code": "pandas", "what": "packages"},
    ),
    run=_look_up,
)

TOOLS: Final = (VARIABLES, LOOK_UP)
