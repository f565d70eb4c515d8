"""`jupyter agent-exec token`: create, list, extend and revoke agent tokens."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import get_args

from ..client.client import SCOPES
from ..models import Caps
from ..types import ApprovalMode, EditMode
from . import exit_codes
from .command import command
from .command_client import connected, decided
from .console import Console
from .usage import UsageError, count, duration, seconds


def _new_options(parser: ArgumentParser) -> None:
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
        type=duration,
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
        ("per-minute", count, "N", "executions in a minute"),
        ("at-once", count, "N", "executions that wait or run at the same time"),
        ("timeout", seconds, "SECONDS", "longest time of an execution"),
        ("output-bytes", count, "N", "bytes of output kept for an execution"),
        ("kernels", count, "N", "sessions open at the same time"),
    ):
        caps.add_argument(f"--{name}", type=type, metavar=metavar, help=what)


@command("new", "create a token, and show it once", _new_options)
def new(arguments: Namespace, console: Console) -> int:
    """Create a token, and show its secret. The server cannot show it again."""
    caps = Caps(
        executions_per_minute=arguments.per_minute,
        concurrent_executions=arguments.at_once,
        wall_seconds=arguments.timeout,
        output_bytes=arguments.output_bytes,
        kernels=arguments.kernels,
    )
    with connected(arguments, console, may_start=False) as client:
        minted = decided(
            client,
            console,
            lambda: client.mint_token(
                arguments.label,
                arguments.scope or SCOPES,
                expires_in=arguments.expires_in,
                approval=arguments.approval,
                edits=arguments.edits,
                caps=caps,
            ),
        )
    token = minted.token
    if arguments.json:
        console.json(minted)
        return exit_codes.OK
    if arguments.config is None:
        console.line(minted.secret)
    else:
        texts = {each.name: each.text for each in minted.configurations}
        if arguments.config not in texts:
            raise UsageError(
                f"There is no configuration {arguments.config!r} for {token.id}, which you may "
                f"want to revoke; there are {', '.join(texts)}."
            )
        console.line(texts[arguments.config].rstrip("\n"))
        if not minted.mcp_installed:
            console.note("MCP clients need the extra on the server: 'jupyter-agent-exec[mcp]'.")
    console.note(f"{token.id} may {', '.join(token.scopes)} until {token.expires_at}.")
    console.note("The secret is shown only now. Anybody who has it can act as this agent.")
    return exit_codes.OK


def _list_options(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also expired and revoked tokens")


@command("list", "list valid tokens", _list_options)
def list_all(arguments: Namespace, console: Console) -> int:
    """List agent tokens: the valid ones, or all with ``--all``."""
    with connected(arguments, console, may_start=False) as client:
        tokens = client.tokens()
    if arguments.json:
        console.json(tokens)
        return exit_codes.OK
    shown = [token for token in tokens if arguments.all or token.status == "active"]
    console.table(
        ("ID", "STATUS", "EXPIRES", "LAST USED", "LABEL", "SCOPES"),
        (
            (
                token.id,
                token.status,
                token.expires_at[:16],
                (token.last_used_at or "-")[:16],
                token.label,
                " ".join(token.scopes),
            )
            for token in shown
        ),
        last_width=60,
    )
    return exit_codes.OK


def _revoke_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the token (t_…)")


@command("revoke", "revoke a token, and close its sessions", _revoke_options)
def revoke(arguments: Namespace, console: Console) -> int:
    """Revoke a token."""
    with connected(arguments, console, may_start=False) as client:
        token = client.revoke_token(arguments.id)
    if arguments.json:
        console.json(token)
    else:
        console.line(f"{token.id}  {token.status}")
    return exit_codes.OK
