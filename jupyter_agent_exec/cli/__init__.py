"""The command `jupyter agent-exec`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from io import UnsupportedOperation
from typing import Final

from .._version import __version__
from ..client import InvalidAddress, ServerUnreachable, UnexpectedAnswer
from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from ..errors import AgentExecError
from ..leaves import installed
from . import check, connect, decisions, doctor, exit_codes, mcp, run, sessions, tokens
from .command import Command
from .console import Console
from .usage import Declined, UsageError

_DESCRIPTION = """\
Run code as an agent does, and look at what agents ran.

Every execution becomes a cell in a session's history, which can be searched, verified and
exported as a notebook."""

_EPILOG = f"""\
Commands use the newest of your running Jupyter servers on this machine that has the extension. To
use another one, give --url, or set {URL_VARIABLE} and {TOKEN_VARIABLE}. If none
is running, and no token is given, a command that can work without one starts a server, which ends
with the command.
`verify` and `doctor` need no server.

exit codes: 0 ok, 1 the code raised an error, 2 usage, 3 no server or no connection, 4 the server
refused, 5 interrupted, cancelled or rejected, 6 timed out, 7 the kernel or the server died,
130 Ctrl-C, 143 SIGTERM. Those of verify: see `jupyter agent-exec verify --help`."""

_COMMANDS: Final = (
    run.run,
    sessions.status,
    sessions.sessions,
    sessions.show,
    sessions.search,
    sessions.export,
    decisions.pending,
    decisions.approve,
    decisions.reject,
    decisions.review,
    decisions.pause,
    decisions.resume,
    run.stop,
    ("token", "create, list and revoke agent tokens", tokens.COMMANDS),
    ("grant", "end what agents may run without asking", decisions.GRANT_COMMANDS),
    decisions.erase,
    decisions.accept_break,
    check.verify,
    connect.connect,
    mcp.mcp,
    doctor.doctor,
)


def make_parser() -> ArgumentParser:
    """Return the parser. Its result has the command's function as `command`, and `quiet`."""
    parser = ArgumentParser(
        prog="jupyter agent-exec",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each in (*_COMMANDS, *installed("commands")):
        if isinstance(each, Command):
            each.add_to(commands)
            continue
        name, summary, verbs = each
        group = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        within = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        for verb in verbs:
            verb.add_to(within)
    return parser


__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv
        The arguments after the program's name; None for this process's arguments.
    """
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell completes the command line
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    console = Console(quiet=arguments.quiet, is_json=getattr(arguments, "json", False))
    try:
        code: int | None = arguments.command(arguments, console)
    except (InvalidAddress, UsageError) as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.USAGE
    except Declined as error:
        console.complain(str(error))
        return exit_codes.STOPPED
    except ServerUnreachable as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.UNREACHABLE
    except (AgentExecError, UnexpectedAnswer) as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.REFUSED
    except KeyboardInterrupt:
        console.complain(f"{parser.prog}: interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return exit_codes.BROKEN_PIPE
    except OSError as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.USAGE
    return exit_codes.OK if code is None else code


def _drop_output() -> None:
    """Let what standard output still holds go nowhere when Python flushes it at its exit."""
    with suppress(UnsupportedOperation), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
