"""The tools that inspect a session's kernel: variables, packages, documentation, completions."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from mcp_types import TextContent
from msgspec import Meta

from ..models import (
    Answer,
    Complete,
    Completion,
    Inspect,
    Package,
    PackageList,
    Request,
    Variable,
    VariableList,
)
from ..sessions.queries import PackagesQuery, VariablesQuery
from ..types import SessionId
from . import budget
from .call import Call
from .results import cut, fitting
from .tool import Answered, Hints, Tool

_LOOKS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
_RUNS: Final = ("exec:scratch", "exec:notebook")

Match = Annotated[
    str,
    Meta(description="Only names that contain this text, in upper or lower case.", max_length=200),
]


class ListArguments(Request, frozen=True, kw_only=True):
    """The session whose kernel to inspect, and a filter for names."""

    session_id: SessionId
    match: Match = ""


async def _variables(call: Call, asked: ListArguments) -> Answered:
    await call.reach_session("exec", asked.session_id)
    found = await call.managers.inspection.variables(
        asked.session_id, VariablesQuery(match=asked.match)
    )
    shown = fitting(found.variables)
    told = VariableList(variables=shown, more=found.more + len(found.variables) - len(shown))
    lines = [_variable_line(variable) for variable in shown] or ["There is none."]
    return Answered(
        content=[TextContent(text="\n".join([*lines, *_more(told.more)]))], structured=told
    )


def _variable_line(variable: Variable) -> str:
    told = [f"{variable.name}: {variable.type}"]
    if variable.shape is not None:
        told.append(f"shape {tuple(variable.shape)}")
    if variable.length is not None:
        told.append(f"length {variable.length}")
    if variable.preview is not None:
        told.append(f"= {variable.preview}")
    return ", ".join(told)


def _more(more: int) -> list[str]:
    return [f"[{more:,} more; narrow with match]"] if more else []


VARIABLES: Final = Tool(
    name="list_variables",
    title="List variables",
    description=(
        "List the variables of a session's kernel, with type, shape, length and a short preview, "
        "also while it runs code. Use it instead of running code to see what is there."
    ),
    scopes=_RUNS,
    input=ListArguments,
    output=VariableList,
    hints=_LOOKS,
    examples=({"session_id": "s_01…"}, {"session_id": "s_01…", "match": "df"}),
    run=_variables,
)


async def _packages(call: Call, asked: ListArguments) -> Answered:
    await call.reach_session("exec", asked.session_id)
    found = await call.managers.inspection.packages(
        asked.session_id, PackagesQuery(match=asked.match)
    )
    shown = fitting(found.packages)
    told = PackageList(packages=shown, more=found.more + len(found.packages) - len(shown))
    lines = [_package_line(package) for package in shown] or ["There is none."]
    return Answered(
        content=[TextContent(text="\n".join([*lines, *_more(told.more)]))], structured=told
    )


def _package_line(package: Package) -> str:
    names = [name for name in package.import_names if name != package.name]
    imported = f" (import {', '.join(names)})" if names else ""
    return f"{package.name} {package.version}{imported}"


PACKAGES: Final = Tool(
    name="list_packages",
    title="List packages",
    description=(
        "List the packages that code in a session's kernel can import, with versions and the "
        "names under which they are imported."
    ),
    scopes=_RUNS,
    input=ListArguments,
    output=PackageList,
    hints=_LOOKS,
    examples=({"session_id": "s_01…", "match": "pandas"},),
    run=_packages,
)


class LookUpArguments(Request, frozen=True, kw_only=True):
    """The name or line of code to look up."""

    session_id: SessionId
    code: Annotated[
        str,
        Meta(
            description="A name, or a line of code up to the place in question.",
            min_length=1,
            max_length=100_000,
        ),
    ]
    what: Annotated[
        Literal["documentation", "source", "completions"],
        Meta(
            description=(
                "`documentation` or `source` of the name at the end of the code, or "
                "`completions` of it."
            )
        ),
    ] = "documentation"


class LookUpAnswer(Answer, frozen=True, kw_only=True):
    """The documentation, source or completions that were found."""

    found: bool
    text: str
    """The documentation, or the documentation and the source; empty for completions."""
    completions: list[Completion]
    more: int
    """How many more completions there are."""


async def _look_up(call: Call, asked: LookUpArguments) -> Answered:
    await call.reach_session("exec", asked.session_id)
    looking = call.managers.inspection
    if asked.what == "completions":
        found = await looking.complete(asked.session_id, Complete(code=asked.code), call.caller)
        shown = fitting(
            [
                Completion(text=cut(each.text), type=each.type and cut(each.type, 100))
                for each in found.completions
            ]
        )
        told = LookUpAnswer(
            found=bool(shown),
            text="",
            completions=shown,
            more=found.more + len(found.completions) - len(shown),
        )
        text = "\n".join(each.text for each in shown) or "Nothing was found."
    else:
        level: Literal[0, 1] = 1 if asked.what == "source" else 0
        inspected = await looking.inspect(
            asked.session_id, Inspect(code=asked.code, detail_level=level), call.caller
        )
        text = cut(inspected.text, budget.TEXT) if inspected.found else "Nothing was found."
        told = LookUpAnswer(
            found=inspected.found,
            text=text if inspected.found else "",
            completions=[],
            more=0,
        )
    return Answered(content=[TextContent(text=text)], structured=told)


LOOK_UP: Final = Tool(
    name="look_up",
    title="Look up a name",
    description=(
        "Read the documentation or the source of a function, class or variable as the kernel "
        "knows it, or complete a line of code. The kernel may run code for it, so it counts as an "
        "execution, is recorded, and documentation needs the user's approval where code does."
    ),
    scopes=_RUNS,
    input=LookUpArguments,
    output=LookUpAnswer,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    examples=(
        {"session_id": "s_01…", "code": "df.groupby"},
        {"session_id": "s_01…", "code": "df.gro", "what": "completions"},
    ),
    run=_look_up,
)

TOOLS: Final = (VARIABLES, LOOK_UP, PACKAGES)
