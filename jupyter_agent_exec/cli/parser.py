"""The command line: its words, and the help for them."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from typing import Any

from .._version import __version__
from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from ..types import FINAL_STATUSES
from . import check, look, notebooks, run

_DESCRIPTION = """\
Run code as an agent does, and look at what agents ran.

Every execution becomes a cell in a session's history, which can be searched, verified and
exported as a notebook."""

_EPILOG = f"""\
Commands talk to the newest Jupyter server of yours that runs here and has the extension; to
another with --url, or with {URL_VARIABLE} and {TOKEN_VARIABLE}. When none
runs, a server is started for the time of the command; not where a person's notebook or kernel is
asked for, which live in a server that runs. `verify` needs none.

exit codes: 0 ok, 1 the code raised an error, 2 usage, 3 no server or no connection, 4 the server
refused, 5 interrupted, cancelled or rejected, 6 timed out, 7 the kernel or the server died,
130 Ctrl-C. Those of verify: see `jupyter agent-exec verify --help`."""

_RUN_EPILOG = """\
examples:
  jupyter agent-exec run '1 + 1'
  jupyter agent-exec run analysis.py --images plots
  generate | jupyter agent-exec run - --json
  jupyter agent-exec run 'x = 2' --keep          says the session's id
  jupyter agent-exec run 'x * 2' --session s_01…
  jupyter agent-exec run 'df.head()' --notebook work/sales.ipynb
  jupyter agent-exec run --notebook work/sales.ipynb --cell 5f1c2a…

In a person's notebook or kernel, code waits while theirs runs, and standard error says so.

Ctrl-C cancels the execution (exit code 130); a second one leaves it alone."""

_VERIFY_EPILOG = """\
exit codes: 0 whole, 1 altered, 2 usage, 3 truncated before the known head, 4 torn last line (a
server died while it wrote), 5 something that the record names is missing. The gravest counts.

examples:
  jupyter agent-exec verify                      the whole history
  jupyter agent-exec verify s_01…                a session, with what the ledger says of it
  jupyter agent-exec verify s_01….ipynb          an export, against its journal in the history
  jupyter agent-exec verify journal.jsonl --head 9f86d0…"""


def make_parser() -> ArgumentParser:
    """Return the parser; what it returns has `command`, a function, and `json`."""
    parser = ArgumentParser(
        prog="jupyter agent-exec",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_sessions(commands)
    _add_show(commands)
    _add_search(commands)
    _add_notebooks(commands)
    _add_export(commands)
    _add_verify(commands)
    _add(commands, "status", look.status, "say how the server is doing")
    return parser


def _add_run(commands: Any) -> None:
    parser = _add(
        commands,
        "run",
        run.run,
        "run code and show its outputs as they come",
        epilog=_RUN_EPILOG,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="code, a file with code, or - for standard input; with --cell that of the cell when "
        "left out",
    )
    parser.add_argument(
        "-c", "--code", action="store_true", help="SOURCE is code, even if a file is named so"
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="how long it may run")
    parser.add_argument(
        "--images", metavar="DIR", help="save the images into this folder, made if need be"
    )
    _add_where(parser)
    _add_placement(parser)


def _add_where(parser: ArgumentParser) -> None:
    where = parser.add_argument_group("where it runs", "a scratch kernel, unless another is named")
    target = where.add_mutually_exclusive_group()
    target.add_argument(
        "--session", metavar="ID", help="go on in this session rather than open one"
    )
    target.add_argument(
        "--notebook",
        metavar="PATH",
        help="in this notebook and its kernel; from the server's root, as `notebooks` lists them",
    )
    target.add_argument("--kernel", metavar="ID", help="in this kernel, without a document")
    where.add_argument(
        "--keep", action="store_true", help="leave the session open afterwards, with its variables"
    )
    where.add_argument(
        "--kernel-name",
        metavar="NAME",
        help="kernelspec of a scratch kernel, or of a notebook that has no kernel yet",
    )
    where.add_argument("--cwd", metavar="PATH", help="folder of the kernel, from the server's root")
    where.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable for the kernel, if the server allows it; may be repeated",
    )
    where.add_argument(
        "--agent", metavar="NAME", default="command-line", help="who asks (%(default)s)"
    )
    where.add_argument("--title", metavar="TEXT", help="what the session is for")


def _add_placement(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("where its cell goes", "to the notebook's end by default")
    group.add_argument(
        "--create", action="store_true", help="make an empty notebook if there is none"
    )
    placement = group.add_mutually_exclusive_group()
    placement.add_argument("--after", metavar="CELL", help="after the cell with this id")
    placement.add_argument("--before", metavar="CELL", help="before the cell with this id")
    placement.add_argument("--cell", metavar="CELL", help="run the cell with this id where it is")
    placement.add_argument("--no-cell", action="store_true", help="into the record only")


def _add_sessions(commands: Any) -> None:
    parser = _add(commands, "sessions", look.sessions, "list sessions, the newest first")
    parser.add_argument("--open", action="store_true", help="only those that are open")
    _add_limit(parser, 50)


def _add_show(commands: Any) -> None:
    parser = _add(commands, "show", look.show, "show a session with what it ran, or one execution")
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    parser.add_argument(
        "--whole", action="store_true", help="an execution's whole text, and nothing else"
    )
    parser.add_argument("--images", metavar="DIR", help="save the images into this folder")


def _add_search(commands: Any) -> None:
    parser = _add(
        commands, "search", look.search, "search sources, outputs and errors, the newest first"
    )
    parser.add_argument(
        "query", metavar="WORDS", nargs="?", default="", help="all executions when left out"
    )
    parser.add_argument("--agent", metavar="NAME", help="only this agent's")
    parser.add_argument(
        "--status", choices=sorted(FINAL_STATUSES), metavar="STATUS", help="only with this status"
    )
    parser.add_argument("--session", metavar="ID", help="only in this session")
    parser.add_argument(
        "--since", metavar="TIME", help="only from then on, such as 2026-11-21T09:00:00Z"
    )
    parser.add_argument("--until", metavar="TIME", help="only before then")
    parser.add_argument("--has-image", action="store_true", help="only with an image")
    _add_limit(parser, 20)


def _add_notebooks(commands: Any) -> None:
    _add(
        commands,
        "notebooks",
        notebooks.notebooks,
        "list notebooks that are open or have a kernel, and which agents are in them",
    )
    parser = _add(commands, "cells", notebooks.cells, "show a notebook's cells as they are now")
    parser.add_argument(
        "path", metavar="PATH", help="the notebook, from the server's root, as `notebooks` lists it"
    )


def _add_export(commands: Any) -> None:
    parser = _add(commands, "export", look.export, "write a session as a notebook")
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where (SESSION.ipynb); - for standard output"
    )
    parser.add_argument("--journal", metavar="FILE", help="write the raw record too")


def _add_verify(commands: Any) -> None:
    parser = _add(
        commands,
        "verify",
        check.verify,
        "check that the record is what was written; needs no server",
        epilog=_VERIFY_EPILOG,
        server=False,
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        help="a history's folder, a session's id, a journal or ledger, or an exported notebook; "
        "the history when left out",
    )
    parser.add_argument(
        "--history", metavar="DIR", help="the history's folder (agent_exec in Jupyter's data)"
    )
    parser.add_argument(
        "--journal", metavar="FILE", help="an exported notebook's journal, if not in the history"
    )
    parser.add_argument(
        "--head", metavar="HASH", help="a head that was kept elsewhere; proves that nothing is cut"
    )


def _add(
    commands: Any,
    name: str,
    command: Any,
    summary: str,
    *,
    epilog: str | None = None,
    server: bool = True,
) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command)
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="say less on standard error")
    if server:
        group = parser.add_argument_group("the server")
        group.add_argument(
            "--url", metavar="URL", help=f"base URL, or one with ?token=; else {URL_VARIABLE}"
        )
        group.add_argument(
            "--token",
            metavar="TOKEN",
            help=f"others may see it in the list of processes; else {TOKEN_VARIABLE}",
        )
    return parser


def _add_limit(parser: ArgumentParser, default: int) -> None:
    parser.add_argument(
        "-n",
        "--limit",
        type=_count,
        default=default,
        metavar="N",
        help="how many at most (%(default)s)",
    )


def _count(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{word!r} is not a number from 1 on")
    return number


def _seconds(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise ArgumentTypeError(f"{word!r} is not a number of seconds")
    return number
