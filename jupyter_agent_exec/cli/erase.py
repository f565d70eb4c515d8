"""`jupyter agent-exec erase`: erase from the record, after the user has seen what goes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from functools import partial

from ..client.display import quoted
from ..models import Erasure
from ..text.counts import counted
from . import exit_codes
from .command import command
from .command_client import connected, decided
from .console import Console
from .usage import UsageError

_NOBODY_LOOKS = "Nobody can confirm this here: look with --dry-run, then erase with --yes."


def _options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="of a session (s_…) or an execution (x_…)"
    )
    parser.add_argument("--agent", metavar="NAME", help="all sessions of agents with this name")
    parser.add_argument(
        "--user", metavar="NAME", help="all sessions of a user, and what the user did in others"
    )
    parser.add_argument(
        "--text",
        metavar="TEXT",
        help="all that contains this text; - reads it from standard input",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why; it is recorded")
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="erase without asking")


@command(
    "erase", "erase from the record of closed sessions, after you have seen what goes", _options
)
def erase(arguments: Namespace, console: Console) -> int:
    """Show what goes, ask the user to confirm, and erase it."""
    if arguments.id is not None and not arguments.id.startswith(("s_", "x_")):
        raise UsageError(f"An id begins with s_ (session) or x_ (execution): {arguments.id!r}.")
    is_session = arguments.id is not None and arguments.id.startswith("s_")
    wanted = {
        "session_id": arguments.id if is_session else None,
        "execution_id": None if is_session else arguments.id,
        "agent": arguments.agent,
        "username": arguments.user,
        "text": _text(arguments.text),
    }
    if sum(value is not None for value in wanted.values()) != 1:
        raise UsageError("Name one thing to erase: an ID, --agent, --user or --text.")
    with connected(arguments, console, may_start=False) as client:
        look = partial(client.erase, **wanted, dry_run=True)
        told = look()
        going = any(each.payloads and not each.is_open for each in told.sessions)
        if arguments.dry_run or not going:
            return _tell(told, arguments, console)
        if not arguments.yes:
            _show(told, console)
            if not console.confirmed("Erase this? It cannot be undone.", _NOBODY_LOOKS):
                console.complain("Nothing was erased.")
                return exit_codes.STOPPED
        told = decided(client, console, lambda: client.erase(**wanted, reason=arguments.reason))
    return _tell(told, arguments, console)


def _text(text: str | None) -> str | None:
    """Return the text to erase; from standard input if it is not to be in the shell's history."""
    return sys.stdin.readline().rstrip("\n") if text == "-" else text


def _tell(told: Erasure, arguments: Namespace, console: Console) -> int:
    if arguments.json:
        console.json(told)
    else:
        _show(told, console)
    return exit_codes.OK


def _show(told: Erasure, console: Console) -> None:
    rows = (
        (
            each.session_id,
            str(each.executions),
            str(each.payloads),
            str(each.bytes),
            "open: close it first" if each.is_open else "goes" if told.dry_run else "erased",
            quoted(each.agent) + ("" if each.title is None else f" {each.title}"),
        )
        for each in told.sessions
    )
    if told.sessions:
        head = ("SESSION", "EXECUTIONS", "PAYLOADS", "BYTES", "", "CALLS ITSELF")
        console.table(head, rows, 60)
    else:
        console.note("There is nothing to erase.")
    facts = sum(each.facts for each in told.sessions)
    if facts:
        console.line(
            f"The text remains in {counted(facts, 'entry')}: in a title, purpose, comment, reason "
            "or path."
        )
    for sentence in told.remains:
        console.note(sentence)
