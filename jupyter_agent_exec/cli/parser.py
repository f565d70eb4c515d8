"""The command line's arguments and their help."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from typing import Any, get_args

from .._version import __version__
from ..client.client import SCOPES
from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from ..types import FINAL_STATUSES, ApprovalMode, EditMode, RuleKind, TargetKind, Verdict
from . import check, doctor, files, listings, mcp, rerun, rules, run, user_decisions

_DESCRIPTION = """\
Run code as an agent does, and look at what agents ran.

Every execution becomes a cell in a session's history, which can be searched, verified and
exported as a notebook."""

_EPILOG = f"""\
Commands talk to the newest Jupyter server of yours that runs here and has the extension; to
another with --url, or with {URL_VARIABLE} and {TOKEN_VARIABLE}. When none
runs, a server is started for the time of the command; not where a person's notebook or kernel is
asked for, which live in a server that runs. `verify` and `doctor` need none.

exit codes: 0 ok, 1 the code raised an error, 2 usage, 3 no server or no connection, 4 the server
refused, 5 interrupted, cancelled or rejected, 6 timed out, 7 the kernel or the server died,
130 Ctrl-C, 143 SIGTERM. Those of verify: see `jupyter agent-exec verify --help`."""

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

_MCP_EPILOG = """\
Configure an MCP client that starts a process with this command. Give a client that speaks HTTP the
server's address instead: http://localhost:8888/api/agent-exec/mcp.

A server that is named, or runs here, is used; else one is started in the current folder for the
time of the client. Standard output is the protocol's alone; all else goes to standard error."""

_RULES_EPILOG = """\
The rules are a convenience, not a guard: code that they let through may still do harm.

examples:
  jupyter agent-exec rules 'df.to_csv("out.csv")'
  jupyter agent-exec rules analysis.py --allow read plot files
  jupyter agent-exec rules --target notebook --since 2026-11-01T00:00:00Z"""

_RERUN_EPILOG = """\
The code runs in a fresh kernel, in a session of its own. Memory addresses, the time of the run,
durations, folders, ids and the last digits of floats do not count.

exit codes: 0 all outputs are as before, 1 one differs or fails, 2 usage, 3 no server or no
connection, 4 the server refused, 5 the session was closed before the end.

examples:
  jupyter agent-exec rerun s_01…
  jupyter agent-exec rerun analysis.ipynb --isolated
  jupyter agent-exec rerun analysis.ipynb --ignore 'seed \\d+' --float-tolerance 0.001"""

_VERIFY_EPILOG = """\
exit codes: 0 whole, 1 altered, 2 usage, 3 truncated before the known head, 4 torn last line (a
server died while it wrote), 5 something that the record names is missing. The gravest counts.

examples:
  jupyter agent-exec verify                      the whole history
  jupyter agent-exec verify s_01…                a session, with what the ledger says of it
  jupyter agent-exec verify s_01….ipynb          an export, against its journal in the history
  jupyter agent-exec verify journal.jsonl --head 9f86d0…
  jupyter agent-exec verify --from postgresql://audit.example.org/audit   what all servers sent"""


_DOCTOR_EPILOG = """\
Run it in the environment of Jupyter Server. It changes nothing: it looks at what is installed and
configured and at the servers that run, and runs code in a server of its own with another history.

exit codes: 0 no problem (there may be warnings), 1 a problem was found, 2 usage."""


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
    _add_run(commands)
    _add_sessions(commands)
    _add_show(commands)
    _add_ending(commands)
    _add_guide(commands)
    _add_search(commands)
    _add_notebooks(commands)
    summary = "list, download, upload or delete the files in a session's folder"
    files.add_words(_add(commands, "files", files.files, summary))
    _add_looking(commands)
    _add_approvals(commands)
    _add_passphrase(commands)
    _add_token(commands)
    _add_review(commands)
    _add_export(commands)
    rerun.add_arguments(
        _add(
            commands,
            "rerun",
            rerun.rerun,
            "run a session's or a notebook's code again, and compare the outputs",
            epilog=_RERUN_EPILOG,
        )
    )
    _add_verify(commands)
    _add_mcp(commands)
    _add(commands, "status", listings.status, "say how the server is doing")
    _add_doctor(commands)
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
    parser.add_argument(
        "--value",
        metavar="NAME=EXPRESSION",
        action="append",
        default=[],
        help="say what this expression comes to afterwards; may be repeated",
    )
    parser.add_argument(
        "--stdin",
        action="store_true",
        help="let the code ask for input, and answer it here; a password is not recorded",
    )
    parser.add_argument("--purpose", metavar="TEXT", help="why, for those who decide or review")
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
        "--isolated",
        action="store_true",
        help="keep the scratch kernel apart from the server, its network and its other files",
    )
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
    parser = _add(
        commands,
        "sessions",
        listings.sessions,
        "list sessions: the open ones first, then the closed",
    )
    parser.add_argument("--open", action="store_true", help="only those that are open")
    parser.add_argument(
        "--unreviewed",
        action="store_true",
        help="only those with executions about which nobody has said anything",
    )
    _add_whose_and_when(parser)
    _add_limit(parser, 50)


def _add_show(commands: Any) -> None:
    parser = _add(
        commands, "show", listings.show, "show a session with what it ran, or one execution"
    )
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    parser.add_argument(
        "--whole", action="store_true", help="an execution's whole text, and nothing else"
    )
    parser.add_argument("--images", metavar="DIR", help="save the images into this folder")


def _add_ending(commands: Any) -> None:
    parser = _add(
        commands,
        "cancel",
        run.cancel,
        "cancel an execution: it leaves the queue, or its code is interrupted",
    )
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    for name, command, summary in (
        ("restart", run.restart, "restart a session's own scratch kernel; its variables are lost"),
        ("close", run.close, "close a session; its own scratch kernel is shut down"),
    ):
        parser = _add(commands, name, command, summary)
        parser.add_argument("session", metavar="SESSION", help="the session's id")


def _add_guide(commands: Any) -> None:
    parser = _add(
        commands, "guide", listings.guide, "print what a language model should know about a session"
    )
    parser.add_argument("session", metavar="SESSION", help="the session's id")


def _add_search(commands: Any) -> None:
    parser = _add(
        commands, "search", listings.search, "search sources, outputs and errors, the newest first"
    )
    parser.add_argument(
        "query", metavar="WORDS", nargs="?", default="", help="all executions when left out"
    )
    parser.add_argument(
        "--status", choices=sorted(FINAL_STATUSES), metavar="STATUS", help="only with this status"
    )
    parser.add_argument("--session", metavar="ID", help="only in this session")
    parser.add_argument("--has-image", action="store_true", help="only with an image")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SINK",
        help="search what all servers have sent to a sink: postgresql://…, s3://…, or a folder",
    )
    parser.add_argument(
        "--review",
        choices=(*get_args(Verdict), "none"),
        help="only with this verdict; none: has run, and nobody has said anything",
    )
    _add_whose_and_when(parser)
    _add_limit(parser, 20)


def _add_whose_and_when(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="only this agent's")
    parser.add_argument(
        "--target", choices=get_args(TargetKind), help="only what runs in this kind of kernel"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only from then on, such as 2026-11-21T09:00:00Z"
    )
    parser.add_argument("--until", metavar="TIME", help="only up to then")


def _add_looking(commands: Any) -> None:
    for name, command, summary in (
        ("variables", listings.variables, "list the variables of a session's kernel"),
        ("packages", listings.packages, "list what code in a session's kernel can import"),
    ):
        parser = _add(commands, name, command, summary)
        parser.add_argument("session", metavar="SESSION", help="the session's id; it must be open")
        parser.add_argument(
            "match", metavar="TEXT", nargs="?", help="only those with this in their names"
        )
        _add_limit(parser, 100)


def _add_notebooks(commands: Any) -> None:
    _add(
        commands,
        "notebooks",
        listings.notebooks,
        "list notebooks that are open or have a kernel, and which agents are in them",
    )
    parser = _add(commands, "cells", listings.cells, "show a notebook's cells as they are now")
    parser.add_argument(
        "path", metavar="PATH", help="the notebook, from the server's root, as `notebooks` lists it"
    )


def _add_approvals(commands: Any) -> None:
    _add(
        commands,
        "pending",
        user_decisions.pending,
        "show what asks for approval, with the exact source",
    )
    parser = _add(
        commands,
        "approve",
        user_decisions.approve,
        "let an execution run, after a look at its source",
    )
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    parser.add_argument(
        "--edit",
        metavar="SOURCE",
        help="run this instead: code, a file with code, or - for standard input",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask again")
    parser = _add(commands, "reject", user_decisions.reject, "do not let an execution run")
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the agent to read")
    for name, summary in (
        ("pause", "pause all agents; running code continues"),
        ("resume", "let agents go on after a pause"),
    ):
        parser = _add(commands, name, user_decisions.pause, summary)
        parser.set_defaults(paused=name == "pause")
    parser = _add(commands, "policy", user_decisions.policy, "show or set what agents must ask for")
    for kind in get_args(TargetKind):
        parser.add_argument(
            f"--{kind}", choices=get_args(ApprovalMode), help=f"with a {kind} target"
        )
    _add_allow(parser)
    parser.add_argument(
        "--edits", choices=get_args(EditMode), help="of notebooks, by agents with a token"
    )
    parser = _add(
        commands, "proposals", user_decisions.proposals, "show the edits that agents propose"
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="only for this notebook")
    for name, summary in (
        ("keep", "make an agent's proposed edits in the notebook"),
        ("undo", "drop an agent's proposed edits, or take kept ones back"),
    ):
        parser = _add(commands, name, user_decisions.decide_edits, summary)
        parser.set_defaults(keeps=name == "keep")
        parser.add_argument("session", metavar="SESSION", help="of the agent (s_…)")
        parser.add_argument("ids", metavar="EDIT", nargs="*", help="all that are open without it")
    parser = _add(
        commands,
        "rules",
        rules.rules,
        "say which code would ask for approval in the mode `rules`, and why; runs nothing",
        epilog=_RULES_EPILOG,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="code, a file with code, or - for standard input; what agents ran when left out",
    )
    parser.add_argument(
        "-c", "--code", action="store_true", help="SOURCE is code, even if a file is named so"
    )
    _add_allow(parser)
    parser.add_argument("--session", metavar="ID", help="only in this session")
    _add_whose_and_when(parser)
    _add_limit(parser, 200)


def _add_allow(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--allow",
        nargs="+",
        choices=get_args(RuleKind),
        metavar="KIND",
        help="kinds of code that the rules let through: " + ", ".join(get_args(RuleKind)),
    )


def _add_passphrase(commands: Any) -> None:
    _add(
        commands,
        "passphrase",
        user_decisions.passphrase,
        "make the hash of a passphrase that people have to type before they decide",
        server=False,
        json=False,
    )


def _add_token(commands: Any) -> None:
    summary = "give an agent a token of its own, see which there are, or take one back"
    group = commands.add_parser("token", help=summary, description=f"{summary.capitalize()}.")
    verbs = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = _add(verbs, "new", user_decisions.new_token, "mint a token, and show it this once")
    parser.add_argument("label", metavar="LABEL", help="what you call it")
    parser.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help="what its agent may do, such as exec:scratch, files, exec:notebook:work/*, "
        "edit:notebook:work/**, read:notebook or history:read:all; may be repeated "
        f"({' '.join(SCOPES)})",
    )
    parser.add_argument(
        "--expires-in",
        type=_duration,
        metavar="TIME",
        help="a number with m, h or d: at the most 30d (8h)",
    )
    parser.add_argument(
        "--approval",
        choices=get_args(ApprovalMode),
        help="what a person has to approve; what the policy says when left out",
    )
    parser.add_argument(
        "--edits",
        choices=get_args(EditMode),
        help="whether its edits of notebooks are made or proposed; what the policy says when left "
        "out",
    )
    parser.add_argument(
        "--config",
        metavar="CLIENT",
        help="what to paste for it: claude-code, mcp, vscode, mcp-stdio, python or curl",
    )
    caps = parser.add_argument_group("the most that it may use")
    for name, type, metavar, what in (
        ("per-minute", _count, "N", "executions in a minute"),
        ("at-once", _count, "N", "executions that wait and run at once"),
        ("timeout", _seconds, "SECONDS", "time of an execution"),
        ("output-bytes", _count, "N", "output kept with a cell"),
        ("kernels", _count, "N", "sessions open at once"),
    ):
        caps.add_argument(f"--{name}", type=type, metavar=metavar, help=what)
    caps.add_argument(
        "--no-completion",
        action="store_true",
        help="no completion and no documentation from kernels, for which these may run code",
    )
    parser = _add(verbs, "list", user_decisions.list_tokens, "list tokens that are valid")
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser = _add(
        verbs, "revoke", user_decisions.revoke_token, "take a token back; its sessions are closed"
    )
    parser.add_argument("id", metavar="ID", help="of the token (t_…)")


def _add_review(commands: Any) -> None:
    parser = _add(
        commands,
        "review",
        user_decisions.review,
        "say what you think of an execution, or of all that a session has run",
    )
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    verdict = parser.add_mutually_exclusive_group()
    verdict.add_argument(
        "--approve", dest="verdict", action="store_const", const="approved", help="it is good"
    )
    verdict.add_argument(
        "--flag", dest="verdict", action="store_const", const="flagged", help="look at it again"
    )
    verdict.add_argument("--clear", action="store_true", help="take back what was said")
    parser.add_argument("--comment", metavar="TEXT", help="what else there is to say")


def _add_export(commands: Any) -> None:
    parser = _add(commands, "export", listings.export, "write a session as a notebook")
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where (SESSION.ipynb); - for standard output"
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="as git, nbdime, jupytext and papermill like it: indented, without metadata of ours",
    )
    parser.add_argument("--journal", metavar="FILE", help="write the raw record too")
    parser.add_argument("-f", "--force", action="store_true", help="overwrite files")


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
        "--from",
        dest="origin",
        metavar="SINK",
        help="check what all servers have sent to a sink: postgresql://…, s3://…, or a folder",
    )
    parser.add_argument(
        "--head", metavar="HASH", help="a head that was kept elsewhere; proves that nothing is cut"
    )


def _add_doctor(commands: Any) -> None:
    parser = _add(
        commands,
        "doctor",
        doctor.doctor,
        "say what is wrong with this installation, and what to do about it",
        epilog=_DOCTOR_EPILOG,
    )
    parser.add_argument(
        "--history",
        metavar="DIR",
        help="the history's folder (as configured, else agent_exec in Jupyter's data)",
    )


def _add_mcp(commands: Any) -> None:
    parser = _add(
        commands,
        "mcp",
        mcp.mcp,
        "serve an MCP client that starts a process and talks to it through its standard streams",
        epilog=_MCP_EPILOG,
        json=False,
    )
    parser.add_argument(
        "--start",
        action="store_true",
        help="start a server for this client alone, whatever else runs; it ends with the client",
    )


def _add(
    commands: Any,
    name: str,
    command: Any,
    summary: str,
    *,
    epilog: str | None = None,
    server: bool = True,
    json: bool = True,
) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command)
    if json:
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


def _duration(word: str) -> float:
    """Return the seconds of a duration such as 90m, 8h or 30d."""
    seconds = {"m": 60, "h": 3600, "d": 86_400}.get(word[-1:])
    if seconds is None or not word[:-1].isdecimal():
        raise ArgumentTypeError(f"not a number with m, h or d: {word!r}")
    return float(word[:-1]) * seconds


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
