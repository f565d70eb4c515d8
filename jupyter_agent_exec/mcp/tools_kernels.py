"""The tools that inspect a session's kernel: variables and packages."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from ..models import Match, Package, PackagesQuery, Request, Variable, VariablesQuery
from ..types import SessionId
from . import budget
from .call import Call
from .results import cut, fitting, nothing
from .tool import READS, Answered, Tool
from .tools_sessions import LOOKS


class ListArguments(Request, frozen=True, kw_only=True):
    """The session whose kernel to inspect, and a filter for names."""

    session_id: SessionId
    match: Annotated[Match, Meta(description="Only names with this text.")] = ""


async def list_variables(call: Call, asked: ListArguments) -> Answered:
    """List the variables of a session's kernel with type, shape, columns and preview.

    Also while it runs code.
    """
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
    return Answered(text="\n".join([*lines, *note]))


VARIABLES: Final = Tool(
    run=list_variables,
    title="List variables",
    scopes=LOOKS,
    hints=READS,
    examples=({"session_id": "s_01…"}, {"session_id": "s_01…", "match": "df"}),
)


async def list_packages(call: Call, asked: ListArguments) -> Answered:
    """List the packages that a session's kernel can import."""
    await call.reach_session("look", asked.session_id)
    packages = await call.managers.inspection.packages(
        asked.session_id, PackagesQuery(match=asked.match)
    )
    listed = fitting(packages.packages, budget.PACKAGES_BYTES)
    lines = [_package_line(package) for package in listed] or [nothing("package", asked.match)]
    return _answer(lines, packages.more + len(packages.packages) - len(listed))


def _package_line(package: Package) -> str:
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

TOOLS: Final = (VARIABLES, PACKAGES)
