"""The routes of agent tokens and of the passphrase."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from tornado import web

from ..connections import configurations
from ..models import (
    ExtendToken,
    MintedToken,
    MintToken,
    Token,
    TokenList,
    Unlock,
    Unlocked,
)
from .handler import AgentExecHandler
from .operations import requires


class TokensBase(AgentExecHandler):
    """Base of the handlers below."""

    namespace: str
    mcp_installed: Callable[[], bool]

    async def mint(self, wanted: MintToken) -> MintedToken:
        """Mint an agent token, with what is pasted into clients."""
        token, secret = await self.tokens.mint(wanted, self.caller)
        return MintedToken(
            token=token,
            secret=secret,
            configurations=configurations(self.public_url, self.namespace, secret, token.scopes),
            mcp_installed=self.mcp_installed(),
        )


class TokensHandler(TokensBase):
    """The agent tokens."""

    @web.authenticated
    @requires("tokens", answers={200: TokenList})
    async def get(self) -> None:
        """List agent tokens without their secrets, the newest first."""
        self.answer(TokenList(tokens=await self.tokens.all()))

    @web.authenticated
    @requires("tokens", body=MintToken, answers={201: MintedToken})
    async def post(self, body: MintToken) -> None:
        """Mint an agent token. Only this answer contains its secret."""
        await self.check_given_away(body.scopes)
        minted = await self.mint(body)
        self.set_header("Cache-Control", "no-store")
        self.answer(
            minted,
            HTTPStatus.CREATED,
            location=f"{self.public_path}{self.namespace}/tokens/{minted.token.id}",
        )


class TokenHandler(TokensBase):
    """One agent token."""

    @web.authenticated
    @requires("tokens", answers={200: Token}, without_passphrase=True)
    async def delete(self, token_id: str) -> None:
        """Revoke an agent token: its sessions are closed, and what runs there is interrupted."""
        self.answer(await self.tokens.revoke(token_id, self.caller))


class ScopesHandler(TokensBase):
    """The scopes of an agent token."""

    @web.authenticated
    @requires("tokens", body=ExtendToken, answers={200: Token})
    async def post(self, token_id: str, body: ExtendToken) -> None:
        """Give an agent token more scopes, at most those that the person has."""
        await self.check_given_away(body.scopes)
        self.answer(await self.tokens.extend(token_id, body.scopes, self.caller))


class UnlockHandler(AgentExecHandler):
    """The passphrase."""

    @web.authenticated
    @requires("decide", body=Unlock, answers={200: Unlocked}, without_passphrase=True)
    async def post(self, body: Unlock) -> None:
        """Exchange the server's passphrase for an unlock, which decisions need."""
        unlocked = await self.unlocks.unlock(body.passphrase, self.caller)
        self.set_header("Cache-Control", "no-store")
        self.answer(unlocked)


ROUTES: Final[list[tuple[str, type[AgentExecHandler]]]] = [
    ("/tokens", TokensHandler),
    ("/tokens/{token_id}", TokenHandler),
    ("/tokens/{token_id}/scopes", ScopesHandler),
    ("/unlock", UnlockHandler),
]
