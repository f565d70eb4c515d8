"""What people have granted at the service, in SQLite.

The agent token of a grant is sealed with the secret that only the client has. Whoever reads the
file cannot use it, and a grant that is deleted here cannot be used any more.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from cryptography.fernet import Fernet

from ..auth.credentials import ACCESS_TOKEN, REFRESH_TOKEN
from ..auth.scopes import Caller
from ..auth.tokens import (
    SECRET_BYTES,
    SECRET_SECONDS,
    SignedIn,
    TokenRefused,
    derived_secret,
    signed_in,
)
from ..models import MintedToken, Token, TokenRef
from ..records import timestamp
from ..types import AGENT_PREFIX, TokenId

T = TypeVar("T")

SCHEMA: Final = """
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS grants (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL,
    server_name TEXT NOT NULL,
    token TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    secret_sha256 TEXT NOT NULL,
    secret_expires_at TEXT NOT NULL,
    sealed BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS used_secrets (
    sha256 TEXT PRIMARY KEY,
    id TEXT NOT NULL REFERENCES grants ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS pauses (at TEXT NOT NULL, username TEXT NOT NULL);
"""
COLUMNS: Final = "token, username, server_name, secret_sha256, secret_expires_at, sealed"


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """An agent token that a person has granted."""

    token: Token
    """The agent token at the person's server, as it was minted."""
    username: str
    server_name: str
    """Name of the person's server; empty for the default one."""
    secret_sha256: str
    """Of the secret that the client has now."""
    secret_expires_at: str
    sealed: bytes
    """The agent token's credential, readable with the client's secret."""

    def credential(self, secret: str) -> str:
        """Return the agent token's credential."""
        return _seal(secret).decrypt(self.sealed).decode()


class Pause(msgspec.Struct, frozen=True):
    """An administrator's pause of all agents."""

    at: str
    username: str


class Grants:
    """The grants, and the issuer of the tokens that clients of the service have.

    Parameters
    ----------
    path
        The database; it is made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.executescript(SCHEMA)
        self._thread = ThreadPoolExecutor(1, "grants")

    async def stop(self) -> None:
        """Close the database."""
        await self._in_thread(self._database.close)
        self._thread.shutdown()

    # -- people ------------------------------------------------------------------------------------

    async def add(
        self, username: str, server_name: str, minted: MintedToken, client_id: str
    ) -> SignedIn:
        """Keep a new agent token for a client, and return the tokens that the client gets."""
        random = secrets.token_hex(SECRET_BYTES)
        secret = derived_secret(random, client_id)
        token = minted.token
        values = (
            token.id,
            username,
            server_name,
            msgspec.json.encode(token).decode(),
            token.expires_at,
            *_kept(secret, minted.secret),
        )

        def add() -> None:
            with self._database as run:
                run.execute("DELETE FROM grants WHERE expires_at <= ?", (timestamp(),))
                run.execute("INSERT INTO grants VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

        await self._in_thread(add)
        return _answer(token, secret, random)

    async def of(self, username: str) -> list[Grant]:
        """Return a person's grants, the newest first."""
        found = await self._find("username = ? AND expires_at > ?", username, timestamp())
        return sorted(found, key=lambda grant: grant.token.created_at, reverse=True)

    async def end(self, id: TokenId) -> None:
        """Delete a grant. Nobody can read its agent token any more."""
        await self._run("DELETE FROM grants WHERE id = ?", id)

    # -- clients -----------------------------------------------------------------------------------

    async def find(self, shown: str) -> tuple[Grant, str]:
        """Return the grant of an access token, and the agent token's credential.

        Raises
        ------
        TokenRefused
        """
        found = ACCESS_TOKEN.fullmatch(shown)
        grant = None if found is None else await self._grant(found["id"])
        secret = "" if found is None else found["secret"]
        kept = "" if grant is None else grant.secret_sha256
        if not hmac.compare_digest(_sha256(secret), kept) or grant is None:
            raise TokenRefused("This hub knows no such token; ask the person for another.")
        if min(grant.secret_expires_at, grant.token.expires_at) <= timestamp():
            raise TokenRefused("This access token has expired; refresh it.", is_renewable=True)
        return grant, grant.credential(secret)

    async def caller(self, shown: str) -> Caller:
        """Return the caller that sends an access token; raise TokenRefused if it is not valid."""
        grant, _ = await self.find(shown)
        return Caller(
            username=grant.username,
            display_name=grant.username,
            access="token",
            token=TokenRef(id=grant.token.id, label=grant.token.label),
        )

    async def renewable(self, refresh: str, client_id: str) -> Token | None:
        """Return the token to which a refresh token belongs; None if there is none.

        If the client has already used it, somebody else may have it as well: the grant ends.
        """
        grant, secret = await self._of_refresh(refresh, client_id)
        if grant is None or grant.token.expires_at <= timestamp():
            return None
        sha256 = _sha256(secret)
        if hmac.compare_digest(sha256, grant.secret_sha256):
            return grant.token
        used = "SELECT 1 FROM used_secrets WHERE sha256 = ? AND id = ?"
        if await self._run(used, sha256, grant.token.id):
            await self.end(grant.token.id)
        return None

    async def renew(self, refresh: str, client_id: str) -> SignedIn:
        """Exchange a refresh token for a new secret and a new refresh token.

        Raises
        ------
        TokenRefused
            It is not valid, or was used meanwhile.
        """
        grant, secret = await self._of_refresh(refresh, client_id)
        if grant is None or not hmac.compare_digest(_sha256(secret), grant.secret_sha256):
            raise TokenRefused("This refresh token is not valid.")
        random = secrets.token_hex(SECRET_BYTES)
        renewed = derived_secret(random, client_id)
        values = (*_kept(renewed, grant.credential(secret)), grant.token.id, grant.secret_sha256)

        def change() -> None:
            with self._database as run:
                changed = run.execute(
                    "UPDATE grants SET secret_sha256 = ?, secret_expires_at = ?, sealed = ? "
                    "WHERE id = ? AND secret_sha256 = ?",
                    values,
                )
                if changed.rowcount == 0:
                    raise TokenRefused("This refresh token was used meanwhile.")
                used = (grant.secret_sha256, grant.token.id)
                run.execute("INSERT INTO used_secrets VALUES (?, ?)", used)

        await self._in_thread(change)
        return _answer(grant.token, renewed, random)

    async def give_back(self, id: TokenId) -> None:
        """Revoke a grant in the name of its own agent."""
        await self.end(id)

    # -- administrators ----------------------------------------------------------------------------

    async def pause(self) -> Pause | None:
        """Return the pause of all agents; None if they are not paused."""
        found = await self._run("SELECT at, username FROM pauses")
        return Pause(*found[0]) if found else None

    async def set_paused(self, paused: bool, username: str) -> None:
        """Pause all agents, or let them go on."""

        def change() -> None:
            with self._database as run:
                run.execute("DELETE FROM pauses")
                if paused:
                    run.execute("INSERT INTO pauses VALUES (?, ?)", (timestamp(), username))

        await self._in_thread(change)

    # -- helpers -----------------------------------------------------------------------------------

    async def _of_refresh(self, refresh: str, client_id: str) -> tuple[Grant | None, str]:
        """Return the grant that a refresh token names, and the secret derived from it."""
        found = REFRESH_TOKEN.fullmatch(refresh)
        if found is None:
            return None, ""
        return await self._grant(found["id"]), derived_secret(found["secret"], client_id)

    async def _grant(self, id: str) -> Grant | None:
        found = await self._find("id = ?", id)
        return found[0] if found else None

    async def _find(self, where: str, *values: str) -> list[Grant]:
        found = await self._run(f"SELECT {COLUMNS} FROM grants WHERE {where}", *values)  # noqa: S608
        return [
            Grant(
                token=msgspec.json.decode(token, type=Token),
                username=username,
                server_name=server_name,
                secret_sha256=sha256,
                secret_expires_at=expires_at,
                sealed=sealed,
            )
            for token, username, server_name, sha256, expires_at, sealed in found
        ]

    async def _run(self, statement: str, *values: str) -> list[Any]:
        def run() -> list[Any]:
            with self._database as database:
                return database.execute(statement, values).fetchall()

        return await self._in_thread(run)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _kept(secret: str, credential: str) -> tuple[str, str, bytes]:
    """Return what is kept of a client's secret, and the agent token that it seals."""
    until = datetime.now(UTC) + timedelta(seconds=SECRET_SECONDS)
    return _sha256(secret), timestamp(until), _seal(secret).encrypt(credential.encode())


def _answer(token: Token, secret: str, random: str) -> SignedIn:
    return signed_in(token, f"{AGENT_PREFIX}{token.id}_{secret}", random)


def _seal(secret: str) -> Fernet:
    key = hashlib.sha256(f"seal {secret}".encode()).digest()
    return Fernet(urlsafe_b64encode(key))


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
