"""The file of agent tokens: what they may do, and a hash of each secret.

Several servers may share it. Each reads it again when it has changed, and changes it under a lock.
A token in it is valid only if a ledger of the history minted it, with the same grants. All of this
blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from ..durability import sync_folder
from ..errors import HistoryUnavailable
from ..models import Caps
from ..records import TokenMinted, timestamp
from ..types import ApprovalMode, Digest, EditMode, TokenId

FILE: Final = "tokens.json"
LOCK_TIMEOUT: Final = 10.0
"""Seconds to wait for another server's change."""

_State = tuple[int, int, int]


class LedgerTokens(NamedTuple):
    """What the ledgers of a history say about tokens."""

    minted: Mapping[TokenId, TokenMinted]
    """The tokens, each with its last secret."""
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
    approval: ApprovalMode | None = None
    edits: EditMode | None = None
    caps: Caps = Caps()
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
    tokens: list[StoredToken]


class TokenStore:
    """Reads and changes the file in a history's folder. Not thread-safe: one thread uses it.

    Parameters
    ----------
    read_ledgers
        Reads the entries about tokens from the ledgers of the history. May raise OSError.
    """

    def __init__(self, folder: Path, read_ledgers: Callable[[], LedgerTokens]) -> None:
        self.folder = folder
        self._path = folder / FILE
        self._lock = FileLock(
            f"{self._path}.lock", timeout=LOCK_TIMEOUT, mode=0o600, thread_local=False
        )
        self._state: _State | None = None
        self._kept: Stored = MappingProxyType({})
        self._read_ledgers = read_ledgers
        self._tokens: Stored = MappingProxyType({})
        self.unminted: frozenset[TokenId] = frozenset()
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
        try:
            self._read()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HistoryUnavailable(
                f"The agent tokens in {self._path} cannot be read ({error})."
            ) from error
        return self._tokens

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
        try:
            with self._lock:
                self.read()
                tokens = dict(self._kept)
                change(tokens)
                self._write(tokens)
                self._state, self._kept = self._look(), MappingProxyType(tokens)
                self._bind()
        except (OSError, Timeout) as error:
            reason = getattr(error, "strerror", None) or error
            raise HistoryUnavailable(
                f"The agent tokens cannot be saved ({reason}). Nothing was changed."
            ) from error
        return self._tokens

    def _read(self) -> None:
        state = self._look()
        changed = state != self._state
        if changed:
            self._kept = _decode(self._path) if state is not None else MappingProxyType({})
            self._state = state
        if changed or self.unminted:
            self._bind()

    def _bind(self) -> None:
        """Find the tokens of the file that a ledger minted as they are."""
        ledger_minted, ledger_revoked, self.secrets = self._read_ledgers()
        tokens: dict[TokenId, StoredToken] = {}
        unminted: set[TokenId] = set()
        for id, token in self._kept.items():
            minted = ledger_minted.get(id)
            if minted is not None and _is_minted(token, minted):
                revoked_at = token.revoked_at or ledger_revoked.get(id)
                tokens[id] = replace(token, revoked_at=revoked_at)
            elif token.revoked_at is None and token.expires_at > timestamp():
                unminted.add(id)
        self.unminted = frozenset(unminted)
        if tokens != self._tokens:
            self._tokens = MappingProxyType(tokens)

    def _look(self) -> _State | None:
        """Return a fingerprint of the file's state; None if there is no file."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _write(self, tokens: Stored) -> None:
        """Replace the file. A crash meanwhile leaves the old file."""
        temporary = self._path.with_name(f"{FILE}.new")
        data = msgspec.json.format(msgspec.json.encode(_File(tokens=list(tokens.values()))))
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        sync_folder(self._path.parent)


def _decode(path: Path) -> Stored:
    found = msgspec.json.decode(path.read_bytes(), type=_File)
    return MappingProxyType({token.id: token for token in found.tokens})


def _is_minted(token: StoredToken, minted: TokenMinted) -> bool:
    """Return whether a token is as it was minted. It may expire earlier."""
    return token.expires_at <= minted.expires_at and minted == replace(
        minted,
        at=token.created_at,
        by=replace(minted.by, username=token.username, display_name=token.display_name),
        label=token.label,
        scopes=token.scopes,
        approval=token.approval,
        edits=token.edits,
        caps=token.caps,
        secret_sha256=minted.secret_sha256 and token.secret_sha256,
        secret_expires_at=token.secret_expires_at,
    )
