"""Entries of a server's ledger."""

from __future__ import annotations

from ..models import Caps, Chain
from ..types import ApprovalMode, Digest, SessionId, TargetKind, TokenId
from .base import Entry


class LedgerOpened(Entry, frozen=True, kw_only=True, tag="ledger_opened"):
    """A server began to write this ledger, or went on with one that a server before it left."""

    instance: str
    version: str
    address: str | None = None
    """Where the server answers."""
    host: str | None = None
    """Name of the machine on which it runs."""
    pid: int | None = None
    """Its process there."""
    root_dir: str | None = None
    """The folder that it serves, to which contents paths are relative; null in older ledgers."""


class SessionOpened(Entry, frozen=True, kw_only=True, tag="session_opened"):
    """A session exists, and so does its journal."""

    session_id: SessionId


class SessionClosed(Entry, frozen=True, kw_only=True, tag="session_closed"):
    """A session's journal has ended."""

    session_id: SessionId
    chain: Chain


class SessionAmended(Entry, frozen=True, kw_only=True, tag="session_amended"):
    """A person decided something about a closed session, and its journal says so after its end."""

    session_id: SessionId
    chain: Chain


class PolicySet(Entry, frozen=True, kw_only=True, tag="policy_set"):
    """A person said what agents must ask for."""

    policy: dict[TargetKind, ApprovalMode]


class TokenMinted(Entry, frozen=True, kw_only=True, tag="token_minted"):
    """A person gave an agent a token. A token counts only as it was minted here."""

    token_id: TokenId
    label: str
    scopes: tuple[str, ...]
    approval: ApprovalMode | None
    caps: Caps
    expires_at: str
    secret_sha256: Digest | None = None
    """Null in a ledger of version 0.1, which did not record it."""


class TokenRevoked(Entry, frozen=True, kw_only=True, tag="token_revoked"):
    """A person took a token back."""

    token_id: TokenId


class DecisionsUnlocked(Entry, frozen=True, kw_only=True, tag="decisions_unlocked"):
    """Somebody sent the passphrase and may decide for some minutes."""


class PassphraseRefused(Entry, frozen=True, kw_only=True, tag="passphrase_refused"):
    """Somebody sent a wrong passphrase; what they sent is not recorded."""


class AccessDenied(Entry, frozen=True, kw_only=True, tag="access_denied"):
    """An agent token was shown for something that it does not reach."""

    token_id: TokenId
    code: str
    """Of the error that was answered."""
    method: str
    """A verb of HTTP, or `tools/call` and the like."""
    route: str
    """The route's template, or the tool's name: nothing that the agent wrote."""
    count: int = 1
    """How many alike this entry stands for."""


LedgerEntry = (
    LedgerOpened
    | SessionOpened
    | SessionClosed
    | SessionAmended
    | PolicySet
    | TokenMinted
    | TokenRevoked
    | AccessDenied
    | DecisionsUnlocked
    | PassphraseRefused
)
