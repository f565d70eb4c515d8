"""Agent tokens: people mint and revoke them, agents send them, and they expire.

Only a hash of the secret is kept, beside the history and in the ledger, which records what was
minted and revoked. If a client signed in, the secret is derived from its refresh token and its id,
so that the one kept hash checks both.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace
from ulid import ULID

from .. import records
from ..errors import HistoryUnavailable, InvalidRequest, NotFound, Unauthenticated
from ..models import MintToken, Token, TokenRef, derive
from ..records import digest_of, timestamp
from ..storage.shared_file import SharedReads
from ..tasks import Tasks, call_later_apart
from ..types import AGENT_PREFIX, Digest, TokenId
from .credentials import ACCESS_TOKEN, REFRESH_PREFIX, REFRESH_TOKEN
from .scopes import Caller, Grants
from .token_store import StoredToken, TokenStore

A = TypeVar("A")
T = TypeVar("T")

Standing: TypeAlias = Literal["active", "expired", "revoked"]

SECRET_BYTES: Final = 32
KEEP_DELAY: Final = 60.0
"""Seconds after which times of last use, and changes that could not be saved, are saved."""
KEPT_DAYS: Final = 90
"""How long an ended token is still listed."""

SECRET_SECONDS: Final = 3600.0
"""How long a secret is valid that its client can renew."""

_NOBODYS: Final = digest_of(b"")


class TokenRefused(Unauthenticated):
    """An agent token that is not valid, or no longer valid.

    Parameters
    ----------
    token_id
        The token's id, if a token with this id exists.
    is_renewable
        Whether only the secret has expired, and the client can renew it.
    """

    def __init__(
        self, message: str, token_id: TokenId | None = None, *, is_renewable: bool = False
    ) -> None:
        super().__init__(message)
        self.token_id = token_id
        self.is_denial = not is_renewable


class SignedIn(NamedTuple):
    """What a client gets for a sign-in."""

    token: Token
    secret: str
    refresh: str
    expires_in: int
    """Seconds for which the secret is valid."""


class Tokens:
    """The agent tokens of a history.

    Parameters
    ----------
    note, note_owed
        Write an entry into the history's ledger: durable on return, or else HistoryUnavailable; and
        now, or together with the next one. Both block.
    changed
        Called after a token was minted, got more scopes, or has ended.
    max_lifetime
        The longest lifetime of a token, in seconds.
    thread
        An executor with one thread, for blocking work.
    barred
        Returns a sentence that says why no token is valid now; None if they are.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        note: Callable[[records.LedgerEntry], None],
        note_owed: Callable[[records.LedgerEntry], None],
        changed: Callable[[], None],
        max_lifetime: float,
        thread: Executor,
        log: logging.Logger,
        barred: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        self._store = store
        self._note, self._note_owed = note, note_owed
        self._changed = changed
        self.max_lifetime = max_lifetime
        self._thread = thread
        self._log = log
        self._tasks = Tasks(log)
        self._revoked: dict[TokenId, str] = {}  # times of revocation that are not on disk yet
        self._used: dict[TokenId, str] = {}  # times of last use that are not on disk yet
        self._renewing: set[TokenId] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._reads = SharedReads(store.read, thread, store.folder, store.is_unchanged)
        self._look_if_barred = barred
        self._barred: str | None = None

    async def stop(self) -> None:
        """Save unsaved changes."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.end()
        await self._keep()

    # -- people ------------------------------------------------------------------------------------

    def check_request(self, asked: MintToken) -> None:
        """Raise InvalidRequest if no such token can be minted."""
        Grants.parse(asked.scopes)
        if asked.expires_in > self.max_lifetime:
            raise InvalidRequest(
                f"expires_in: {asked.expires_in:g} seconds is more than the server's "
                f"{self.max_lifetime:g}.",
                field="expires_in",
                allowed=self.max_lifetime,
            )

    async def mint(
        self,
        asked: MintToken,
        caller: Caller,
        *,
        secret: str | None = None,
        secret_seconds: float | None = None,
    ) -> tuple[Token, str]:
        """Mint a token; return it and the whole credential, which is never shown again.

        Parameters
        ----------
        secret
            None: a random one.
        secret_seconds
            How long the secret is valid; None: as long as the token.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
            The token was not minted.
        """
        self.check_request(asked)
        now = datetime.now(UTC)
        until = None if secret_seconds is None else now + timedelta(seconds=secret_seconds)
        id, secret = TokenId(f"t_{ULID()}"), secret or secrets.token_hex(SECRET_BYTES)
        minted = StoredToken(
            id=id,
            secret_sha256=digest_of(secret.encode()),
            label=asked.label,
            scopes=tuple(asked.scopes),
            approval=asked.approval,
            edits=asked.edits,
            caps=derive(records.RecordedCaps, asked.caps),
            username=caller.username,
            display_name=caller.display_name,
            created_at=timestamp(now),
            expires_at=timestamp(now + timedelta(seconds=asked.expires_in)),
            secret_expires_at=None if until is None else timestamp(until),
        )
        entry = derive(
            records.TokenMinted, minted, at=minted.created_at, by=caller.by(), token_id=id
        )
        await self._in_thread(self._note, entry)
        await self._change(minted)
        self._changed()
        return self._answer(minted), f"{AGENT_PREFIX}{id}_{secret}"

    async def sign_in(self, asked: MintToken, caller: Caller, client_id: str) -> SignedIn:
        """Mint a token for a client that can renew its secret.

        Raises
        ------
        InvalidRequest, HistoryUnavailable
        """
        random = secrets.token_hex(SECRET_BYTES)
        secret = derived_secret(random, client_id)
        token, shown = await self.mint(asked, caller, secret=secret, secret_seconds=SECRET_SECONDS)
        return signed_in(token, shown, random)

    async def all(self) -> list[Token]:
        """Return the tokens, the newest first."""
        await self.refresh()
        return [self._answer(token) for token in reversed(list(self._store.tokens.values()))]

    async def extend(self, id: str, scopes: Sequence[str], caller: Caller) -> Token:
        """Give a valid token more scopes; it keeps its secret and its limits.

        Raises
        ------
        NotFound
            There is no such token, or it has ended.
        InvalidRequest, HistoryUnavailable
            Nothing was changed.
        """
        Grants.parse(scopes)
        await self.refresh()
        token = self._store.tokens.get(TokenId(id))
        if token is None or self._kept_standing(token.id) != "active":
            raise NotFound("There is no such token, or it has ended.", token_id=id)
        more = tuple(scope for scope in dict.fromkeys(scopes) if scope not in token.scopes)
        if more:
            entry = records.TokenExtended(
                at=timestamp(), by=caller.by(), token_id=token.id, scopes=more
            )
            await self._in_thread(self._note, entry)
            await self._change(extended=(token.id, more))
            self._changed()
        return self._answer(self._store.tokens[token.id])

    async def revoke(self, id: str, caller: Caller) -> Token:
        """Revoke a token at once, even if that cannot be written.

        Raises
        ------
        NotFound
            There is no such token.
        HistoryUnavailable
            It is revoked on this server, but not yet on disk. The write is retried.
        """
        await self.refresh()
        token = self._store.tokens.get(TokenId(id))
        if token is None:
            raise NotFound("There is no such token.", token_id=id)
        if self._kept_standing(token.id) == "revoked":
            return self._answer(token)
        at = timestamp()
        self._revoked[token.id] = at
        self._changed()
        entry = records.TokenRevoked(at=at, by=caller.by(), token_id=token.id)
        await self._in_thread(self._note_owed, entry)
        try:
            await self._change()
        except HistoryUnavailable as error:
            self._keep_later()
            raise HistoryUnavailable(
                "It is revoked here and now, but that cannot be written yet, so other servers and "
                f"the next one may not know of it. {error.message}",
                token_id=token.id,
            ) from error
        return self._answer(self._store.tokens[token.id])

    # -- agents ------------------------------------------------------------------------------------

    async def caller(self, shown: str) -> Caller:
        """Return the caller that sends a token.

        Raises
        ------
        TokenRefused
            It is not a token, or no longer valid.
        HistoryUnavailable
            The tokens cannot be read.
        """
        await self.refresh()
        found = ACCESS_TOKEN.fullmatch(shown)
        token = None if found is None else self._store.tokens.get(TokenId(found["id"]))
        secret = "" if found is None else found["secret"]
        sha256 = hashlib.sha256(secret.encode()).hexdigest()
        kept = _NOBODYS if token is None else token.secret_sha256
        if not hmac.compare_digest(sha256, kept) or token is None:
            raise TokenRefused(
                "This server knows no such agent token; ask the person for another.",
                None if token is None else token.id,
            )
        self.check(token.id)
        if (token.secret_expires_at or token.expires_at) <= timestamp():
            raise TokenRefused(
                "This access token has expired; refresh it.", token.id, is_renewable=True
            )
        self._note_use(token.id)
        return self._caller(token)

    async def give_back(self, id: TokenId) -> None:
        """Revoke a token in the name of its own agent."""
        await self.refresh()
        if (token := self._store.tokens.get(id)) is not None:
            await self.revoke(id, self._caller(token))

    async def renewable(self, refresh: str, client_id: str) -> Token | None:
        """Return the token to which a client's refresh token belongs; None if there is none.

        If the client has already used the refresh token, somebody else may have it as well: the
        agent token is revoked.
        """
        await self.refresh()
        token, sha256 = self._of_refresh(refresh, client_id)
        if token is None or self.ending(token.id) is not None:
            return None
        if sha256 == token.secret_sha256:
            return self._answer(token)
        if (token.id, sha256) in self._store.secrets:
            await self.give_back(token.id)
        return None

    async def renew(self, refresh: str, client_id: str) -> SignedIn:
        """Exchange a refresh token for a new one and a new secret of the same agent token.

        Raises
        ------
        TokenRefused
            The refresh token is not valid, or was used meanwhile.
        HistoryUnavailable
        """
        token, sha256 = self._of_refresh(refresh, client_id)
        if token is None or sha256 != token.secret_sha256 or token.id in self._renewing:
            raise TokenRefused("This refresh token is not valid.")
        self.check(token.id)
        now, random = datetime.now(UTC), secrets.token_hex(SECRET_BYTES)
        secret = derived_secret(random, client_id)
        renewed = replace(
            token,
            secret_sha256=digest_of(secret.encode()),
            secret_expires_at=timestamp(now + timedelta(seconds=SECRET_SECONDS)),
        )
        by = self._caller(token).by()
        entry = derive(records.TokenRenewed, renewed, at=timestamp(now), by=by, token_id=token.id)
        self._renewing.add(token.id)
        try:
            await self._in_thread(self._note, entry)
            await self._change(renewed)
        finally:
            self._renewing.discard(token.id)
        return signed_in(self._answer(renewed), f"{AGENT_PREFIX}{token.id}_{secret}", random)

    async def refresh(self) -> None:
        """Read changes of other servers, and look whether tokens are valid at all.

        Raises
        ------
        HistoryUnavailable
            The tokens cannot be read.
        """
        await self._reads.fresh()
        if self._look_if_barred is not None:
            self._barred = await self._look_if_barred()

    def grants(self, id: TokenId) -> Grants:
        """Return what a token allows now; nothing if it is unknown."""
        token = self._store.tokens.get(id)
        return Grants() if token is None else Grants.parse(token.scopes)

    def standing(self, id: TokenId) -> Standing:
        """Return whether a token is valid; an unknown one counts as revoked, and a barred one."""
        return "revoked" if self._barred else self._kept_standing(id)

    def _kept_standing(self, id: TokenId) -> Standing:
        token = self._store.tokens.get(id)
        if token is None or token.revoked_at is not None or id in self._revoked:
            return "revoked"
        return "expired" if token.expires_at <= timestamp() else "active"

    def check(self, id: TokenId) -> None:
        """Raise TokenRefused if a token is not valid any more."""
        ending = self.ending(id)
        if ending is not None:
            raise TokenRefused(ending, id)

    def ending(self, id: TokenId) -> str | None:
        """Return a sentence that explains why a token is no longer valid; None if it is valid."""
        standing = self.standing(id)
        if standing == "active" or self._barred:
            return self._barred
        what = "has expired" if standing == "expired" else "was revoked"
        return f"This agent token {what}; ask the person for another."

    def knows(self, id: TokenId) -> bool:
        """Return whether there is, or was, a token with an id."""
        return id in self._store.tokens

    # -- helpers -----------------------------------------------------------------------------------

    def _of_refresh(self, refresh: str, client_id: str) -> tuple[StoredToken | None, Digest]:
        """Return the token that a refresh token names, and the hash of its derived secret."""
        found = REFRESH_TOKEN.fullmatch(refresh)
        if found is None:
            return None, _NOBODYS
        sha256 = digest_of(derived_secret(found["secret"], client_id).encode())
        return self._store.tokens.get(TokenId(found["id"])), sha256

    def _caller(self, token: StoredToken) -> Caller:
        return Caller(
            username=token.username,
            display_name=token.display_name,
            access="token",
            token=TokenRef(id=token.id, label=token.label),
            grants=Grants.parse(token.scopes),
            approval=token.approval and records.current_mode(token.approval),
            edits=token.edits,
            caps=token.caps,
        )

    def _answer(self, token: StoredToken) -> Token:
        return derive(
            Token,
            token,
            scopes=list(token.scopes),
            status=self._kept_standing(token.id),
            approval=token.approval and records.current_mode(token.approval),
            revoked_at=token.revoked_at or self._revoked.get(token.id),
            last_used_at=self._used.get(token.id) or token.last_used_at,
        )

    async def _change(
        self, *added: StoredToken, extended: tuple[TokenId, tuple[str, ...]] | None = None
    ) -> None:
        """Write new and renewed tokens, the scopes that one has got, and unsaved changes."""
        used, revoked = dict(self._used), dict(self._revoked)

        def change(tokens: dict[TokenId, StoredToken]) -> None:
            _note_used(tokens, used)
            _note_revoked(tokens, revoked)
            if added:
                _forget_old(tokens)
            for token in added:
                known = tokens.get(token.id, token)
                tokens[token.id] = replace(
                    token,
                    scopes=known.scopes,
                    revoked_at=known.revoked_at,
                    last_used_at=known.last_used_at,
                )
            if extended is not None and (known_token := tokens.get(extended[0])) is not None:
                scopes = tuple(dict.fromkeys((*known_token.scopes, *extended[1])))
                tokens[known_token.id] = replace(known_token, scopes=scopes)

        await self._in_thread(self._store.change, change)
        self._used = {id: at for id, at in self._used.items() if used.get(id) != at}
        self._revoked = {id: at for id, at in self._revoked.items() if id not in revoked}

    def _note_use(self, id: TokenId) -> None:
        self._used[id] = timestamp()
        self._keep_later()

    def _keep_later(self) -> None:
        if self._timer is None:
            self._timer = call_later_apart(KEEP_DELAY, self._time_to_keep)

    def _time_to_keep(self) -> None:
        self._timer = None
        self._tasks.start(self._keep(), "keep what is known of agent tokens")

    async def _keep(self) -> None:
        if self._used or self._revoked:
            try:
                await self._change()
            except HistoryUnavailable as error:
                self._log.warning("%s", error.message)
                self._keep_later()

    async def _in_thread(self, call: Callable[[A], T], argument: A) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, argument)


def derived_secret(random: str, client_id: str) -> str:
    """Return the secret of an agent token that belongs to a refresh token of a client."""
    return hashlib.sha256(f"{random} {client_id}".encode()).hexdigest()


def signed_in(token: Token, secret: str, random: str) -> SignedIn:
    """Return what a client gets: a credential, and the refresh token from which it is derived."""
    left = datetime.fromisoformat(token.expires_at) - datetime.now(UTC)
    expires_in = int(min(SECRET_SECONDS, left.total_seconds()))
    return SignedIn(token, secret, f"{REFRESH_PREFIX}{token.id}_{random}", expires_in)


def _note_used(tokens: dict[TokenId, StoredToken], used: dict[TokenId, str]) -> None:
    """Set when tokens were last used; another server may have seen a later use."""
    for id, at in used.items():
        token = tokens.get(id)
        if token is not None and at > (token.last_used_at or ""):
            tokens[id] = replace(token, last_used_at=at)


def _note_revoked(tokens: dict[TokenId, StoredToken], revoked: dict[TokenId, str]) -> None:
    """Set which tokens were revoked."""
    for id, at in revoked.items():
        if id in tokens and tokens[id].revoked_at is None:
            tokens[id] = replace(tokens[id], revoked_at=at)


def _forget_old(tokens: dict[TokenId, StoredToken]) -> None:
    """Drop tokens that ended long ago; the ledger still has them."""
    long_ago = timestamp(datetime.now(UTC) - timedelta(days=KEPT_DAYS))
    for token in list(tokens.values()):
        if (token.revoked_at or token.expires_at) < long_ago:
            del tokens[token.id]
