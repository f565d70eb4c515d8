"""The routes of agent tokens and of the passphrase, and the page of a person's tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from tornado import web

from .. import models
from ..errors import AgentExecError, NotFound
from ..records import By
from ..text.connections import configurations
from ..types import is_made_up
from .handler import AgentExecHandler, status_of
from .operations import requires
from .pages import PageHandler
from .routes import Route
from .scopes import Caller
from .token_form import TokenRow, Values, filled_in, offered, policy_in


class TokensBase(AgentExecHandler):
    """Base of the handlers that mint tokens."""

    namespace: str
    mcp_installed: Callable[[], bool]

    async def mint(self, wanted: models.MintToken) -> models.MintedToken:
        """Mint an agent token, with what is pasted into clients."""
        token, secret = await self.tokens.mint(wanted, self.caller)
        return models.MintedToken(
            token=token,
            secret=secret,
            configurations=configurations(self.public_url, self.namespace, secret, token.scopes),
            mcp_installed=self.mcp_installed(),
        )


class TokensHandler(TokensBase):
    """The agent tokens."""

    @web.authenticated
    @requires("tokens", answers={200: models.TokenList})
    async def get(self) -> None:
        """List agent tokens without their secrets, the newest first."""
        self.answer(models.TokenList(tokens=await self.tokens.all()))

    @web.authenticated
    @requires("tokens", body=models.MintToken, answers={201: models.MintedToken})
    async def post(self, body: models.MintToken) -> None:
        """Mint an agent token. Only this answer contains its secret."""
        await self.check_given_away(body.scopes)
        minted = await self.mint(body)
        self.set_header("Cache-Control", "no-store")
        self.answer(
            minted,
            HTTPStatus.CREATED,
            location=f"{self.public_path}{self.namespace}/tokens/{minted.token.id}",
        )


class TokenHandler(AgentExecHandler):
    """One agent token."""

    @web.authenticated
    @requires("tokens", answers={200: models.Token}, without_passphrase=True)
    async def delete(self, token_id: str) -> None:
        """Revoke an agent token: its sessions are closed, and what runs there is interrupted."""
        self.answer(await self.tokens.revoke(token_id, self.caller))


class ScopesHandler(AgentExecHandler):
    """The scopes of an agent token."""

    @web.authenticated
    @requires("tokens", body=models.ExtendToken, answers={200: models.Token})
    async def post(self, token_id: str, body: models.ExtendToken) -> None:
        """Give an agent token more scopes, at most those that the person has."""
        await self.check_given_away(body.scopes)
        self.answer(await self.tokens.extend(token_id, body.scopes, self.caller))


class UnlockHandler(AgentExecHandler):
    """The passphrase."""

    @web.authenticated
    @requires("decide", body=models.Unlock, answers={200: models.Unlocked}, without_passphrase=True)
    async def post(self, body: models.Unlock) -> None:
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


SUGGESTED: Final[Values] = {
    "label": ["AI agent"],
    "scope": ["exec:scratch"],
    "rights": ["exec edit"],
    "expires_in": ["28800"],
}
"""What the form suggests."""


class PageQuery(models.Request, frozen=True, kw_only=True):
    """What the page is opened for."""

    notebook: str | None = None
    """Contents path of a notebook that the form ticks. Not null: the form is open."""
    erase: str | None = None
    """Session that can be erased from the record."""


class TokenPageHandler(PageHandler, TokensBase):
    """The page of a person's tokens, of the approval policy, and of what is erased."""

    erase: Callable[[models.Erase, By], Awaitable[models.Erasure]]
    set_policy: Callable[[models.SetPolicy, Caller], Awaitable[None]]

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=PageQuery)
    async def get(self, query: PageQuery) -> None:
        """Show the person's tokens and the form."""
        await self._page(query)

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=PageQuery, without_passphrase=True)
    async def post(self, query: PageQuery) -> None:
        """Set the policy, erase, revoke a token, or create one and show its secret."""
        message, minted, change = "", None, self._change()
        try:
            if change is None:
                minted = await self.mint(await self.allowed())
            else:
                message = await change
        except AgentExecError as error:
            await self._page(query, error=error, is_of_form=change is None)
        else:
            await self._page(PageQuery(), message=message, minted=minted)

    def _change(self) -> Awaitable[str] | None:
        """Return what one of the page's buttons does, which says it in a sentence; None: mint."""
        if erased := self.get_body_argument("erase", ""):
            return self._erase(erased)
        if self.get_body_argument("policy", ""):
            return self._set_policy()
        if revoked := self.get_body_argument("revoke", ""):
            return self._revoke(revoked)
        return None

    async def _erase(self, session_id: str) -> str:
        await self.check_passphrase()
        told = await self.erase(models.Erase(session_id=session_id), self.caller.by())
        payloads = sum(each.payloads for each in told.sessions if not each.is_open)
        return f"Erased. Sources, outputs and inputs: {payloads}."

    async def _set_policy(self) -> str:
        await self.check_passphrase()
        await self.set_policy(policy_in(self.get_body_argument), self.caller)
        return "Saved. This holds from the next execution on."

    async def _revoke(self, id: str) -> str:
        row = next((each for each in await self._mine() if each.token.id == id), None)
        if row is None:
            raise NotFound("You have no such token.", token_id=id)
        await self.tokens.revoke(id, self.caller)
        return f"{row.name} has no access any more."

    async def _mine(self) -> list[TokenRow]:
        """Return the person's tokens, the newest first.

        Where Jupyter makes names up, each login has another one: there, they are all the same
        person.
        """
        me = self.caller.username
        return [
            TokenRow(token)
            for token in await self.tokens.all()
            if token.username == me or (is_made_up(token.username) and is_made_up(me))
        ]

    async def _page(
        self,
        query: PageQuery,
        *,
        message: str = "",
        error: AgentExecError | None = None,
        is_of_form: bool = False,
        minted: models.MintedToken | None = None,
    ) -> None:
        """Show the page; an error stands in the form of tokens, which is filled in, or above."""
        of_form = error if is_of_form else None
        rows = await self._mine()
        notebooks = offered(query.notebook or "")
        given: Values = {**SUGGESTED, "notebook": notebooks}
        if of_form is not None:
            given = filled_in(self.request.body_arguments)
        has_focus = error is None and query.notebook is not None
        erasure = None
        if query.erase is not None:
            asked = models.Erase(session_id=query.erase, dry_run=True)
            erasure = await self.erase(asked, self.caller.by())
        form = self.form(given, *notebooks, error=of_form, has_focus=has_focus)
        self.show(
            HTTPStatus.OK if error is None else status_of(type(error)),
            "auth/tokens.html",
            has_script=True,
            active=[row for row in rows if row.token.status == "active"],
            ended=[row for row in rows if row.token.status != "active"],
            erasure=erasure,
            form=form,
            failed=error.message if error is not None and of_form is None else "",
            is_open=of_form is not None or query.notebook is not None,
            message=message,
            minted=minted,
            person="",
            mcp_url=f"{self.public_url}{self.namespace}/mcp" if self.mcp_installed() else None,
            hidden=self.form_fields(),
        )


PAGE_ROUTES: Final[list[Route]] = [("/access", TokenPageHandler)]
"""A page, which no client reads: OpenAPI does not describe it."""
