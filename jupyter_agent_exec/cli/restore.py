"""`jupyter agent-exec restore`: run again what ran in a kernel that ended."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..client.display import one_line
from ..models import Restoration
from . import exit_codes
from .command import command
from .command_client import connected
from .console import Console


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id; open or closed")
    parser.add_argument("--dry-run", action="store_true", help="only show what would run")
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="EXECUTION",
        help="do not run this execution again; may be repeated",
    )


@command("restore", "run again what made the state of a session's last kernel", _options)
def restore(arguments: Namespace, console: Console) -> int:
    """Restore a session, say what ran, and return the exit code."""
    with connected(arguments, console, may_start=False) as client:
        told = client.session(arguments.session).restore(
            leave_out=arguments.leave_out, dry_run=arguments.dry_run
        )
    if arguments.json:
        console.json(told)
    else:
        _show(told, console)
    return exit_codes.FAILED if told.status == "stopped" else exit_codes.OK


def _show(told: Restoration, console: Console) -> None:
    for cell in told.cells:
        state = cell.status or ("left out" if cell.left_out else "would run")
        console.line(f"{cell.seq}  {cell.of}  {state}  {one_line(cell.source, 60)}")
        if cell.left_out:
            console.line(f"    {one_line(cell.left_out, 200)}")
    if told.status == "running":
        console.note("It goes on. Code that awaits approval: jupyter agent-exec approve")
    if not told.cells:
        console.note("No earlier kernel of the session has anything to run again.")
    console.note(f"session {told.session_id}: {told.status}")
