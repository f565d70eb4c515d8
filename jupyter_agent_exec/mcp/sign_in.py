"""Sign-in: an MCP client gets an agent token after a person has agreed on a page.

Jupyter's own login tells who the person is. The SDK checks what the client sends; it is imported at
the first request.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from jupyter_server.auth.decorator import allow_unauthenticated
from tornado import web
from tornado.httputil import url_concat
from tornado.template import Loader

from .. import errors
from ..auth.handler import AgentExecHandler, Route, error_in, status_of
from ..auth.operations import requires
from ..auth.scopes import Caller, Grants, given_away
from ..auth.tokens import TokenRefused, Tokens
from ..auth.validation import read_arguments
from ..models import MintToken, Request
from ..types import TokenId
from .endpoint import asgi_scope, check_installed

T = TypeVar("T")

ASK_SECONDS: Final = 600.0
"""How long a page of consent can be answered."""
CODE_SECONDS: Final = 60.0
MAX_WAITING: Final = 200
"""How many pages, and how many codes, may wait; the oldest are dropped."""
MAX_BODY_BYTES: Final = 16 * 1024

LIFETIMES: Final = {
    3600: "1 hour",
    28_800: "8 hours",
    86_400: "1 day",
    604_800: "7 days",
    2_592_000: "30 days",
}
DEFAULTS: Final[Mapping[str, list[str]]] = {
    "scope": ["exec:scratch"],
    "rights": ["exec edit"],
    "expires_in": ["28800"],
    "approval": [""],
    "patterns": [""],
}
"""What a page of consent shows first."""

MADE_UP: Final = re.compile("[0-9a-f]{32}")
"""The username that Jupyter gives a user who logs in with a token or a password."""

PAGE: Final = Loader(str(Path(__file__).parent)).load("consent.html")


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request to sign in."""

    client_id: str
    client_name: str
    """What the client calls itself; nobody has checked it."""
    redirect_uri: str
    is_explicit: bool
    """Whether the client has sent the redirect URI with its request."""
    state: str | None
    code_challenge: str
    username: str
    """The person who is asked."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the page of consent shows and asks."""

    asked: SignInRequest
    key: str
    """Under which the request waits for the answer."""
    name: str
    """What the client calls itself."""
    given: Mapping[str, Sequence[str]]
    """The form's fields, as the person filled them in or as they are first."""
    lifetimes: Mapping[int, str]
    """Seconds, and what they are called."""
    passphrase: bool
    """Whether the answer needs the server's passphrase."""
    person: str
    """The person's display name; empty if Jupyter made it up."""
    server: str
    xsrf: str
    """The form's hidden field."""

    @property
    def target(self) -> SplitResult:
        """Where the answer goes."""
        return urlsplit(self.asked.redirect_uri)

    @property
    def described_at(self) -> str:
        """The address of the client's own document; empty if it has none."""
        client_id = self.asked.client_id
        return client_id if client_id.startswith("https://") else ""

    def values(self, field: str) -> Sequence[str]:
        """Return the values of a field; an empty one if the form lacks it."""
        return self.given.get(field, [""])


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has granted, until the client fetches it."""

    asked: SignInRequest
    token: MintToken
    caller: Caller


class Pending(Generic[T]):
    """Values that are kept for a while, each under a random key."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[str, tuple[float, T]] = {}

    def add(self, value: T) -> str:
        """Keep a value; return its key."""
        key = secrets.token_urlsafe(32)
        self.put(key, value)
        return key

    def put(self, key: str, value: T) -> None:
        """Keep a value under a key."""
        if len(self._kept) >= MAX_WAITING:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (time.monotonic() + self._seconds, value)

    def get(self, key: str) -> T | None:
        """Return a value; None if there is none, or if its time is over."""
        until, value = self._kept.get(key, (0.0, None))
        return value if until > time.monotonic() else None

    def pop(self, key: str) -> T | None:
        """Return a value, for the last time."""
        value = self.get(key)
        self._kept.pop(key, None)
        return value


class SignIn:
    """What waits between a client's request and its token.

    Parameters
    ----------
    fetch
        Fetches a client's metadata document; returns None if it cannot be had.
    """

    def __init__(self, tokens: Tokens, fetch: Callable[[str], Awaitable[bytes | None]]) -> None:
        self.tokens = tokens
        self.fetch = fetch
        self.pending = Pending[SignInRequest](ASK_SECONDS)
        self.granted = Pending[Granted](CODE_SECONDS)
        self.used = Pending[TokenId](ASK_SECONDS)
        """The tokens of codes that were used, by code."""


class SignInHandler(AgentExecHandler):
    """Base of the handlers below."""

    namespace: str
    sign_in: SignIn

    @property
    def issuer(self) -> str:
        """Return the address of the authorization server."""
        return f"{self.public_url}{self.namespace}"

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
        resource = f"{self.issuer}/mcp"
        return await module.answer(part, self.sign_in, resource, caller, scope, body), module


class MetadataHandler(SignInHandler):
    """What clients read to find out how to sign in (RFC 9728, RFC 8414, OpenID Discovery)."""

    @allow_unauthenticated
    async def get(self, document: str) -> None:
        """Answer with a document."""
        check_installed()
        if document not in (documents := self._documents()):
            raise errors.NotFound("There is no such document.")
        self.answer(documents[document])

    def _documents(self) -> dict[str, object]:
        issuer, routes = self.issuer, f"{self.issuer}/sign-in"
        server = {
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
            "client_id_metadata_document_supported": True,
        }
        return {
            "oauth-protected-resource": {
                "resource": f"{issuer}/mcp",
                "authorization_servers": [issuer],
                "bearer_methods_supported": ["header"],
                "resource_name": "Jupyter",
            },
            "oauth-authorization-server": server,
            # There are no id tokens, but clients demand these fields.
            "openid-configuration": server
            | {
                "jwks_uri": f"{issuer}/.well-known/jwks.json",
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [],
            },
            "jwks.json": {"keys": []},
        }


class ClientHandler(SignInHandler):
    """What clients ask for without a person."""

    @allow_unauthenticated
    async def post(self, part: str) -> None:
        """Register a client, exchange a code or a refresh token, or revoke a token."""
        if part not in ("register", "revoke", "token"):
            raise errors.NotFound(f"There is no {self.public(self.request.path)} here.")
        response, _ = await self.answer_by_sdk(part, None)
        self.set_status(response.status_code)
        for name, value in response.headers.items():
            if name.lower() != "content-length":
                self.set_header(name, value)
        await self.finish(response.body)

    def _check_token_placement(self) -> None:
        """Allow a token in the body: that is where a client names what to revoke."""
        self.refuse_misplaced(self.request.query_arguments)


class Query(Request, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Any query: OAuth ignores what it does not know."""

    request: str = ""


class PageHandler(SignInHandler):
    """Base of what a person sees. It sends them to Jupyter's login first."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Redirect to the login if there is no person."""
        try:
            await super().prepare()
        except errors.Unauthenticated as error:
            if self.request.method != "GET" or isinstance(error, TokenRefused):
                raise
            login = self.get_login_url()
            if "?" not in login:  # a hub's has a query, and is complete
                here = self.public(self.request.uri or "")
                login = url_concat(self.public(login), {"next": here})
            self.redirect(login)

    def show(self, status: int, message: str = "", question: Question | None = None) -> None:
        """Show the page: a question, or only a message."""
        redirect_uri = "" if question is None else question.asked.redirect_uri
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action {_form_targets(redirect_uri)}"
        )
        self.set_status(status)
        self.set_header("Content-Type", "text/html; charset=UTF-8")
        self.set_header("Content-Security-Policy", policy)
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "same-origin")
        self.finish(PAGE.generate(question=question, message=message, nonce=nonce))

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Show an error to the person."""
        error = error_in(kwargs)
        message = "Something went wrong."
        if isinstance(error, errors.AgentExecError):
            message = error.message
        self.show(status_code, message)


class AuthorizeHandler(PageHandler):
    """Where a client sends the person's browser."""

    @web.authenticated
    @requires("tokens", answers={302: "text/html"}, query=Query)
    async def get(self, query: Query) -> None:
        """Check what the client asks for, and go on to the page of consent.

        Errors are shown here. To send them to the client would send the person to an address that
        nobody has agreed to.
        """
        response, module = await self.answer_by_sdk("authorize", self.caller)
        refusal = module.refusal(response)
        if refusal is not None:
            raise errors.InvalidRequest(f"This program cannot sign in: {refusal}", field=None)
        self.redirect(response.headers["Location"])


class ConsentHandler(PageHandler):
    """The page on which a person decides what the agent may do."""

    @web.authenticated
    @requires("tokens", answers={200: "text/html"}, query=Query)
    async def get(self, query: Query) -> None:
        """Ask the person."""
        self._ask(query.request, {})

    @web.authenticated
    @requires("tokens", answers={303: "text/html"}, without_passphrase=True)
    async def post(self) -> None:
        """Send the person's answer to the client."""
        key = self.get_body_argument("request", "")
        asked = self._asked(key)
        answer: dict[str, str] = {"error": "access_denied"}
        if self.get_body_argument("decision", "") == "allow":
            try:
                token = await self._granted()
            except (errors.InvalidRequest, errors.Forbidden, errors.TooManyRequests) as error:
                self._ask(key, self.request.body_arguments, error)
                return
            asked = self._asked(key)  # the person may have answered in another tab meanwhile
            granted = Granted(asked=asked, token=token, caller=self.caller)
            answer = {"code": self.sign_in.granted.add(granted)}
        self.sign_in.pending.pop(key)
        if asked.state is not None:
            answer["state"] = asked.state
        self.redirect(
            url_concat(asked.redirect_uri, {**answer, "iss": self.issuer}),
            status=HTTPStatus.SEE_OTHER,
        )

    def _asked(self, key: str) -> SignInRequest:
        """Return what a client asks of this person."""
        asked = self.sign_in.pending.get(key)
        if asked is None or asked.username != self.caller.username:
            raise errors.NotFound(
                "This request has been answered, or has expired. Start again in your program."
            )
        return asked

    async def _granted(self) -> MintToken:
        """Return the token that the form describes, if this person may grant it."""
        if self.unlocks.needed:
            passphrase = self.get_body_argument("passphrase", "")
            await self.unlocks.unlock(passphrase, self.caller)
        token = read_arguments(requested(self.get_body_arguments), MintToken)
        self.sign_in.tokens.check_request(token)
        for scope in given_away(Grants.parse(token.scopes)):
            await self.ask_authorizer(scope)
        return token

    def _ask(
        self,
        key: str,
        form: Mapping[str, Sequence[bytes]],
        error: errors.AgentExecError | None = None,
    ) -> None:
        asked = self._asked(key)
        label = "".join(filter(str.isprintable, asked.client_name)).strip()[:200]
        given = {name: [value.decode() for value in values] for name, values in form.items()}
        given = given or dict(DEFAULTS) | {"label": [label or "AI agent"]}
        longest = self.sign_in.tokens.max_lifetime
        question = Question(
            asked=asked,
            key=key,
            name=label,
            given=given,
            lifetimes={each: text for each, text in LIFETIMES.items() if each <= longest}
            or {int(longest): f"{longest / 60:.0f} minutes"},
            passphrase=self.unlocks.needed,
            person="" if MADE_UP.fullmatch(self.caller.username) else self.caller.display_name,
            server=self.request.host,
            xsrf=self.xsrf_form_html(),
        )
        status = HTTPStatus.OK if error is None else status_of(type(error))
        self.show(status, "" if error is None else error.message, question)


def requested(values: Callable[[str], list[str]]) -> dict[str, object]:
    """Return the token that a form describes, as `POST /tokens` takes it.

    Parameters
    ----------
    values
        Returns the values of a field.
    """
    patterns = [line.strip() for text in values("patterns") for line in text.splitlines()]
    rights = [right for field in values("rights") for right in field.split()]
    notebooks = [f"{right}:notebook:{each}" for right in rights for each in patterns if each]
    scopes = values("scope") + notebooks
    if not scopes:
        raise errors.InvalidRequest("Choose what the agent may do.", field="scopes")
    lifetime = "".join(values("expires_in"))
    return {
        "label": "".join(values("label")).strip(),
        "scopes": scopes,
        "expires_in": float(lifetime) if lifetime.isdecimal() else None,
        "approval": "".join(values("approval")) or None,
    }


def _form_targets(redirect_uri: str) -> str:
    """Return the addresses to which the page's form may lead, which includes its redirect."""
    target = urlsplit(redirect_uri)
    if target.scheme in ("http", "https"):
        return f"'self' {target.scheme}://{target.netloc}"
    return f"'self' {target.scheme}:" if target.scheme else "'none'"


ROUTES: Final[list[Route]] = [
    ("/.well-known/{document}", MetadataHandler),
    ("/sign-in/authorize", AuthorizeHandler),
    ("/sign-in/consent", ConsentHandler),
    ("/sign-in/{part}", ClientHandler),
]
"""Paths under the namespace. OAuth's own documents describe them."""
ROOT_ROUTE: Final = r"/\.well-known/(?P<document>[a-z-]+)/{namespace}(?:/mcp)?"
"""Where clients look first. It is reached if the server's base URL is `/`."""
