"""`jupyter agent-exec token`: create, list and revoke agent tokens."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final, get_args

from ..client.client import SCOPES
from ..models import Caps
from ..text.connections import configurations
from ..types import ApprovalMode, EditMode
from .command import command, option
from .command_client import connected, decided
from .console import Console
from .usage import count, duration, seconds


def _create_options(parser: ArgumentParser) -> None:
    option(parser, "LABEL", "a name for the token")
    option(
        parser,
        "--scope SCOPE",
        "what the agent may do, such as exec:scratch, files, undo, exec:notebook:work/*, "
        "edit:notebook:work/**, read:notebook or history:read:all; can be repeated "
        f"({' '.join(SCOPES)})",
        repeated=True,
    )
    how_long = "how long it is valid: a number with m, h or d, at most 30d (8h)"
    option(parser, "--expires-in TIME", how_long, type=duration)
    asks = "which executions need approval; by default as the policy says"
    option(parser, "--approval MODE", asks, choices=get_args(ApprovalMode))
    how = "how it edits notebooks: at once, or as proposals; by default as the policy says"
    option(parser, "--edits MODE", how, choices=get_args(EditMode))
    clients = [each.name for each in configurations("", "", "", [])]
    option(parser, "--config CLIENT", "print the configuration for a client", choices=clients)
    caps = parser.add_argument_group("limits of the token")
    option(caps, "--per-minute N", "executions in a minute", type=count)
    option(caps, "--at-once N", "executions that wait or run at the same time", type=count)
    option(caps, "--timeout SECONDS", "longest time of an execution", type=seconds)
    option(caps, "--output-bytes N", "bytes of output kept for an execution", type=count)
    option(caps, "--kernels N", "sessions open at the same time", type=count)


@command("create", "create a token, and show it once", _create_options)
def create(arguments: Namespace, console: Console) -> None:
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
            client.mint_token,
            arguments.label,
            arguments.scope or SCOPES,
            expires_in=arguments.expires_in,
            approval=arguments.approval,
            edits=arguments.edits,
            caps=caps,
        )
    token, told = minted.token, minted.secret
    if arguments.config is not None:
        texts = {each.name: each.text.rstrip("\n") for each in minted.configurations}
        told = texts.get(arguments.config, told)  # a server of another version may not have it
        if not minted.mcp_installed:
            console.note("MCP clients need the extra on the server: 'jupyter-agent-exec[mcp]'.")
    console.answer(minted, told)
    console.note(f"{token.id} may {', '.join(token.scopes)} until {token.expires_at}.")
    console.note("The secret is shown only now. Anybody who has it can act as this agent.")


def _list_options(parser: ArgumentParser) -> None:
    option(parser, "--all", "also expired and revoked tokens")


@command("list", "list valid tokens", _list_options)
def list_all(arguments: Namespace, console: Console) -> None:
    """List agent tokens: the valid ones, or all with ``--all``."""
    with connected(arguments, console, may_start=False) as client:
        tokens = client.tokens()
    console.listing(
        [token for token in tokens if arguments.all or token.status == "active"],
        {
            "ID": "id",
            "STATUS": "status",
            "EXPIRES": lambda token: token.expires_at[:16],
            "LAST USED": lambda token: (token.last_used_at or "-")[:16],
            "LABEL": "label",
            "SCOPES": lambda token: " ".join(token.scopes),
        },
    )


def _revoke_options(parser: ArgumentParser) -> None:
    option(parser, "ID", "of the token (t_…)")


@command("revoke", "revoke a token, and close its sessions", _revoke_options)
def revoke(arguments: Namespace, console: Console) -> None:
    """Revoke a token."""
    with connected(arguments, console, may_start=False) as client:
        token = client.revoke_token(arguments.id)
    console.answer(token, f"{token.id}  {token.status}")


COMMANDS: Final = (create, list_all, revoke)
