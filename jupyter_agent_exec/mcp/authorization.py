"""The authorization server in the SDK's terms. Imports the SDK.

A client's id is its registration: the address of its metadata document, or its metadata itself, in
base64. So nothing is kept of clients, and anybody may register.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError, field_validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..auth.scopes import Caller
from ..auth.tokens import SignedIn, TokenRefused
from ..types import TokenId
from .exchange import Message, Scope
from .sign_in import SignIn, SignInRequest

LOOPBACK: Final = ("127.0.0.1", "localhost")
"""Without `[::1]`: a page's policy (`form-action`) cannot name an IPv6 address."""
KNOWN: Final = frozenset({"cursor://anysphere.cursor-mcp/oauth/callback"})
"""What widespread clients register although the scheme is no domain name."""

_HOST = re.compile(r"[a-z0-9.-]+")
_REVERSED_DOMAIN = re.compile(r"[a-z]{2,}(\.[a-z0-9-]+)+")
"""An application's own scheme (RFC 8252, 7.1). Schemes of systems, such as `ms-*`, never fit."""


def is_allowed(uri: AnyUrl) -> bool:
    """Return whether answers may be sent to an address."""
    if uri.fragment is not None or uri.username is not None or uri.password is not None:
        return False
    if uri.scheme in ("http", "https"):
        is_host = _HOST.fullmatch(uri.host or "") is not None
        return is_host and (uri.scheme == "https" or uri.host in LOOPBACK)
    return str(uri) in KNOWN or _REVERSED_DOMAIN.fullmatch(uri.scheme) is not None


def is_registered(uri: AnyUrl, registered: Sequence[AnyUrl]) -> bool:
    """Return whether an address is allowed and is one that a client has registered."""
    wanted = _without_port(uri)
    return is_allowed(uri) and any(_without_port(each) == wanted for each in registered)


def _without_port(uri: AnyUrl) -> object:
    """Return an address for comparison; on this machine without its port (RFC 8252, 7.3)."""
    if uri.scheme == "http":
        return uri.host, uri.path or "/", uri.query
    return str(uri)


Part: TypeAlias = Literal["authorize", "register", "revoke", "token"]

CLIENT_PREFIX: Final = "jaec_"
MAX_ID: Final = 4096
"""Characters of a client's id."""
PUBLIC: Final = "none"
"""How clients authenticate: they have no secret, and PKCE binds each code to its client."""
WHERE: Final = (
    "Use https, http on localhost or 127.0.0.1, or the scheme of an application that is a domain "
    "name reversed (com.example.app:/), without a user name, a password or a fragment."
)
NOT_FETCHED: Final = (
    "It names itself by the document {url}, and this server fetches no documents of programs. "
    "Remove the server from your program and add it again: then the program registers itself."
)
UNREACHABLE: Final = (
    "This server cannot fetch the document {url}, by which it names itself. If the server does not "
    "reach the internet, its operator can turn these documents off; then remove the server from "
    "your program and add it again. With an agent token, the program needs no sign-in."
)


class Client(OAuthClientInformationFull):
    """A client. What it may do is for the person to say, so it asks for no scopes.

    However it was read, answers to it go to allowed addresses only.
    """

    token_endpoint_auth_method: str | None = PUBLIC

    @field_validator("redirect_uris")
    @classmethod
    def _check_redirect_uris(cls, uris: list[AnyUrl] | None) -> list[AnyUrl]:
        if not uris or not all(map(is_allowed, uris)):
            raise ValueError(WHERE)
        return uris

    def validate_scope(self, requested_scope: str | None) -> None:
        """Ignore scopes that the client asks for."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Return where the answer goes: a registered address, on this machine with any port."""
        if redirect_uri is None:
            return super().validate_redirect_uri(None)
        if not is_registered(redirect_uri, self.redirect_uris or ()):
            raise InvalidRedirectUriError("It has not registered this redirect URI.")
        return redirect_uri


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Answers one request.

    Parameters
    ----------
    resource
        Address of the MCP endpoint.
    caller
        The person who makes the request; None if the client does.
    """

    def __init__(self, sign_in: SignIn, resource: str, caller: Caller | None) -> None:
        self._sign_in = sign_in
        self._tokens = sign_in.tokens
        self._resource = resource
        self._caller = caller
        self._client_id = ""
        self.problem = ""
        """Why the client's metadata document could not be had; empty if nothing is wrong."""

    async def get_client(self, client_id: str) -> Client | None:
        """Return a client; None if its id is not valid."""
        self._client_id = client_id
        if len(client_id) > MAX_ID:
            return None
        if client_id.startswith("https://"):
            if self._caller is None:  # its code or token is bound to the id, and not to more
                return Client(client_id=client_id)
            return await self._fetched(client_id)
        try:
            data = json.loads(base64.urlsafe_b64decode(client_id.removeprefix(CLIENT_PREFIX)))
            return Client.model_validate(data | {"client_id": client_id})
        except (TypeError, ValueError):
            return None

    async def _fetched(self, url: str) -> Client | None:
        found = urlsplit(url)
        odd = found.fragment or "@" in found.netloc or found.path in ("", "/") or "/." in found.path
        if odd:
            return None
        fetch = self._sign_in.fetch
        document = None if fetch is None else await fetch(url)
        if document is None:
            self.problem = (NOT_FETCHED if fetch is None else UNREACHABLE).format(url=url)
            return None
        try:
            client = Client.model_validate_json(document)
        except ValidationError:
            return None
        return client if client.client_id == url else None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Give a client the id from which its registration can be read again."""
        try:
            Client(client_id="new", redirect_uris=client_info.redirect_uris)
        except ValidationError as error:
            raise RegistrationError("invalid_redirect_uri", WHERE) from error
        kept = {"client_name", "redirect_uris"}
        data = client_info.model_dump_json(include=kept, exclude_none=True).encode()
        client_info.client_id = CLIENT_PREFIX + base64.urlsafe_b64encode(data).decode()
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.token_endpoint_auth_method = PUBLIC
        if len(client_info.client_id) > MAX_ID:
            raise RegistrationError("invalid_client_metadata", "This is too long.")

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """Return the address of the page that asks the person."""
        assert self._caller is not None
        if params.resource is not None and params.resource.rstrip("/") != self._resource:
            raise AuthorizeError("invalid_request", f"This server is {self._resource}.")
        asked = SignInRequest(
            client_id=client.client_id,
            client_name=client.client_name or "",
            redirect_uri=str(params.redirect_uri),
            is_explicit=params.redirect_uri_provided_explicitly,
            state=params.state,
            code_challenge=params.code_challenge,
            resource=self._resource,
            username=self._caller.username,
        )
        return f"consent?key={quote(self._sign_in.signed(asked))}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return a code. If it was used, somebody else may have it: its token is revoked."""
        used = self._sign_in.used.get(authorization_code)
        if used is not None:
            await self._tokens.give_back(used)
        granted = self._sign_in.granted.get(authorization_code)
        if granted is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=[],
            expires_at=float("inf"),  # it is gone when it has expired
            client_id=granted.asked.client_id,
            code_challenge=granted.asked.code_challenge,
            redirect_uri=AnyUrl(granted.asked.redirect_uri),
            redirect_uri_provided_explicitly=granted.asked.is_explicit,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Mint the token that the person has granted."""
        granted = self._sign_in.granted.pop(authorization_code.code)
        if granted is None:
            raise TokenError("invalid_grant", "This code has been used.")
        signed_in = await granted.grant(client.client_id)
        self._sign_in.used.put(authorization_code.code, signed_in.token.id, granted.asked.username)
        return _answer(signed_in)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """Return a refresh token of this client that is valid."""
        token = await self._tokens.renewable(refresh_token, client.client_id)
        if token is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=_words(token.scopes),
            subject=token.id,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Give the agent token a new secret, and the client a new refresh token."""
        try:
            return _answer(await self._tokens.renew(refresh_token.token, client.client_id))
        except TokenRefused as error:
            raise TokenError("invalid_grant", error.message) from error

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an agent token. Whoever has it may give it back."""
        try:
            caller = await self._tokens.caller(token)
        except TokenRefused:
            return None
        assert caller.token is not None
        return AccessToken(
            token=token, client_id=self._client_id, scopes=[], subject=caller.token.id
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Revoke an agent token."""
        assert token.subject is not None
        await self._tokens.give_back(TokenId(token.subject))


async def answer(
    part: Part, sign_in: SignIn, resource: str, caller: Caller | None, scope: Scope, body: bytes
) -> Response:
    """Answer a request to a part of the authorization server."""
    provider = Provider(sign_in, resource, caller)
    authenticator = ClientAuthenticator(provider)
    handle: dict[Part, Callable[[Request], Awaitable[Response]]] = {
        "authorize": AuthorizationHandler(provider).handle,
        "register": RegistrationHandler(provider, ClientRegistrationOptions(enabled=True)).handle,
        "revoke": RevocationHandler(provider, authenticator).handle,
        "token": TokenHandler(provider, authenticator).handle,
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    response = await handle[part](Request(scope, receive))
    if provider.problem:
        return JSONResponse({"error_description": provider.problem}, response.status_code)
    return response


def refusal(response: Response) -> str | None:
    """Return why a request to authorize was refused; None if the person is to be asked."""
    location = response.headers.get("Location")
    if location is None:
        return str(json.loads(bytes(response.body)).get("error_description"))
    if location.startswith("consent?"):
        return None
    return parse_qs(urlsplit(location).query).get("error_description", ["It is refused."])[0]


def _answer(signed_in: SignedIn) -> OAuthToken:
    return OAuthToken(
        access_token=signed_in.secret,
        expires_in=signed_in.expires_in,
        refresh_token=signed_in.refresh,
        scope=" ".join(_words(signed_in.token.scopes)),
    )


def _words(scopes: list[str]) -> list[str]:
    """Return scopes without the characters that OAuth does not allow in them."""
    return [quote(scope, safe=":/*") for scope in scopes]
