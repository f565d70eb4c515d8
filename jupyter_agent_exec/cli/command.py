"""A command of `jupyter agent-exec`: its name, its options and its function."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from .console import Console
from .usage import count

Run = Callable[[Namespace, Console], int]
AddOptions = Callable[[ArgumentParser], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command."""

    name: str
    summary: str
    """What it does, as a sentence without capital and full stop."""
    run: Run
    """Called with the arguments; returns the exit code."""
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
            parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "-q", "--quiet", action="store_true", help="print fewer messages on standard error"
        )
        if self.server:
            group = parser.add_argument_group("the server")
            group.add_argument(
                "--url",
                metavar="URL",
                help=f"base URL of the server, with or without ?token=; default: {URL_VARIABLE}",
            )
            group.add_argument(
                "--token",
                metavar="TOKEN",
                help="a token; others may see it in the list of processes; default: "
                f"{TOKEN_VARIABLE}",
            )
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
    """Make a command of a function, which gets the arguments and returns the exit code."""
    return lambda run: Command(
        name=name,
        summary=summary,
        run=run,
        add_options=add_options,
        epilog=epilog,
        server=server,
        json=json,
    )


def session_id(parser: ArgumentParser) -> None:
    """Add the argument SESSION."""
    parser.add_argument("session", metavar="SESSION", help="the session's id")


def execution_id(parser: ArgumentParser) -> None:
    """Add the argument ID of a command about an execution."""
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")


def limit(parser: ArgumentParser, default: int) -> None:
    """Add the option ``--limit``."""
    parser.add_argument(
        "-n",
        "--limit",
        type=count,
        default=default,
        metavar="N",
        help="the largest number of results (%(default)s)",
    )
