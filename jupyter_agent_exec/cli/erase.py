"""`jupyter agent-exec erase`: erase from the record, after the user has seen what goes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from ..client.display import quoted
from ..models import Erasure
from ..text.counts import counted
from .command import any_id, command, option
from .command_client import connected, decided, showing
from .console import Console
from .usage import UsageError

_NOBODY_LOOKS = "Nobody can confirm this here: look with --dry-run, then erase with --yes."


def _options(parser: ArgumentParser) -> None:
    any_id(parser, "[ID]")
    option(parser, "--agent NAME", "all sessions of agents with this name")
    option(parser, "--user NAME", "all sessions of a user, and what the user did in others")
    option(parser, "--text TEXT", "all that contains this text; - reads it from standard input")
    option(parser, "--reason TEXT", "why; it is recorded")
    option(parser, "--dry-run", "only show what would go")
    option(parser, "-y, --yes", "erase without asking")


@command(
    "erase", "erase from the record of closed sessions, after you have seen what goes", _options
)
def erase(arguments: Namespace, console: Console) -> None:
    """Show what goes, ask the user to confirm, and erase it."""
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
        with showing(client, console, "erasing"):
            told = client.erase(**wanted, dry_run=True)
        going = any(each.payloads and not each.is_open for each in told.sessions)
        if going and not arguments.dry_run:
            if not arguments.yes:
                if console.is_json:
                    raise UsageError(_NOBODY_LOOKS)
                _tell(told, console)
                question, declined = "Erase this? It cannot be undone.", "Nothing was erased."
                console.confirm(question, otherwise=_NOBODY_LOOKS, declined=declined)

            def erase() -> Erasure:
                with showing(client, console, "erasing"):
                    return client.erase(**wanted, reason=arguments.reason)

            told = decided(client, console, erase)
    _tell(told, console)


def _text(text: str | None) -> str | None:
    """Return the text to erase; from standard input if it is not to be in the shell's history."""
    return sys.stdin.readline().rstrip("\n") if text == "-" else text


def _tell(told: Erasure, console: Console) -> None:
    if console.is_json:
        console.json(told)
        return
    if told.sessions:
        what_happens = "goes" if told.dry_run else "erased"
        console.listing(
            told.sessions,
            {
                "SESSION": "session_id",
                "EXECUTIONS": "executions",
                "PAYLOADS": "payloads",
                "BYTES": "bytes",
                "": lambda each: "open: close it first" if each.is_open else what_happens,
                "CALLS ITSELF": lambda each: f"{quoted(each.agent)} {each.title or ''}",
            },
        )
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
