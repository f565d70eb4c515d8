"""The routes by which people give agents tokens, take them back, and show the passphrase."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from tornado import web

from ..models import MintedToken, MintToken, Token, TokenList, Unlock, Unlocked
from .configurations import configurations
from .grants import Grants
from .handler import AgentExecHandler, requires
from .scopes import given_away


class TokensBase(AgentExecHandler):
    """Base of the handlers below."""

    namespace: str


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
        """Mint an agent token; its secret is told this once."""
        for scope in given_away(Grants.parse(body.scopes)):
            await self.ask_authorizer(scope)
        token, secret = await self.tokens.mint(body, self.caller)
        url = f"{self.request.protocol}://{self.request.host}{self.base_url}"
        self.set_header("Cache-Control", "no-store")
        self.answer(
            MintedToken(
                token=token,
                secret=secret,
                configurations=configurations(url, self.namespace, secret),
            ),
            HTTPStatus.CREATED,
            location=f"{self.base_url}{self.namespace}/tokens/{token.id}",
        )


class TokenHandler(TokensBase):
    """One agent token."""

    @web.authenticated
    @requires("tokens", answers={200: Token}, without_passphrase=True)
    async def delete(self, token_id: str) -> None:
        """Revoke an agent token: its sessions are closed, and what runs there is interrupted."""
        self.answer(await self.tokens.revoke(token_id, self.caller))


class UnlockHandler(AgentExecHandler):
    """The passphrase."""

    @web.authenticated
    @requires("decide", body=Unlock, answers={200: Unlocked}, without_passphrase=True)
    async def post(self, body: Unlock) -> None:
        """Exchange the server's passphrase for what decisions have to show for some minutes."""
        unlocked = await self.unlocks.unlock(body.passphrase, self.caller)
        self.set_header("Cache-Control", "no-store")
        self.answer(unlocked)


ROUTES: Final[list[tuple[str, type[AgentExecHandler]]]] = [
    ("/tokens", TokensHandler),
    ("/tokens/{token_id}", TokenHandler),
    ("/unlock", UnlockHandler),
]
