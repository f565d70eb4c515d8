"""`jupyter agent-exec token new`, `list` and `revoke`."""

from __future__ import annotations

from argparse import Namespace

from ..client.client import SCOPES
from ..models import Caps
from . import exit_codes
from .connection import connected, decided
from .console import Console
from .usage import UsageError

_NEVER = "-"


def new_token(arguments: Namespace, console: Console) -> int:
    """Mint a token, and show its secret this once."""
    caps = Caps(
        executions_per_minute=arguments.per_minute,
        concurrent_executions=arguments.at_once,
        wall_seconds=arguments.timeout,
        output_bytes=arguments.output_bytes,
        kernels=arguments.kernels,
        completion=False if arguments.no_completion else None,
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
    console.note(f"{token.id} may {', '.join(token.scopes)} until {token.expires_at}.")
    console.note("Its secret is shown this once; whoever has it is the agent.")
    return exit_codes.OK


def list_tokens(arguments: Namespace, console: Console) -> int:
    """List tokens."""
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
                (token.last_used_at or _NEVER)[:16],
                token.label,
                " ".join(token.scopes),
            )
            for token in shown
        ),
        last_width=60,
    )
    return exit_codes.OK


def revoke_token(arguments: Namespace, console: Console) -> int:
    """Take a token back."""
    with connected(arguments, console, may_start=False) as client:
        token = client.revoke_token(arguments.id)
    if arguments.json:
        console.json(token)
    else:
        console.line(f"{token.id}  {token.status}")
    return exit_codes.OK
