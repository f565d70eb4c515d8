"""Agent tokens: what a person mints, and what is told of a token."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from ..types import ApprovalMode, TokenId
from .base import Answer, Name, Request, Seconds

Lifetime = Annotated[float, Meta(ge=60, le=2_592_000)]
"""Seconds from a minute to 30 days."""


class Caps(Request, frozen=True, kw_only=True):
    """The most that an agent may use with a token; null is the server's own bound."""

    executions_per_minute: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    concurrent_executions: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many may wait and run at once."""
    wall_seconds: Seconds | None = None
    """The longest timeout of an execution, and the one that it has if it names none."""
    output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    """UTF-8 bytes of output kept with a cell."""
    kernels: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many sessions may be open at once."""
    completion: bool | None = None
    """False: no documentation from kernels, which may run code for it, and no completion but what
    is known without running any."""


class MintToken(Request, frozen=True, kw_only=True):
    """Give an agent a token of its own."""

    label: Name
    """What people call it; shown and recorded."""
    scopes: Annotated[list[Annotated[str, Meta(max_length=4200)]], Meta(min_length=1)]
    """`exec:scratch`, `exec:notebook[:<pattern>]`, `read:notebook[:<pattern>]`,
    `edit:notebook[:<pattern>]`, `files`, `history:read`, `history:read:all`. A pattern is compared
    with a contents path part by part: `*` within a part, `**` for any number of parts."""
    expires_in: Lifetime = 28_800.0
    """Seconds."""
    approval: ApprovalMode | None = None
    """What a person has to approve before it runs; null is what the policy says."""
    caps: Caps = field(default_factory=Caps)


class TokenRef(Answer, frozen=True, kw_only=True):
    """The token with which a session was opened."""

    id: TokenId
    label: str


class Token(Answer, frozen=True, kw_only=True):
    """An agent token, without its secret."""

    id: TokenId
    label: str
    scopes: list[str]
    approval: ApprovalMode | None
    caps: Caps
    username: str
    """The person who minted it, on whose behalf its agent works."""
    status: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None


class Configuration(Answer, frozen=True, kw_only=True):
    """How to hand a token to an agent: text to paste, with the secret in it."""

    name: str
    """For whom: `mcp`, `mcp-stdio`, `python`, `curl`."""
    language: Literal["json", "python", "shell"]
    text: str


class MintedToken(Answer, frozen=True, kw_only=True):
    """A token that has just been minted. The secret is told this once."""

    token: Token
    secret: str
    """The whole credential: `Authorization: Bearer <secret>`."""
    configurations: list[Configuration]


class Unlock(Request, frozen=True, kw_only=True):
    """Prove with the server's passphrase that a person decides."""

    passphrase: Annotated[str, Meta(min_length=1, max_length=1000)]


class Unlocked(Answer, frozen=True, kw_only=True):
    """Decisions that show this are taken. Keep it in memory only."""

    unlock: str
    """For the header `X-Agent-Exec-Unlock`."""
    expires_at: str


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, the newest first."""

    tokens: list[Token]
