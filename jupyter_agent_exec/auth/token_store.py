"""The file of agent tokens: what they may do, and a hash of each secret.

A token in it is valid only if a ledger of the history minted it, with the same grants. All of this
blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import HistoryUnavailable
from ..records import RecordedCaps, TokenMinted, timestamp
from ..storage.shared_file import SharedFile
from ..types import Digest, EditMode, RecordedMode, TokenId

FILE: Final = "tokens.json"


class LedgerTokens(NamedTuple):
    """What the ledgers of a history say about tokens."""

    minted: Mapping[TokenId, TokenMinted]
    """The tokens, each with its last secret and all scopes that it has got."""
    revoked: Mapping[TokenId, str]
    """When each of the revoked ones was."""
    secrets: Collection[tuple[TokenId, Digest | None]]
    """The hashes of all secrets that each has had."""


class StoredToken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent token, as it is stored."""

    id: TokenId
    secret_sha256: Digest
    label: str
    scopes: tuple[str, ...]
    approval: RecordedMode | None = None
    edits: EditMode | None = None
    caps: RecordedCaps = RecordedCaps()
    username: str
    display_name: str
    created_at: str
    expires_at: str
    secret_expires_at: str | None = None
    """When a client that signed in needs a new secret; None: not before the token expires."""
    revoked_at: str | None = None
    last_used_at: str | None = None


Stored = Mapping[TokenId, StoredToken]
"""All tokens, in the order in which they were minted."""


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    tokens: tuple[StoredToken, ...]


class TokenStore:
    """Reads and changes the file in a history's folder. Not thread-safe: one thread uses it.

    Parameters
    ----------
    read_ledgers
        Reads the entries about tokens from the ledgers of the history. May raise OSError.
    """

    def __init__(
        self, folder: Path, read_ledgers: Callable[[], LedgerTokens], log: logging.Logger
    ) -> None:
        self.folder = folder
        self._log = log
        decode = msgspec.json.Decoder(_File).decode
        self._file = SharedFile(folder / FILE, "The agent tokens", decode, _File(tokens=()))
        self._bound: _File | None = None
        self._read_ledgers = read_ledgers
        self.tokens: Stored = MappingProxyType({})
        """The tokens that ledgers of this history minted, as they were read last. All threads may
        read this."""
        self.unminted: set[TokenId] = set()
        """Tokens in the file that no ledger minted as they are; they are refused, but kept."""
        self.secrets: Collection[tuple[TokenId, Digest | None]] = ()
        """The hashes of all secrets that each token has had."""

    def read(self) -> Stored:
        """Return the current state of the tokens that ledgers of this history minted.

        Raises
        ------
        HistoryUnavailable
            The file cannot be read, so that no token is valid.
        """
        self._file.read()
        self._bind()
        return self.tokens

    def is_unchanged(self) -> bool:
        """Return whether `read` would find nothing new; any thread may ask, and asks the disk."""
        is_bound = self._bound is self._file.content and not self.unminted
        return is_bound and self._file.is_unchanged

    def change(self, change: Callable[[dict[TokenId, StoredToken]], None]) -> Stored:
        """Change the tokens, durable on return.

        Parameters
        ----------
        change
            Gets all tokens from the disk, and changes them in place.

        Raises
        ------
        HistoryUnavailable
            Nothing was changed on disk.
        """

        def changed(file: _File) -> _File:
            tokens = {token.id: token for token in file.tokens}
            change(tokens)
            return _File(tokens=tuple(tokens.values()))

        self._file.change(changed)
        self._bind()
        return self.tokens

    def _bind(self) -> None:
        """Find the tokens of the file that a ledger minted as they are."""
        file = self._file.content
        if file is self._bound and not self.unminted:
            return
        try:
            ledger_minted, ledger_revoked, secrets = self._read_ledgers()
        except OSError as error:
            raise HistoryUnavailable(f"The ledgers cannot be read ({error}).") from error
        tokens: dict[TokenId, StoredToken] = {}
        unminted: set[TokenId] = set()
        for token in file.tokens:
            id = token.id
            minted = ledger_minted.get(id)
            if minted is not None and _is_minted(token, minted):
                revoked_at = token.revoked_at or ledger_revoked.get(id)
                tokens[id] = replace(token, revoked_at=revoked_at)
            elif token.revoked_at is None and token.expires_at > timestamp():
                unminted.add(id)
        if unminted and unminted != self.unminted:
            self._log.warning(
                "Agent tokens that no ledger of this history minted as they are are refused: %s",
                ", ".join(sorted(unminted)),
            )
        self.unminted = unminted
        if tokens != self.tokens:
            self.tokens = MappingProxyType(tokens)
        self.secrets = secrets  # after the tokens: a secret that is not theirs has been used
        self._bound = file  # last: then another thread may take them for read


def _is_minted(token: StoredToken, minted: TokenMinted) -> bool:
    """Return whether a token is as it was minted. It may expire earlier, and have fewer scopes."""
    is_within = set(token.scopes) <= set(minted.scopes)
    return (
        is_within
        and token.expires_at <= minted.expires_at
        and minted
        == replace(
            minted,
            at=token.created_at,
            by=replace(minted.by, username=token.username, display_name=token.display_name),
            label=token.label,
            approval=token.approval,
            edits=token.edits,
            caps=token.caps,
            secret_sha256=token.secret_sha256,
            secret_expires_at=token.secret_expires_at,
        )
    )
