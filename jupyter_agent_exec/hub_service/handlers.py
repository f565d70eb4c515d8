"""The service's routes: sign-in, the list of grants, and the administrators' pause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler, HubOAuthenticated
from tornado import iostream, web
from tornado.httputil import url_concat

from .. import errors
from ..auth.handler import error_in, status_of
from ..auth.scopes import Caller
from ..auth.token_form import LIFETIMES, TokenForm, TokenRow, Values, requested
from ..auth.validation import read_body
from ..mcp.sign_in import (
    AuthorizationRoute,
    ConsentPage,
    Grant,
    SignIn,
    SignInPage,
    SignInRequest,
    documents,
)
from ..models import Problem, SetPause
from ..types import TokenId
from .grants import Grant as StoredGrant
from .grants import Grants
from .user_servers import PassphraseNeeded, ServerUnavailable, UserServers

MAY_PAUSE: Final = "access:servers"
"""The hub's scope that lets administrators pause all agents."""


class ServiceHandler(AuthorizationRoute):
    """Base of all handlers of the service."""

    grants: Grants
    servers: UserServers
    hub: HubOAuth

    def initialize(
        self, grants: Grants, servers: UserServers, sign_in: SignIn, hub: HubOAuth
    ) -> None:
        """Set what the handlers need."""
        self.grants, self.servers, self.sign_in, self.hub = grants, servers, sign_in, hub

    @property
    def issuer(self) -> str:
        """Address of the service, without a slash at the end."""
        return f"{self.request.protocol}://{self.request.host}{self.hub.base_url.rstrip('/')}"

    def mcp_url(self, server_name: str) -> str:
        """Return the address of the MCP endpoint of a person's server."""
        name = f"/{quote(server_name, safe='')}" if server_name else ""
        return f"{self.issuer}/mcp{name}"

    def named_server(self, resource: str) -> str:
        """Return the name of the server for which an MCP endpoint is; empty for the default one."""
        name = unquote(resource.rstrip("/").removeprefix(f"{self.issuer}/mcp").lstrip("/"))
        if "/" in name or name in (".", ".."):
            raise errors.NotFound("There is no such server.")
        return name

    def answer(self, model: object) -> None:
        """Answer with a model as JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(model))

    def check_xsrf_cookie(self) -> None:
        """Check nothing: only pages, which override this, accept cookies."""

    def send_error(self, status_code: int = 500, **kwargs: object) -> None:
        """Answer with the error's own status."""
        error = error_in(kwargs)
        if isinstance(error, ServerUnavailable):
            status_code = HTTPStatus.SERVICE_UNAVAILABLE
        elif isinstance(error, errors.AgentExecError):
            status_code = status_of(type(error))
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Write the body of an error."""
        error = error_in(kwargs)
        message, code = HTTPStatus(status_code).phrase, "refused"
        if isinstance(error, errors.AgentExecError):
            message, code = error.message, error.code
        self.answer(Problem(message=message, reason=None, code=code, detail={}))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log unexpected errors only."""
        if not isinstance(value, (errors.AgentExecError, iostream.StreamClosedError)):
            super().log_exception(typ, value, tb)


class MetadataHandler(ServiceHandler):
    """What clients read to find out how to sign in."""

    async def get(self, document: str, server_name: str | None = None) -> None:
        """Answer with a document."""
        known = documents(self.issuer, self.mcp_url(server_name or ""), self.sign_in)
        if document not in known:
            raise errors.NotFound("There is no such document.")
        self.answer(known[document])


class ClientHandler(ServiceHandler):
    """What clients ask for without a person."""

    async def post(self, part: str) -> None:
        """Register a client, exchange a code or a refresh token, or revoke a token."""
        await self.answer_client(part)


class PauseHandler(ServiceHandler):
    """All agents of all users, paused."""

    async def put(self) -> None:
        """Pause or resume all agents, for administrators."""
        token = self.hub.get_token(self, in_cookie=False)
        who = await self.hub.user_for_token(token, use_cache=False, sync=False) if token else None
        if who is None:
            raise errors.Unauthenticated("Send a token of this hub's.")
        if MAY_PAUSE not in who["scopes"]:
            raise errors.Forbidden(f"The token needs the scope {MAY_PAUSE}, for all servers.")
        asked = read_body(self.request.body, SetPause, limit_bytes=1000)
        await self.grants.set_paused(asked.paused, who["name"])
        self.set_status(HTTPStatus.NO_CONTENT)


class PageHandler(SignInPage, HubOAuthenticated, ServiceHandler):  # type: ignore[misc]
    """Base of what a person sees. The hub tells who that is."""

    async def prepare(self) -> None:
        """Find out who the person is; tornado sends them to the hub's login if nobody knows."""
        await self.hub.get_user(self, sync=False)
        user = self.current_user
        if user is None:
            return
        if user["kind"] != "user":
            raise errors.Forbidden("Only a user of the hub can sign a program in.")
        self.caller = Caller(username=user["name"], display_name=user["name"], access="full")
        self.check_window()

    def check_xsrf_cookie(self) -> None:
        """Check that the hub's cookie comes with a page of this service."""
        HubOAuthenticated.check_xsrf_cookie(self)

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Show an error to the person."""
        if isinstance(error_in(kwargs), web.HTTPError) and status_code == HTTPStatus.FORBIDDEN:
            message = "You may not do this here, or the page is too old."
            self.show(status_code, "auth/page.html", message=message)
        else:
            super().write_error(status_code, **kwargs)


class AuthorizeHandler(PageHandler):
    """Where a client sends the person's browser."""

    @web.authenticated
    async def get(self) -> None:
        """Start the person's server if need be, then go on to the page of consent."""
        name = self.named_server(self.resource())
        if not await self.servers.is_ready(self.caller.username, name):
            server = "/".join(
                quote(part, safe="@~") for part in (self.caller.username, name) if part
            )
            page = f"{self.hub.hub_prefix}spawn/{server}"
            self.redirect(url_concat(page, {"next": self.request.uri or ""}))
            return
        await self.begin()

    def resource(self) -> str:
        """Return the MCP endpoint that the client names; the default server's if it names none."""
        asked = self.get_query_argument("resource", "").rstrip("/")
        is_ours = asked.startswith(f"{self.issuer}/mcp/")
        return self.mcp_url(self.named_server(asked)) if is_ours else self.mcp_url("")


class ConsentHandler(ConsentPage, PageHandler):
    """The page on which a person decides what the agent may do."""

    needs_passphrase = False

    @web.authenticated
    async def get(self) -> None:
        """Ask the person."""
        self.ask(self.get_query_argument("key", ""))

    @web.authenticated
    async def post(self) -> None:
        """Send the person's answer to the client."""
        await self.decide()

    def token_form(self, given: Values, error: errors.AgentExecError | None) -> TokenForm:
        """Return the form."""
        longest = max(LIFETIMES)
        return TokenForm(
            given=given, max_lifetime=longest, passphrase=self.needs_passphrase, error=error
        )

    async def grant(self, asked: SignInRequest) -> Grant:
        """Mint the agent token at the person's server, with their own hub token."""
        token = requested(self.get_body_arguments)
        passphrase = self.get_body_argument("passphrase", "")
        name = self.named_server(asked.resource)
        url = self.servers.url(asked.username, name)
        try:
            minted = await self.servers.mint(url, self.hub.get_token(self), token, passphrase)
        except PassphraseNeeded:
            self.needs_passphrase = True
            raise
        return partial(self.grants.add, asked.username, name, minted)


class GrantsHandler(PageHandler):
    """What a person has granted."""

    @web.authenticated
    async def get(self) -> None:
        """List the grants."""
        await self._list()

    @web.authenticated
    async def post(self) -> None:
        """Revoke a grant. Nobody can use its token from then on, whether or not its server runs."""
        id = TokenId(self.get_body_argument("revoke", ""))
        grant = next((each for each in await self._mine() if each.token.id == id), None)
        if grant is None:
            raise errors.NotFound("You have granted no such access, or it has ended.")
        await self.grants.end(id)
        url = self.servers.url(grant.username, grant.server_name)
        is_told = await self.servers.revoke(url, self.hub.get_token(self), id)
        await self._list(
            f"{grant.token.label} has no access any more."
            if is_told
            else f"{grant.token.label} has no access any more. Your server did not answer, so it "
            "still lists the token, which nobody can use."
        )

    async def _mine(self) -> Sequence[StoredGrant]:
        return await self.grants.of(self.caller.username)

    async def _list(self, message: str = "") -> None:
        self.show(
            HTTPStatus.OK,
            "auth/tokens.html",
            has_script=True,
            active=[TokenRow(grant.token, grant.server_name) for grant in await self._mine()],
            ended=[],
            erasure=None,
            failed="",
            form=None,
            message=message,
            minted=None,
            person=self.caller.display_name,
            mcp_url=self.mcp_url(""),
            hidden=self.form_fields(),
        )


ROUTES: Final[list[tuple[str, type[web.RequestHandler]]]] = [
    (r"\.well-known/(?P<document>[a-z.-]+)(?:/(?P<server_name>[^/]+))?", MetadataHandler),
    ("sign-in/authorize", AuthorizeHandler),
    ("sign-in/consent", ConsentHandler),
    ("sign-in/(?P<part>[a-z]+)", ClientHandler),
    ("oauth_callback", HubOAuthCallbackHandler),
    ("pause", PauseHandler),
    ("", GrantsHandler),
]
"""Paths below the service's prefix."""
