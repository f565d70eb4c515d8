"""`jupyter agent-exec retain` and `hold`: what leaves the record by rule, and what must not."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ..client.display import quoted
from ..models import Hold, Retention
from . import exit_codes
from .command import command
from .command_client import connected, decided
from .console import Console
from .usage import UsageError

_NOBODY_LOOKS = "Nobody can confirm this here: look with --dry-run, then remove with --yes."


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="remove without asking")


@command(
    "retain", "remove the closed sessions that the server's rules of retention let go", _options
)
def retain(arguments: Namespace, console: Console) -> int:
    """Show what goes, ask the user to confirm, and remove it."""
    with connected(arguments, console, may_start=False) as client:
        told = client.retain(dry_run=True)
        if not arguments.dry_run and told.sessions:
            if not arguments.yes:
                _show(told, console)
                if not console.confirmed("Remove this? It cannot be undone.", _NOBODY_LOOKS):
                    console.complain("Nothing was removed.")
                    return exit_codes.STOPPED
            told = decided(client, console, client.retain)
    if arguments.json:
        console.json(told)
    else:
        _show(told, console)
    return exit_codes.OK


def _hold_options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the session's id")
    parser.add_argument("--agent", metavar="NAME", help="all sessions of agents with this name")
    parser.add_argument("--user", metavar="NAME", help="all sessions of a user")
    parser.add_argument("--release", action="store_true", help="release it")
    parser.add_argument("--reason", metavar="TEXT", help="why; it is recorded")


@command("hold", "put sessions on hold, so that nothing removes or erases them", _hold_options)
def hold(arguments: Namespace, console: Console) -> int:
    """Put something on hold or release it, and show what is on hold."""
    wanted = {
        "session_id": arguments.session,
        "agent": arguments.agent,
        "username": arguments.user,
    }
    named = sum(value is not None for value in wanted.values())
    if named > 1 or (arguments.release and not named):
        raise UsageError("Name one thing: a SESSION, --agent or --user.")
    with connected(arguments, console, may_start=False) as client:
        if named:
            holds: Sequence[Hold] = decided(
                client,
                console,
                lambda: client.hold(**wanted, held=not arguments.release, reason=arguments.reason),
            )
        else:
            holds = client.retain(dry_run=True).holds
    if arguments.json:
        console.json(list(holds))
    else:
        _show_holds(holds, console)
    return exit_codes.OK


def _show(told: Retention, console: Console) -> None:
    rows = (
        (
            each.session_id,
            (each.closed_at or "")[:10],
            str(each.bytes),
            "goes" if told.dry_run else "waits for sinks" if each.waits else "removed",
            each.reason,
            quoted(each.agent) + ("" if each.title is None else f" {each.title}"),
        )
        for each in told.sessions
    )
    if told.sessions:
        console.table(("SESSION", "CLOSED", "BYTES", "", "RULE", "CALLS ITSELF"), rows, 60)
    elif told.rules:
        console.note("The rules let nothing go.")
    else:
        console.note("The server has no rules of retention: AgentExecApp.retention.")
    _show_holds(told.holds, console)


def _show_holds(holds: Sequence[Hold], console: Console) -> None:
    for each in holds:
        what = each.session_id or f"user {each.username}"
        if each.agent is not None:
            what = f"agent {quoted(each.agent)}"
        why = "" if each.reason is None else f": {each.reason}"
        console.note(f"On hold: {what}, by {each.by} at {each.at}{why}")
