"""Sign-in: an MCP client gets a token after a person has agreed on a page.

What is the same wherever a person signs in: at their own server, and at a hub's service. Something
else tells who the person is. The SDK checks what the client sends; it is imported at the first
request.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from tornado import web
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import url_concat
from tornado.netutil import DefaultLoopResolver
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from .. import errors
from ..auth.handler import status_of
from ..auth.pages import Page
from ..auth.scopes import Caller
from ..auth.token_form import TokenForm, Values, filled_in
from ..auth.tokens import SignedIn
from ..models import Token
from ..types import TokenId, is_made_up
from .endpoint import check_installed
from .exchange import asgi_scope

T = TypeVar("T")

ASK_SECONDS: Final = 600.0
"""How long a page of consent can be answered."""
CODE_SECONDS: Final = 60.0
MAX_WAITING: Final = 50
"""How many answers of one person are remembered, and how many of their codes wait."""
MAX_BODY_BYTES: Final = 16 * 1024
SIGNED_AS: Final = "request"
"""What a signature of a client's request is for."""

SUGGESTED: Final[Values] = {
    "rights": ["look"],
    "expires_in": ["28800"],
    "patterns": ["**"],
}
"""What the form suggests."""


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request to sign in."""

    id: str = msgspec.field(default_factory=secrets.token_urlsafe)
    client_id: str
    client_name: str
    """What the client calls itself; nobody has checked it."""
    redirect_uri: str
    is_explicit: bool
    """Whether the client has sent the redirect URI with its request."""
    state: str | None
    code_challenge: str
    resource: str
    """Address of the MCP endpoint."""
    username: str
    """The person who is asked."""

    @property
    def target(self) -> SplitResult:
        """Where the answer goes."""
        return urlsplit(self.redirect_uri)


Grant: TypeAlias = Callable[[str], Awaitable[SignedIn]]
"""Gives the tokens that a person has granted to the client with an id."""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has granted, until the client fetches it."""

    asked: SignInRequest
    grant: Grant


class Pending(Generic[T]):
    """Values that are kept for a while, each under a key and for a person."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[str, tuple[float, str, T]] = {}

    def put(self, key: str, value: T, username: str) -> None:
        """Keep a value; a person's own oldest one goes if they have too many."""
        now = time.monotonic()
        self._kept = {each: kept for each, kept in self._kept.items() if kept[0] > now}
        theirs = [each for each, kept in self._kept.items() if kept[1] == username]
        if len(theirs) >= MAX_WAITING:
            del self._kept[theirs[0]]
        self._kept[key] = (now + self._seconds, username, value)

    def get(self, key: str) -> T | None:
        """Return a value; None if there is none, or if its time is over."""
        until, _, value = self._kept.get(key, (0.0, "", None))
        return value if until > time.monotonic() else None

    def pop(self, key: str) -> T | None:
        """Return a value, for the last time."""
        value = self.get(key)
        self._kept.pop(key, None)
        return value


class Issuer(Protocol):
    """Keeps the tokens of clients that signed in: a server's agent tokens, or a hub's grants."""

    async def caller(self, shown: str) -> Caller:
        """Return the caller that sends an access token; raise TokenRefused if it is not valid."""

    async def renewable(self, refresh: str, client_id: str) -> Token | None:
        """Return the token to which a client's refresh token belongs; None if there is none."""

    async def renew(self, refresh: str, client_id: str) -> SignedIn:
        """Exchange a refresh token; raise TokenRefused if it is not valid."""

    async def give_back(self, id: TokenId) -> None:
        """Revoke a token in the name of its own agent."""


class SignIn:
    """What waits between a client's request and its token.

    A request that nobody has answered is not kept here: the page of consent carries it, signed. So
    nothing can crowd out a page that a person has open.

    Parameters
    ----------
    fetch
        Fetches a client's metadata document; returns None if it cannot be had. None: clients
        register themselves, and have no documents.
    """

    def __init__(
        self, tokens: Issuer, fetch: Callable[[str], Awaitable[bytes | None]] | None
    ) -> None:
        self.tokens = tokens
        self.fetch = fetch
        self.answered = Pending[bool](ASK_SECONDS)
        """Requests that a person has answered, by id."""
        self.granted = Pending[Granted](CODE_SECONDS)
        self.used = Pending[TokenId](ASK_SECONDS)
        """The tokens of codes that were used, by code."""
        self._key = secrets.token_bytes(32)

    def signed(self, asked: SignInRequest) -> str:
        """Return a request as the page of consent carries it."""
        data = msgspec.json.encode(asked)
        return web.create_signed_value(self._key, SIGNED_AS, data).decode()

    def asked(self, signed: str) -> SignInRequest | None:
        """Return a request; None if it was changed or answered, or if its time is over."""
        data = web.decode_signed_value(self._key, SIGNED_AS, signed, ASK_SECONDS / 86_400)
        asked = None if data is None else msgspec.json.decode(data, type=SignInRequest)
        return None if asked is None or self.answered.get(asked.id) else asked


def documents(issuer: str, resource: str, sign_in: SignIn) -> dict[str, dict[str, object]]:
    """Return what clients read to find out how to sign in (RFC 9728, RFC 8414, OpenID Discovery).

    Parameters
    ----------
    issuer
        Address of the authorization server.
    resource
        Address of the MCP endpoint.
    sign_in
        Whether it fetches clients' metadata documents is told.
    """
    routes = f"{issuer}/sign-in"
    server: dict[str, object] = {
        "issuer": issuer,
        "authorization_endpoint": f"{routes}/authorize",
        "token_endpoint": f"{routes}/token",
        "registration_endpoint": f"{routes}/register",
        "revocation_endpoint": f"{routes}/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        # Clients that see it do not register, so a server without internet must not say it.
        "client_id_metadata_document_supported": sign_in.fetch is not None,
    }
    return {
        "oauth-protected-resource": {
            "resource": resource,
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Jupyter",
        },
        "oauth-authorization-server": server,
        # Where the server's base URL is not "/", clients look below the issuer only for this one.
        # There are no id tokens, but they demand these fields.
        "openid-configuration": server
        | {
            "jwks_uri": f"{issuer}/.well-known/jwks.json",
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [],
        },
        "jwks.json": {"keys": []},
    }


class AuthorizationRoute(web.RequestHandler):
    """Base of the requests to the authorization server."""

    sign_in: SignIn

    @property
    def issuer(self) -> str:
        """Address of the authorization server."""
        raise NotImplementedError

    def resource(self) -> str:
        """Return the address of the MCP endpoint for which the client signs in."""
        return f"{self.issuer}/mcp"

    async def answer_by_sdk(self, part: str, caller: Caller | None) -> Any:
        """Return the SDK's answer to the request, and the module that gave it."""
        check_installed()
        if len(self.request.body) > MAX_BODY_BYTES:
            raise errors.PayloadTooLarge(
                f"The body has more than {MAX_BODY_BYTES:,} bytes.", limit_bytes=MAX_BODY_BYTES
            )
        loop = asyncio.get_running_loop()
        module = await loop.run_in_executor(
            None, partial(import_module, ".authorization", __package__)
        )
        body = self.request.body
        if part == "revoke" and not self.get_body_arguments("client_secret"):
            body += b"&client_secret="  # the SDK demands it, also where clients have none
        scope = asgi_scope(self.request)
        answered = module.answer(part, self.sign_in, self.resource(), caller, scope, body)
        return await answered, module

    async def answer_client(self, part: str) -> None:
        """Register a client, exchange a code or a refresh token, or revoke a token."""
        if part not in ("register", "revoke", "token"):
            raise errors.NotFound(f"There is no {part} here.")
        response, _ = await self.answer_by_sdk(part, None)
        self.set_status(response.status_code)
        for name, value in response.headers.items():
            if name.lower() != "content-length":
                self.set_header(name, value)
        await self.finish(response.body)


class SignInPage(Page, AuthorizationRoute):
    """Base of what a person sees."""

    async def begin(self) -> None:
        """Check what the client asks for, and go on to the page of consent.

        Errors are shown here. To send them to the client would send the person to an address that
        nobody has agreed to.
        """
        response, module = await self.answer_by_sdk("authorize", self.caller)
        refusal = module.refusal(response)
        if refusal is not None:
            raise errors.InvalidRequest(f"This program cannot sign in: {refusal}", field=None)
        self.redirect(response.headers["Location"])


class ConsentPage(SignInPage):
    """The page on which a person decides what the agent may do."""

    def token_form(self, given: Values, error: errors.AgentExecError | None) -> TokenForm:
        """Return the form of the token that the agent is to have.

        Parameters
        ----------
        given
            What the person filled in if there is an error, else what the form suggests.
        """
        raise NotImplementedError

    async def grant(self, asked: SignInRequest) -> Grant:
        """Return what the form describes, if this person may grant it.

        Raises
        ------
        InvalidRequest, Forbidden, TooManyRequests
            The page says why, and asks again.
        """
        raise NotImplementedError

    async def decide(self) -> None:
        """Send the person's answer to the client."""
        key = self.get_body_argument("key", "")
        asked = self._asked(key)
        answer: dict[str, str] = {"error": "access_denied"}
        if self.get_body_argument("decision", "") == "allow":
            try:
                grant = await self.grant(asked)
            except (errors.InvalidRequest, errors.Forbidden, errors.TooManyRequests) as error:
                self.ask(key, error)
                return
            asked = self._asked(key)  # the person may have answered in another tab meanwhile
            granted = Granted(asked=asked, grant=grant)
            answer = {"code": secrets.token_urlsafe(32)}
            self.sign_in.granted.put(answer["code"], granted, asked.username)
        self.sign_in.answered.put(asked.id, True, asked.username)
        if asked.state is not None:
            answer["state"] = asked.state
        self.redirect(
            url_concat(asked.redirect_uri, {**answer, "iss": self.issuer}),
            status=HTTPStatus.SEE_OTHER,
        )

    def _asked(self, key: str) -> SignInRequest:
        """Return what a client asks of this person."""
        asked = self.sign_in.asked(key)
        if asked is None or asked.username != self.caller.username:
            raise errors.NotFound(
                "This request has been answered, or has expired. Start again in your program."
            )
        return asked

    def ask(self, key: str, error: errors.AgentExecError | None = None) -> None:
        """Ask the person; if there is an error, with what they filled in."""
        asked = self._asked(key)
        label = "".join(filter(str.isprintable, asked.client_name)).strip()[:200]
        given: Values = {**SUGGESTED, "label": [label or "AI agent"]}
        if error is not None:
            given = filled_in(self.request.body_arguments)
        name = self.caller.display_name
        self.show(
            HTTPStatus.OK if error is None else status_of(type(error)),
            "mcp/consent.html",
            form_action=_form_targets(asked.target),
            asked=asked,
            key=key,
            person="" if is_made_up(name) else name,
            server=self.request.host,
            hidden=self.form_fields(),
            form=self.token_form(given, error),
        )


def _form_targets(target: SplitResult) -> str:
    """Return the addresses to which the page's form may lead, which includes its redirect."""
    if target.scheme in ("http", "https"):
        return f"'self' {target.scheme}://{target.netloc}"
    return f"'self' {target.scheme}:" if target.scheme else "'none'"


PUBLIC_IPV6: Final = ipaddress.ip_network("2000::/3")
"""All others stay in some network, or carry an IPv4 address to a translator."""
MAX_DOCUMENT_BYTES: Final = 16 * 1024
DOCUMENT_TIMEOUT: Final = 5.0
"""Seconds."""


class PublicResolver(DefaultLoopResolver):
    """Finds the addresses of a host, and refuses those of this machine and of private networks."""

    async def resolve(self, host: str, port: int, family: Any = 0) -> list[tuple[int, Any]]:
        """Return the addresses; raise OSError if one of them is not public."""
        found = await super().resolve(host, port, family)
        for _, address in found:
            if not _is_public(address[0].partition("%")[0]):
                raise OSError(f"{host} is not a public address")
        return found


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and (ip not in PUBLIC_IPV6 or ip.sixtofour):
        return False
    return ip.is_global and not ip.is_multicast


async def fetch_document(url: str) -> bytes | None:
    """Return what an address answers; None if it cannot be had. Redirects are not followed."""
    client = SimpleAsyncHTTPClient(
        force_instance=True, resolver=PublicResolver(), max_body_size=MAX_DOCUMENT_BYTES
    )
    request = HTTPRequest(
        url,
        follow_redirects=False,
        decompress_response=False,  # a small answer may be large then
        connect_timeout=DOCUMENT_TIMEOUT,
        request_timeout=DOCUMENT_TIMEOUT,
    )
    try:
        return (await client.fetch(request)).body
    except (HTTPClientError, OSError, ValueError):
        return None
    finally:
        client.close()
