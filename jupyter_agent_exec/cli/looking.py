"""`jupyter agent-exec variables` and `packages`: look into a session's kernel."""

from __future__ import annotations

from argparse import Namespace

from ..client.display import one_line
from ..models import Variable
from . import exit_codes
from .connection import connected
from .console import Console


def variables(arguments: Namespace, console: Console) -> int:
    """List the variables of a session's kernel."""
    with connected(arguments, console, may_start=False) as client:
        found = client.session(arguments.session).variables(arguments.match, limit=arguments.limit)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    rows = [(each.name, each.type, _size(each), each.preview or "") for each in found.variables]
    console.table(("NAME", "TYPE", "SIZE", "VALUE"), rows, 80)
    _note_more(found.more, console)
    return exit_codes.OK


def packages(arguments: Namespace, console: Console) -> int:
    """List what code in a session's kernel can import."""
    with connected(arguments, console, may_start=False) as client:
        found = client.session(arguments.session).packages(arguments.match, limit=arguments.limit)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    rows = [
        (each.name, one_line(each.version, 30), ", ".join(each.import_names))
        for each in found.packages
    ]
    console.table(("PACKAGE", "VERSION", "IMPORTED AS"), rows, 80)
    _note_more(found.more, console)
    return exit_codes.OK


def _size(variable: Variable) -> str:
    if variable.shape is not None:
        return " × ".join(map(str, variable.shape)) or "scalar"
    return "" if variable.length is None else str(variable.length)


def _note_more(more: int, console: Console) -> None:
    if more:
        console.note(f"{more} more (--limit N, or a part of their names)")
