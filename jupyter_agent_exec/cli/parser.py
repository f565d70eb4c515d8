"""The command line's arguments and their help."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from typing import Any, get_args

from .._version import __version__
from ..client.client import SCOPES
from ..client.servers import TOKEN_VARIABLE, URL_VARIABLE
from ..types import FINAL_STATUSES, ApprovalMode, EditMode, GrantSpan, TargetKind, Verdict
from . import (
    check,
    doctor,
    erase,
    files,
    hub,
    listings,
    mcp,
    rerun,
    restore,
    retain,
    run,
    user_decisions,
)
from .usage import seconds

_DESCRIPTION = """\
Run code as an agent does, and look at what agents ran.

Every execution becomes a cell in a session's history, which can be searched, verified and
exported as a notebook."""

_EPILOG = f"""\
Commands use the newest of your running Jupyter servers on this machine that has the extension. To
use another one, give --url, or set {URL_VARIABLE} and {TOKEN_VARIABLE}. If none
is running, a command that can work without one starts a server, which ends with the command.
`verify` and `doctor` need no server.

exit codes: 0 ok, 1 the code raised an error, 2 usage, 3 no server or no connection, 4 the server
refused, 5 interrupted, cancelled or rejected, 6 timed out, 7 the kernel or the server died,
130 Ctrl-C, 143 SIGTERM. Those of verify: see `jupyter agent-exec verify --help`."""

_RUN_EPILOG = """\
examples:
  jupyter agent-exec run '1 + 1'
  jupyter agent-exec run analysis.py --images plots
  generate | jupyter agent-exec run - --json
  jupyter agent-exec run 'x = 2' --keep          prints the session's id
  jupyter agent-exec run 'x * 2' --session s_01…
  jupyter agent-exec run 'df.head()' --notebook work/sales.ipynb
  jupyter agent-exec run --notebook work/sales.ipynb --cell 5f1c2a…

In a user's notebook or kernel, code waits while the user's code runs. A message on standard error
says so.

Ctrl-C cancels the execution (exit code 130). A second Ctrl-C leaves it running."""

_MCP_EPILOG = """\
Configure an MCP client that starts a process with this command. If your client speaks HTTP, give it
the server's address instead: http://localhost:8888/api/agent-exec/mcp.

The command uses the server that you name, or one that is running on this machine. If there is
none, it starts one in the current folder, which ends with the client. Standard output carries only
the protocol; messages go to standard error."""

_RERUN_EPILOG = """\
The code runs in a fresh kernel, in a session of its own. Memory addresses, the time of the run,
durations, folders, ids and the last digits of floats do not count.

exit codes: 0 all outputs are as before, 1 one differs or fails, 2 usage, 3 no server or no
connection, 4 the server refused, 5 the session was closed before the end.

examples:
  jupyter agent-exec rerun s_01…
  jupyter agent-exec rerun analysis.ipynb --isolated
  jupyter agent-exec rerun analysis.ipynb --ignore 'seed \\d+' --float-tolerance 0.001"""

_HUB_EPILOG = f"""\
docs/how-to/hub.md shows how to configure the service. To pause, put a token of an administrator
into {hub.TOKEN_VARIABLE}; users' code that runs goes on, and servers that do not run are not
started for agents any more.

examples:
  jupyter agent-exec hub pause --hub-url https://hub.example.org/
  jupyter agent-exec hub resume --hub-url https://hub.example.org/"""

_VERIFY_EPILOG = """\
exit codes: 0 whole, 1 altered, 2 usage, 3 truncated before the known head, 4 incomplete last line
(a server died while it wrote), 5 something that the record names is missing. If there are several
problems, the code is that of the most serious one.

examples:
  jupyter agent-exec verify                      the whole history
  jupyter agent-exec verify s_01…                a session, and its entries in the ledger
  jupyter agent-exec verify s_01….ipynb          an export, against its journal in the history
  jupyter agent-exec verify journal.jsonl --head 9f86d0…
  jupyter agent-exec verify --from postgresql://audit.example.org/audit   what all servers sent"""


_DOCTOR_EPILOG = """\
Run it in the environment of Jupyter Server. It changes nothing: it checks what is installed and
configured, looks at running servers, and runs code in a server of its own with another history.

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
    _add_erase(commands)
    _add_retain(commands)
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
    summary = "run again what made the state of a session's last kernel"
    restore.add_arguments(_add(commands, "restore", restore.restore, summary))
    _add_verify(commands)
    _add_mcp(commands)
    _add_hub(commands)
    _add(commands, "status", listings.status, "show the status of the server")
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
        help="code, a file with code, or - for standard input; with --cell, you can leave it "
        "out to run the cell as it is",
    )
    parser.add_argument(
        "-c", "--code", action="store_true", help="SOURCE is code, even if a file has this name"
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="how long the code may run"
    )
    parser.add_argument(
        "--images", metavar="DIR", help="save images in this folder; it is created if necessary"
    )
    parser.add_argument(
        "--value",
        metavar="NAME=EXPRESSION",
        action="append",
        default=[],
        help="print the value of this expression after the code has run; can be repeated",
    )
    parser.add_argument(
        "--stdin",
        action="store_true",
        help="let the code ask for input, which you type here; passwords are not recorded",
    )
    parser.add_argument(
        "--purpose",
        metavar="TEXT",
        help="why the code is run; shown to users who approve or review it",
    )
    parser.add_argument(
        "--trial",
        action="store_true",
        help="in a sealed copy of the kernel, which sees its variables and changes nothing",
    )
    _add_where(parser)
    _add_placement(parser)


def _add_where(parser: ArgumentParser) -> None:
    where = parser.add_argument_group("where the code runs", "in a scratch kernel by default")
    target = where.add_mutually_exclusive_group()
    target.add_argument("--session", metavar="ID", help="in this open session")
    target.add_argument(
        "--notebook",
        metavar="PATH",
        help="in this notebook and its kernel; a path from the server's root, as in `notebooks`",
    )
    target.add_argument("--kernel", metavar="ID", help="in this running kernel, without a notebook")
    where.add_argument(
        "--keep", action="store_true", help="keep the session open afterwards, with its variables"
    )
    where.add_argument(
        "--kernel-name",
        metavar="NAME",
        help="kernelspec for a scratch kernel, or for a notebook that has no kernel yet",
    )
    where.add_argument(
        "--cwd", metavar="PATH", help="the kernel's folder; a path from the server's root"
    )
    where.add_argument(
        "--isolated",
        action="store_true",
        help="isolate the scratch kernel from the server, the network and other files",
    )
    where.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an environment variable for the kernel, if the server allows it; can be repeated",
    )
    where.add_argument(
        "--agent", metavar="NAME", default="command-line", help="name of the agent (%(default)s)"
    )
    where.add_argument("--title", metavar="TEXT", help="what the session is for")


def _add_placement(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "where the cell goes", "to the end of the notebook by default"
    )
    group.add_argument(
        "--create", action="store_true", help="create an empty notebook if there is none"
    )
    placement = group.add_mutually_exclusive_group()
    placement.add_argument("--after", metavar="CELL", help="after the cell with this id")
    placement.add_argument("--before", metavar="CELL", help="before the cell with this id")
    placement.add_argument("--cell", metavar="CELL", help="run the cell with this id where it is")
    placement.add_argument(
        "--no-cell", action="store_true", help="record the code, but add no cell to the notebook"
    )


def _add_sessions(commands: Any) -> None:
    parser = _add(
        commands,
        "sessions",
        listings.sessions,
        "list sessions, open ones first",
    )
    parser.add_argument("--open", action="store_true", help="only open sessions")
    parser.add_argument(
        "--unreviewed",
        action="store_true",
        help="only sessions with executions that nobody has reviewed",
    )
    _add_whose_and_when(parser)
    _add_limit(parser, 50)


def _add_show(commands: Any) -> None:
    parser = _add(
        commands, "show", listings.show, "show a session and its executions, or one execution"
    )
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    parser.add_argument(
        "--whole", action="store_true", help="print only the whole text output of an execution"
    )
    parser.add_argument("--images", metavar="DIR", help="save images in this folder")


def _add_ending(commands: Any) -> None:
    parser = _add(
        commands,
        "cancel",
        run.cancel,
        "cancel an execution: take it out of the queue, or interrupt its code",
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
        commands, "guide", listings.guide, "print a guide to a session for language models"
    )
    parser.add_argument("session", metavar="SESSION", help="the session's id")


def _add_search(commands: Any) -> None:
    parser = _add(
        commands, "search", listings.search, "search sources, outputs and errors, newest first"
    )
    parser.add_argument(
        "query",
        metavar="WORDS",
        nargs="?",
        default="",
        help="words to search for; without them, all executions are listed",
    )
    parser.add_argument(
        "--status",
        choices=sorted(FINAL_STATUSES),
        metavar="STATUS",
        help="only executions with this status",
    )
    parser.add_argument("--session", metavar="ID", help="only executions of this session")
    parser.add_argument("--has-image", action="store_true", help="only executions with an image")
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SINK",
        help="search what all servers have sent to a sink: postgresql://…, s3://…, or a folder",
    )
    parser.add_argument(
        "--review",
        choices=(*get_args(Verdict), "none"),
        help="only executions with this verdict; none: not reviewed yet",
    )
    _add_whose_and_when(parser)
    _add_limit(parser, 20)


def _add_whose_and_when(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.add_argument(
        "--target", choices=get_args(TargetKind), help="only those with this kind of target"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only since this time, such as 2026-11-21T09:00:00Z"
    )
    parser.add_argument("--until", metavar="TIME", help="only until this time")


def _add_looking(commands: Any) -> None:
    for name, command, summary in (
        ("variables", listings.variables, "list the variables of a session's kernel"),
        ("packages", listings.packages, "list the packages that a session's kernel can import"),
    ):
        parser = _add(commands, name, command, summary)
        parser.add_argument("session", metavar="SESSION", help="the session's id; it must be open")
        parser.add_argument(
            "match", metavar="TEXT", nargs="?", help="only names that contain this text"
        )
        _add_limit(parser, 100)


def _add_notebooks(commands: Any) -> None:
    _add(
        commands,
        "notebooks",
        listings.notebooks,
        "list notebooks that are open or have a kernel, and the agents that work in them",
    )
    parser = _add(commands, "cells", listings.cells, "show a notebook's cells as they are now")
    parser.add_argument(
        "path",
        metavar="PATH",
        help="the notebook's path from the server's root, as `notebooks` lists it",
    )


def _add_approvals(commands: Any) -> None:
    _add(
        commands,
        "pending",
        user_decisions.pending,
        "list executions that need approval, with their exact source",
    )
    parser = _add(
        commands,
        "approve",
        user_decisions.approve,
        "approve an execution after you have seen its source",
    )
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    parser.add_argument(
        "--edit",
        metavar="SOURCE",
        help="run this source instead: code, a file with code, or - for standard input",
    )
    parser.add_argument(
        "--grant",
        choices=get_args(GrantSpan),
        help="let the agent run more code in this kernel without asking: until the kernel "
        "restarts, or for an hour at most",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="approve without a question")
    parser = _add(
        commands,
        "withdraw",
        user_decisions.withdraw,
        "end what an agent may run in a kernel without asking",
    )
    parser.add_argument("session", metavar="SESSION", help="id of one of its sessions there (s_…)")
    parser = _add(commands, "reject", user_decisions.reject, "reject an execution")
    parser.add_argument("id", metavar="ID", help="of the execution (x_…)")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, which the agent can read")
    for name, summary in (
        ("pause", "pause all agents; running code continues"),
        ("resume", "end a pause of all agents"),
    ):
        parser = _add(commands, name, user_decisions.pause, summary)
        parser.set_defaults(paused=name == "pause")
    parser = _add(commands, "policy", user_decisions.policy, "show or set what needs approval")
    for kind in get_args(TargetKind):
        parser.add_argument(
            f"--{kind}",
            choices=get_args(ApprovalMode),
            help=f"which executions with a {kind} target need approval",
        )
    parser.add_argument(
        "--edits",
        choices=get_args(EditMode),
        help="how agents with a token edit notebooks: at once, or as proposals",
    )
    parser = _add(
        commands, "proposals", user_decisions.proposals, "show the edits that agents propose"
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="only for this notebook")
    for name, summary in (
        ("keep", "apply an agent's proposed edits to the notebook"),
        ("undo", "reject an agent's proposed edits, or revert kept ones"),
    ):
        parser = _add(commands, name, user_decisions.decide_edits, summary)
        parser.set_defaults(keeps=name == "keep")
        parser.add_argument("session", metavar="SESSION", help="id of the agent's session (s_…)")
        parser.add_argument(
            "ids", metavar="EDIT", nargs="*", help="ids of edits; all open ones by default"
        )


def _add_passphrase(commands: Any) -> None:
    _add(
        commands,
        "passphrase",
        user_decisions.passphrase,
        "make the hash of a passphrase, which users must type before they decide",
        server=False,
        json=False,
    )


def _add_token(commands: Any) -> None:
    summary = "create, list and revoke agent tokens"
    group = commands.add_parser("token", help=summary, description=f"{summary.capitalize()}.")
    verbs = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = _add(verbs, "new", user_decisions.new_token, "create a token, and show it once")
    parser.add_argument("label", metavar="LABEL", help="a name for the token")
    parser.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help="what the agent may do, such as exec:scratch, files, exec:notebook:work/*, "
        "edit:notebook:work/**, read:notebook or history:read:all; can be repeated "
        f"({' '.join(SCOPES)})",
    )
    parser.add_argument(
        "--expires-in",
        type=_duration,
        metavar="TIME",
        help="how long it is valid: a number with m, h or d, at most 30d (8h)",
    )
    parser.add_argument(
        "--approval",
        choices=get_args(ApprovalMode),
        help="which executions need approval; by default as the policy says",
    )
    parser.add_argument(
        "--edits",
        choices=get_args(EditMode),
        help="whether its edits of notebooks are applied or proposed; by default as the policy "
        "says",
    )
    parser.add_argument(
        "--config",
        metavar="CLIENT",
        help="print the configuration for a client: claude-code, mcp, vscode, mcp-stdio, python "
        "or curl",
    )
    caps = parser.add_argument_group("limits of the token")
    for name, type, metavar, what in (
        ("per-minute", _count, "N", "executions in a minute"),
        ("at-once", _count, "N", "executions that wait or run at the same time"),
        ("timeout", seconds, "SECONDS", "longest time of an execution"),
        ("output-bytes", _count, "N", "bytes of output kept for an execution"),
        ("kernels", _count, "N", "sessions open at the same time"),
    ):
        caps.add_argument(f"--{name}", type=type, metavar=metavar, help=what)
    caps.add_argument(
        "--no-completion",
        action="store_true",
        help="no completion and no documentation from kernels, because these can run code",
    )
    parser = _add(verbs, "list", user_decisions.list_tokens, "list valid tokens")
    parser.add_argument("--all", action="store_true", help="also expired and revoked tokens")
    parser = _add(
        verbs, "revoke", user_decisions.revoke_token, "revoke a token, and close its sessions"
    )
    parser.add_argument("id", metavar="ID", help="of the token (t_…)")


def _add_review(commands: Any) -> None:
    parser = _add(
        commands,
        "review",
        user_decisions.review,
        "review an execution, or all executions of a session",
    )
    parser.add_argument("id", metavar="ID", help="of a session (s_…) or an execution (x_…)")
    verdict = parser.add_mutually_exclusive_group()
    verdict.add_argument(
        "--approve", dest="verdict", action="store_const", const="approved", help="mark as good"
    )
    verdict.add_argument(
        "--flag", dest="verdict", action="store_const", const="flagged", help="mark as a problem"
    )
    verdict.add_argument("--clear", action="store_true", help="remove the verdict")
    parser.add_argument("--comment", metavar="TEXT", help="a comment")


def _add_erase(commands: Any) -> None:
    parser = _add(
        commands,
        "erase",
        erase.erase,
        "erase from the record of closed sessions, after you have seen what goes",
    )
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


def _add_retain(commands: Any) -> None:
    parser = _add(
        commands,
        "retain",
        retain.retain,
        "remove the closed sessions that the server's rules of retention let go",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="remove without asking")
    parser = _add(
        commands,
        "hold",
        retain.hold,
        "put sessions on hold, so that nothing removes or erases them",
    )
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the session's id")
    parser.add_argument("--agent", metavar="NAME", help="all sessions of agents with this name")
    parser.add_argument("--user", metavar="NAME", help="all sessions of a user")
    parser.add_argument("--release", action="store_true", help="release it")
    parser.add_argument("--reason", metavar="TEXT", help="why; it is recorded")


def _add_export(commands: Any) -> None:
    parser = _add(commands, "export", listings.export, "write a session as a notebook")
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write (SESSION.ipynb); - for standard output",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="indented and without our metadata, for git, nbdime, jupytext and papermill",
    )
    parser.add_argument("--journal", metavar="FILE", help="also write the raw record to this file")
    parser.add_argument(
        "--format",
        choices=("notebook", "ro-crate", "prov"),
        default="notebook",
        help="ro-crate: all of it for an archive, in a .zip or a folder; prov: PROV-JSON. Both "
        "need jupyter-agent-exec[provenance]",
    )
    parser.add_argument(
        "--requirements",
        metavar="FILE",
        help="also write the packages that its kernel had to this file, such as requirements.txt",
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite existing files")


def _add_verify(commands: Any) -> None:
    parser = _add(
        commands,
        "verify",
        check.verify,
        "check that the record is whole and unchanged; needs no server",
        epilog=_VERIFY_EPILOG,
        server=False,
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        help="a history's folder, a session's id, a journal or ledger, or an exported notebook; "
        "by default the history",
    )
    parser.add_argument(
        "--history", metavar="DIR", help="the history's folder (agent_exec in Jupyter's data)"
    )
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="the journal of an exported notebook, if it is not in the history",
    )
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SINK",
        help="check what all servers have sent to a sink: postgresql://…, s3://…, or a folder",
    )
    parser.add_argument(
        "--head",
        metavar="HASH",
        help="a chain head that you kept elsewhere; proves that nothing is cut off",
    )
    parser.add_argument(
        "--witness",
        metavar="SINK",
        help="a sink that got copies: compare the chains with what it has; postgresql://…, s3://…, "
        "or a folder",
    )
    parser.add_argument(
        "--authority",
        metavar="FILE",
        help="the certificates, in PEM, of the timestamp authorities that you trust",
    )
    parser.add_argument(
        "--key",
        metavar="KEY",
        action="append",
        default=[],
        help="the public key that must have signed it: a PEM file or the key's SHA-256; from "
        "elsewhere, not from the history; more than once for several",
    )


def _add_doctor(commands: Any) -> None:
    parser = _add(
        commands,
        "doctor",
        doctor.doctor,
        "find problems of this installation, and say how to solve them",
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
        "connect an MCP client that uses standard input and output",
        epilog=_MCP_EPILOG,
        json=False,
    )
    parser.add_argument(
        "--start",
        action="store_true",
        help="start a server for this client alone, which ends with the client",
    )


def _add_hub(commands: Any) -> None:
    parser = _add(
        commands,
        "hub",
        hub.hub,
        "serve MCP for all users of a JupyterHub, or pause all their agents",
        epilog=_HUB_EPILOG,
        server=False,
        json=False,
    )
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        choices=("serve", "pause", "resume"),
        default="serve",
        help="serve: what JupyterHub starts; pause: pause all agents of all users; resume: let "
        "them go on (%(default)s)",
    )
    parser.add_argument(
        "--hub-url",
        metavar="URL",
        help="address of the hub's proxy with the hub's base URL; else from "
        f"{hub.URL_VARIABLE}, which the hub sets if it knows its public URL",
    )
    parser.add_argument(
        "--database",
        metavar="FILE",
        default="agent-exec-hub.sqlite",
        help="of the service: what people have granted (%(default)s)",
    )
    parser.add_argument(
        "--service",
        metavar="NAME",
        default="agent-exec",
        help="for pause and resume: the service's name at the hub (%(default)s)",
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
        parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print fewer messages on standard error"
    )
    if server:
        group = parser.add_argument_group("the server")
        group.add_argument(
            "--url",
            metavar="URL",
            help=f"base URL of the server, with or without ?token=; default: {URL_VARIABLE}",
        )
        group.add_argument(
            "--token",
            metavar="TOKEN",
            help=f"a token; others may see it in the list of processes; default: {TOKEN_VARIABLE}",
        )
    return parser


def _add_limit(parser: ArgumentParser, default: int) -> None:
    parser.add_argument(
        "-n",
        "--limit",
        type=_count,
        default=default,
        metavar="N",
        help="the largest number of results (%(default)s)",
    )


def _duration(word: str) -> float:
    """Return the seconds of a duration such as 90m, 8h or 30d."""
    unit = {"m": 60, "h": 3600, "d": 86_400}.get(word[-1:])
    if unit is None or not word[:-1].isdecimal():
        raise ArgumentTypeError(f"not a number with m, h or d: {word!r}")
    return float(word[:-1]) * unit


def _count(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{word!r} is not a number from 1 on")
    return number
