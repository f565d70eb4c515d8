"""The page on which a person gives agents tokens, sees their tokens, and revokes them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from tornado import web

from ..errors import AgentExecError, NotFound
from ..models import MintedToken, Request
from ..types import is_made_up
from .handler import status_of
from .operations import requires
from .pages import PageHandler
from .routes import Route
from .token_form import TokenRow, Values, filled_in, offered
from .token_handlers import TokensBase

SUGGESTED: Final[Values] = {
    "label": ["AI agent"],
    "scope": ["exec:scratch"],
    "rights": ["exec edit"],
    "expires_in": ["28800"],
}
"""What the form suggests."""


class Query(Request, frozen=True, kw_only=True):
    """What the page is opened for."""

    notebook: str | None = None
    """Contents path of a notebook that the form ticks. Not null: the form is open."""


class TokenPageHandler(PageHandler, TokensBase):
    """The page of a person's tokens."""

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=Query)
    async def get(self, query: Query) -> None:
        """Show the person's tokens and the form."""
        await self._page(query)

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=Query, without_passphrase=True)
    async def post(self, query: Query) -> None:
        """Revoke a token, or create one and show its secret."""
        revoked = self.get_body_argument("revoke", "")
        if revoked:
            await self._revoke(revoked, query)
            return
        try:
            minted = await self.mint(await self.allowed())
        except AgentExecError as error:
            await self._page(query, error=error)
            return
        await self._page(Query(), minted=minted)

    async def _revoke(self, id: str, query: Query) -> None:
        row = next((each for each in await self._mine() if each.token.id == id), None)
        if row is None:
            raise NotFound("You have no such token.", token_id=id)
        await self.tokens.revoke(id, self.caller)
        await self._page(query, message=f"{row.name} has no access any more.")

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
        query: Query,
        *,
        message: str = "",
        error: AgentExecError | None = None,
        minted: MintedToken | None = None,
    ) -> None:
        rows = await self._mine()
        notebooks = offered(query.notebook or "")
        given: Values = {**SUGGESTED, "notebook": notebooks}
        if error is not None:
            given = filled_in(self.request.body_arguments)
        has_focus = error is None and query.notebook is not None
        form = self.form(given, *notebooks, error=error, has_focus=has_focus)
        self.show(
            HTTPStatus.OK if error is None else status_of(type(error)),
            "auth/tokens.html",
            has_script=True,
            active=[row for row in rows if row.token.status == "active"],
            ended=[row for row in rows if row.token.status != "active"],
            form=form,
            is_open=error is not None or query.notebook is not None,
            message=message,
            minted=minted,
            person="",
            mcp_url=f"{self.public_url}{self.namespace}/mcp" if self.mcp_installed() else None,
            hidden=self.form_fields(),
        )


ROUTES: Final[list[Route]] = [("/access", TokenPageHandler)]
"""A page, which no client reads: OpenAPI does not describe it."""
