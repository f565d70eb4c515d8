"""The routes of sign-in at a person's own server. Jupyter's own login tells who the person is."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from jupyter_server.auth.decorator import allow_unauthenticated
from tornado import web

from .. import errors
from ..auth import pages
from ..auth.handler import AgentExecHandler
from ..auth.operations import requires
from ..auth.routes import Route
from ..auth.token_form import TokenForm, Values, offered
from ..models import Request
from .endpoint import check_installed
from .sign_in import (
    AuthorizationRoute,
    ConsentPage,
    Grant,
    SignIn,
    SignInPage,
    SignInRequest,
    documents,
)


class SignInHandler(AuthorizationRoute, AgentExecHandler):
    """Base of the handlers below."""

    namespace: str
    sign_in: SignIn

    @property
    def issuer(self) -> str:
        """Return the address of the authorization server."""
        return f"{self.public_url}{self.namespace}"


class MetadataHandler(SignInHandler):
    """What clients read to find out how to sign in."""

    @allow_unauthenticated
    async def get(self, document: str) -> None:
        """Answer with a document."""
        check_installed()
        known = documents(self.issuer, self.resource(), self.sign_in)
        if document not in known:
            raise errors.NotFound("There is no such document.")
        # For the command line, which reaches the server at another address than users do.
        told = self.settings["serverapp"].custom_display_url
        if public_url := told or os.environ.get("JUPYTERHUB_PUBLIC_URL"):
            known["oauth-protected-resource"]["public_url"] = public_url
        self.answer(known[document])


class ClientHandler(SignInHandler):
    """What clients ask for without a person."""

    @allow_unauthenticated
    async def post(self, part: str) -> None:
        """Register a client, exchange a code or a refresh token, or revoke a token."""
        await self.answer_client(part)

    def _check_token_placement(self) -> None:
        """Allow a token in the body: that is where a client names what to revoke."""
        self.refuse_misplaced(self.request.query_arguments)


class Query(Request, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Any query: OAuth ignores what it does not know."""

    key: str = ""


class PageHandler(SignInPage, pages.PageHandler, SignInHandler):
    """Base of what a person sees."""


class AuthorizeHandler(PageHandler):
    """Where a client sends the person's browser."""

    @web.authenticated
    @requires("tokens", answers={302: "text/html"}, query=Query)
    async def get(self, query: Query) -> None:
        """Check what the client asks for, and go on to the page of consent."""
        await self.begin()


class ConsentHandler(ConsentPage, PageHandler):
    """The page on which a person decides what the agent may do."""

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=Query)
    async def get(self, query: Query) -> None:
        """Ask the person."""
        self.ask(query.key)

    @web.authenticated
    @requires("tokens", answers={303: "text/html"}, without_passphrase=True)
    async def post(self) -> None:
        """Send the person's answer to the client."""
        await self.decide()

    def token_form(self, given: Values, error: errors.AgentExecError | None) -> TokenForm:
        """Return the form; it suggests the notebook that is in front in JupyterLab."""
        first = offered(*self.open_notebooks())[:1] if error is None else []
        return self.form({"notebook": first, **given}, error=error)

    async def grant(self, asked: SignInRequest) -> Grant:
        """Return the token that the form describes, if this person may grant it."""
        return partial(self.tokens.sign_in, await self.allowed(), self.caller)


ROUTES: Final[list[Route]] = [
    ("/.well-known/{document}", MetadataHandler),
    ("/sign-in/authorize", AuthorizeHandler),
    ("/sign-in/consent", ConsentHandler),
    ("/sign-in/{part}", ClientHandler),
]
"""Paths under the namespace. OAuth's own documents describe them."""
ROOT_ROUTE: Final = r"/\.well-known/(?P<document>[a-z-]+)/{namespace}(?:/mcp)?/?"
"""Where clients look first. It is reached if the server's base URL is `/`."""
