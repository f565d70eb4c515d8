"""A command of `jupyter agent-exec`: its name, its options and its function."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter, _ActionsContainer
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from .console import Console
from .usage import count, known_id

Run = Callable[[Namespace, Console], int | None]
AddOptions = Callable[[ArgumentParser], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command."""

    name: str
    summary: str
    """What it does, as a sentence without capital and full stop."""
    run: Run
    """Called with the arguments; returns the exit code, or None for 0."""
    add_options: AddOptions | None
    epilog: str | None
    server: bool
    """Whether it has options that name a server."""
    json: bool
    """Whether it can print JSON."""

    def add_to(self, commands: Any) -> None:
        """Add the command to the subparsers of argparse."""
        parser: ArgumentParser = commands.add_parser(
            self.name,
            help=self.summary,
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=self.epilog,
            formatter_class=RawDescriptionHelpFormatter,
        )
        parser.set_defaults(command=self.run)
        if self.json:
            option(parser, "--json", "print JSON")
        option(parser, "-q, --quiet", "print fewer messages on standard error")
        if self.server:
            group = parser.add_argument_group("the server")
            what = "base URL of the server, with or without ?token=; default: "
            option(group, "--url URL", what + URL_VARIABLE)
            what = "a token; others may see it in the list of processes; default: "
            option(group, "--token TOKEN", what + TOKEN_VARIABLE)
        if self.add_options is not None:
            self.add_options(parser)


def command(
    name: str,
    summary: str,
    add_options: AddOptions | None = None,
    *,
    epilog: str | None = None,
    server: bool = True,
    json: bool = True,
) -> Callable[[Run], Command]:
    """Make a command of a function, which gets the arguments and may return an exit code."""
    return lambda run: Command(
        name=name,
        summary=summary,
        run=run,
        add_options=add_options,
        epilog=epilog,
        server=server,
        json=json,
    )


def option(
    parser: _ActionsContainer,
    spelled: str,
    help: str,
    *,
    type: Callable[[str], object] = str,
    choices: Iterable[str] = (),
    default: object = None,
    repeated: bool = False,
) -> None:
    """Add an argument.

    Parameters
    ----------
    parser
        The parser, or a group of it.
    spelled
        As its help spells it: ``ID`` or, if it may be left out, ``[ID]``; ``-q, --quiet``, which is
        true if it is there; ``-n, --limit N``, which has a value.
    help
        What it is for.
    type
        Makes the value of a word.
    choices
        All values that it may have; the help lists them.
    default
        Its value if it is left out.
    repeated
        Whether it may be there more than once. Its value is then a list.
    """
    *flags, name = spelled.split()
    if name.startswith("-"):
        names = [*(flag.rstrip(",") for flag in flags), name]
        parser.add_argument(*names, action="store_true", help=help)
        return
    value, listed = name.strip("[]"), list(choices)
    parser.add_argument(
        *([flag.rstrip(",") for flag in flags] or [value.lower()]),
        metavar=value,
        nargs="?" if value != name else None,
        action="append" if repeated else "store",
        type=type,
        choices=listed or None,
        default=[] if repeated else default,
        help=f"{help} ({', '.join(listed)})" if listed else help,
    )


def session_id(parser: ArgumentParser) -> None:
    """Add the argument SESSION."""
    option(parser, "SESSION", "the session's id")


def any_id(parser: ArgumentParser, spelled: str = "ID") -> None:
    """Add the argument ID of a command about a session or an execution."""
    option(parser, spelled, "of a session (s_…) or an execution (x_…)", type=known_id)


def limit(parser: ArgumentParser, default: int) -> None:
    """Add the option ``--limit``."""
    help = "the largest number of results (%(default)s)"
    option(parser, "-n, --limit N", help, type=count, default=default)
